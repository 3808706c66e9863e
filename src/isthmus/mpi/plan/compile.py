"""The compiler from the rounds of a schedule to the steps of a plan.

A schedule names elements of "send", "recv", "tmp" and "node"; a step names bytes of an
operation's buffers. The places of a call's blocks in the user's memory are part of the
values that identify the call, and are compiled in.

Each message is one run of bytes. A message from several places is copied through
scratch: a plan with an MPI datatype would have to free the datatype while operations
may still use the plan. For a long message of long runs, where copies take longer, each
message makes and frees a datatype (see `StartTypedReceive`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from ...schedules.early_receives import posting
from ...schedules.ir import (
    Copy,
    Data,
    Library,
    Local,
    Recv,
    Round,
    Send,
    Steps,
)
from ...schedules.program import buffer_size, meanwhile
from ..buffers.selection import Selection, select
from .layouts import Layouts, joined, matched
from .steps import (
    NODE,
    SAID,
    TMP,
    Await,
    Enter,
    LongCopy,
    Meet,
    Pack,
    ReduceLocal,
    Run,
    ShortCopy,
    StartAllgatherv,
    StartReceive,
    StartSend,
    StartTypedReceive,
    StartTypedSend,
    Step,
    Unpack,
)

Runs: TypeAlias = Sequence[Run]
#: the longest message; a longer message is cut, since an int counts the bytes
LONGEST_MESSAGE_BYTES = 1 << 30
#: bytes to which the scratch of each message is aligned: enough for every basic type
SCRATCH_ALIGNMENT_BYTES = 64
#: a longer copy takes more than a few microseconds and lets other threads run
LONG_COPY_BYTES = 1 << 16
#: up to so many runs are copied singly, in half a microsecond each; more are packed by
#: numpy, in three microseconds for any number
MOST_RUNS_COPIED_SINGLY = 6
#: elements that an operator combines in one call at most, since an int counts them
MOST_REDUCED_ELEMENTS = 1 << 30


@dataclass(frozen=True, slots=True)
class NodeRanks:
    """The meeting ranks of a node, and the bytes each contributes."""

    #: places of the ranks on the node, as ranges
    ranges: tuple[tuple[int, int], ...] = ()
    #: bytes that this rank contributes, and bytes expected of the others, by ranges, as
    #: words of the node memory; -1 and None where the ranks do not compare
    contribution: int = -1
    expected: list[bytes] | None = None


class Compiler:
    """The steps of a plan so far, with slots and scratch."""

    def __init__(
        self,
        layouts: Layouts,
        ranks: NodeRanks,
        *,
        scratch: int = 0,
        element: int = 1,
        cut: int = 0,
    ) -> None:
        """`element` is the size of the operator's elements in bytes, 1 without
        operator; messages longer than `cut` bytes, if not 0, are cut."""
        self.layouts, self._ranks, self._element = layouts, ranks, element
        self._longest = cut or LONGEST_MESSAGE_BYTES
        self.steps: list[Step] = []
        self.slots, self.scratch, self.node = 0, scratch, 0
        self._has_entered, self._meetings = False, 0
        #: whether this rank's own block is not yet copied to its place in the receive
        #: buffer, and so is sent from the send buffer
        self._copies_own_block = True

    def add(self, step: Step, *buffers: int) -> None:
        """Add a step on buffers.

        The half of the node memory is entered right before the first step that touches
        the half: to enter may mean to wait for ranks that are still in an earlier call.
        """
        if NODE in buffers and not self._has_entered:
            self._has_entered = True
            self.steps.append(Enter())
        self.steps.append(step)

    # -- local steps

    def copy(self, source: Sequence[Run], target: Sequence[Run]) -> None:
        """Copy bytes from runs to runs, unless the two are equal."""
        if source == target:
            return
        pairs = list(matched(source, target))
        is_packed = len(pairs) > MOST_RUNS_COPIED_SINGLY
        if is_packed and self._copy_packed(source, target):
            return
        for read, written in pairs:
            nbytes = read.stop - read.start
            kind = LongCopy if nbytes > LONG_COPY_BYTES else ShortCopy
            step = kind(
                read.buffer,
                slice(read.start, read.stop),
                written.buffer,
                slice(written.start, written.stop),
            )
            self.add(step, read.buffer, written.buffer)

    def _copy_packed(self, source: Sequence[Run], target: Sequence[Run]) -> bool:
        """Copy many runs by numpy; False where a side lies in several buffers.

        Where both sides have many runs, the bytes go through scratch.
        """
        if len({run.buffer for run in source}) > 1:
            return False
        if len({run.buffer for run in target}) > 1:
            return False
        read, written = source[0].buffer, target[0].buffer
        if len(source) == 1:
            step = Unpack(read, source[0].start, written, _selection(target))
            self.add(step, read, written)
        elif len(target) == 1:
            self.add(
                Pack(read, _selection(source), written, target[0].start), read, written
            )
        else:
            bounce = self.bounce(sum(run.stop - run.start for run in source))
            self.add(Pack(read, _selection(source), TMP, bounce.start), read)
            self.add(Unpack(TMP, bounce.start, written, _selection(target)), written)
        return True

    def local(self, step: Local) -> None:
        """Compile a copy or a reduction inside the memory of the rank."""
        source, target = (
            joined(self.layouts.placed(span)) for span in (step.src, step.dst)
        )
        if isinstance(step, Copy):
            self.copy(source, target)
            return
        longest = MOST_REDUCED_ELEMENTS * self._element
        for read, written in matched(source, target):
            nbytes = read.stop - read.start
            for at in range(0, nbytes, longest):
                self._reduce(
                    (read.buffer, read.start + at),
                    (written.buffer, written.start + at),
                    min(nbytes - at, longest) // self._element,
                )

    def _reduce(
        self, source: tuple[int, int], target: tuple[int, int], count: int
    ) -> None:
        """Add a reduction of `count` elements, merged with the step before if both have
        one target: a step by itself takes as long as to combine a few kilobytes."""
        last = self.steps[-1] if self.steps else None
        if isinstance(last, ReduceLocal) and last[1:4] == (*target, count):
            self.steps[-1] = last._replace(sources=(*last.sources, source))
            return
        self.add(ReduceLocal((source,), *target, count), source[0], target[0])

    def local_steps(self, steps: Sequence[Local]) -> None:
        """Compile all local steps of a round."""
        if isinstance(steps, Steps) and steps.kind is Copy:
            self.copy(self.layouts.runs(steps.src), self.layouts.runs(steps.dst))
            return
        for step in steps:
            self.local(step)

    # -- messages

    def bounce(self, nbytes: int) -> Run:
        """New scratch of so many bytes, aligned for every basic type."""
        start = -(-self.scratch // SCRATCH_ALIGNMENT_BYTES) * SCRATCH_ALIGNMENT_BYTES
        self.scratch = start + nbytes
        return Run(TMP, start, self.scratch)

    def send(self, rank: int, data: Data) -> list[int]:
        """Compile a message to a rank, and return the slots of the message."""
        runs = self.layouts.runs(data, is_sent=self._copies_own_block)
        if len(runs) > 1:
            if (selection := _typed(runs, self._longest)) is not None:
                buffer = runs[0].buffer
                slot = self._slot()
                self.add(StartTypedSend(rank, buffer, selection, slot), buffer)
                return [slot]
            bounce = self.bounce(sum(run.stop - run.start for run in runs))
            self.copy(runs, [bounce])
            runs = [bounce]
        return self._message(StartSend, rank, runs[0] if runs else Run(SAID, 0, 0))

    def post(self, rank: int, data: Data) -> tuple[list[int], Callable[[], None]]:
        """Compile a receive from a rank.

        Returns the slots of the message, and a function that compiles the copies from
        scratch to the places of the data.
        """
        runs = self.layouts.runs(data)
        if len(runs) <= 1:
            run = runs[0] if runs else Run(SAID, 0, 0)
            return self._message(StartReceive, rank, run), _nothing
        if (selection := _typed(runs, self._longest)) is not None:
            buffer, slot = runs[0].buffer, self._slot()
            self.add(StartTypedReceive(rank, buffer, selection, slot), buffer)
            return [slot], _nothing
        bounce = self.bounce(sum(run.stop - run.start for run in runs))
        slots = self._message(StartReceive, rank, bounce)
        return slots, partial(self.copy, [bounce], runs)

    def _message(
        self, kind: type[StartReceive | StartSend], rank: int, run: Run
    ) -> list[int]:
        buffer, start, stop = run
        slots = []
        for at in range(start, max(stop, start + 1), self._longest):
            nbytes = min(self._longest, stop - at)
            slots.append(self._slot())
            self.add(kind(rank, buffer, at, nbytes, slots[-1]), buffer)
        return slots

    def _slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def gather(self, call: Library) -> tuple[list[int], Callable[[], None]]:
        """Compile the MPI library's own allgather in a group.

        The library takes blocks side by side. Returns the slot of the call, and a
        function that compiles the copies to the places of the blocks.
        """
        runs = self.layouts.runs((call.whole,))
        whole, unpack = runs[0] if runs else Run(SAID, 0, 0), _nothing
        if len(runs) > 1:
            whole = self.bounce(sum(run.stop - run.start for run in runs))
            self.copy(runs, [whole])
            unpack = partial(self.copy, [whole], runs)
        unit, slot = self.layouts.units[call.buf], self._slot()
        offsets = tuple(whole.start + offset * unit for offset in call.offsets)
        self.add(StartAllgatherv(True, whole.buffer, offsets, slot), whole.buffer)
        return [slot], unpack

    # -- rounds

    def rounds(
        self, rounds: Sequence[Round], first_copies: Sequence[tuple[Runs, Runs]] = ()
    ) -> None:
        """Compile all rounds, and `first_copies` behind the sends of the first round.

        Receives are posted up to a few rounds ahead, if nothing touches their memory
        until the round of the message. Each message has scratch of its own.
        """
        rounds = rounds or [Round()]
        receives = _Receives(self, rounds)
        self.node = buffer_size(rounds, "node") * self.layouts.units.get("node", 1)
        for k, round_ in enumerate(rounds):
            receives.post(k)
            slots: list[int] = []
            unpacking = receives.unpacking[k]
            for message in round_.comm:
                if isinstance(message, Send):
                    slots += self.send(message.to, message.data)
                elif isinstance(message, Library):
                    gather_slots, unpack = self.gather(message)
                    slots += gather_slots
                    unpacking.append(unpack)
            early, late = meanwhile(round_) if round_.comm else ((), round_.then)
            if k == 0:
                for copy in first_copies:
                    self.copy(*copy)
                self._copies_own_block = False
            self.local_steps(early)
            slots += receives.slots[k]
            if slots:
                self.add(Await(tuple(slots), k + 1))
            for unpack in unpacking:
                unpack()
            self.local_steps(late)
            if round_.meet:
                self.meet(k + 1)

    def meet(self, round_number: int) -> None:
        """Add a meeting; at the first meeting the ranks compare their contributions."""
        ranks = self._ranks
        self._meetings += 1
        step = Meet(ranks.ranges, self._meetings, round_number)
        if self._meetings == 1:
            step = step._replace(
                contribution=ranks.contribution, expected=ranks.expected
            )
        self.add(step, NODE)


class _Receives:
    """The receives of all rounds, and the round in which each is posted."""

    def __init__(self, compiler: Compiler, rounds: Sequence[Round]) -> None:
        self._compiler = compiler
        #: by the round of the post: the round of the message, and the message
        self._due: list[list[tuple[int, Recv]]] = [[] for _ in rounds]
        #: by the round of the message: slots to await, and the copies that follow
        self.slots: list[list[int]] = [[] for _ in rounds]
        self.unpacking: list[list[Callable[[], None]]] = [[] for _ in rounds]
        for k, (round_, posts) in enumerate(zip(rounds, posting(rounds), strict=True)):
            messages = (x for x in round_.comm if isinstance(x, Recv))
            for message, post_index in zip(messages, posts, strict=True):
                self._due[post_index].append((k, message))

    def post(self, round_index: int) -> None:
        """Compile the receives posted in a round."""
        for k, message in self._due[round_index]:
            slots, unpack = self._compiler.post(message.frm, message.data)
            self.slots[k] += slots
            self.unpacking[k].append(unpack)


def _nothing() -> None:
    pass


def _selection(runs: Sequence[Run]) -> Selection:
    starts = np.array([run.start for run in runs], np.int64)
    stops = np.array([run.stop for run in runs], np.int64)
    return select(starts, stops - starts)


def _typed(runs: Sequence[Run], longest: int) -> Selection | None:
    """The selection of a message that MPI should take by a datatype, if any."""
    if len({run.buffer for run in runs}) > 1:
        return None
    nbytes = sum(run.stop - run.start for run in runs)
    selection = _selection(runs) if nbytes <= longest else None
    return selection if selection is not None and selection.is_typed else None
