"""From the rounds of a schedule to a plan: the one place where rounds become steps.

A schedule speaks of elements of "send", "recv", "tmp" and "node"; a step speaks of
bytes of an operation's buffers. Where the blocks of a call lie in the user's memory is
a value that the call is known by, so it is compiled in.

Each message is one run of bytes. A message whose bytes lie in several places is copied
through scratch, so that the plan needs no datatype of MPI, which somebody would have to
free while operations may still use it; if it is long and its runs are too, a datatype
is made for each message instead (see `PostTyped`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from ...schedules.early_receives import posting
from ...schedules.ir import (
    Copy as CopySpan,
    Data,
    Library,
    Local,
    Recv,
    Round,
    Send as SendSpans,
    Steps,
)
from ...schedules.program import extent, meanwhile
from ..buffers.selection import Selection, select
from .layouts import Layouts, joined, matched
from .steps import (
    NODE,
    SAID,
    SEND,
    TMP,
    Await,
    Copy,
    Enter,
    Gather,
    LongCopy,
    Meet,
    Pack,
    Post,
    PostTyped,
    Reduce,
    Run,
    Send,
    SendTyped,
    Step,
    Unpack,
)

Runs: TypeAlias = Sequence[Run]
#: the longest message; longer ones are cut, since an int counts its bytes
LONGEST_MESSAGE_BYTES = 1 << 30
#: where scratch for one message begins: aligned for every basic type
SCRATCH_ALIGNMENT = 64
#: bytes that are copied in a few microseconds, in which no other thread must go on
LONG_COPY_BYTES = 1 << 16
#: up to so many runs are copied one by one, in half a microsecond each; more are packed
#: by numpy, which takes three microseconds for any number
FEW_RUNS = 6
#: elements that an operator combines in one call at most, as an int counts them
MOST_REDUCED = 1 << 30


@dataclass(frozen=True, slots=True)
class Ranks:
    """How a rank meets others, and who of them is in the half of the node memory."""

    #: places on the node of those who meet, as ranges
    meeting: tuple[tuple[int, int], ...] = ()
    #: what this rank contributes in bytes, and what the others do by ranges, as words
    contribution: int = -1
    expected: list[bytes] | None = None


class Compiler:
    """The steps so far, and where the next message finds its slot and its scratch."""

    def __init__(
        self,
        layouts: Layouts,
        ranks: Ranks,
        *,
        scratch: int = 0,
        element: int = 1,
        cut: int = 0,
    ) -> None:
        """Of a call whose operator, if it has one, combines elements of so many bytes;
        messages of more than `cut` bytes, if it is given, are sent in several."""
        self.layouts, self._ranks, self._element = layouts, ranks, element
        self._longest = cut or LONGEST_MESSAGE_BYTES
        self.steps: list[Step] = []
        self.slots, self.scratch, self.node = 0, scratch, 0
        self.writes = False
        self._has_entered, self._meetings = False, 0
        #: whether this rank's own block is yet to be copied to where it belongs, and is
        #: sent from where the user has it
        self._copies_own_block = True

    def add(self, step: Step, *buffers: int) -> None:
        """A step on some buffers; the half of the node memory is entered before the
        first one that touches it, and no earlier."""
        if NODE in buffers and not self._has_entered:
            self._has_entered = True
            self.steps.append(Enter())
        self.steps.append(step)

    # -- local steps

    def copy(self, source: Sequence[Run], target: Sequence[Run]) -> None:
        """Bytes from some runs to others, unless they are there already."""
        if source == target:
            return
        pairs = list(matched(source, target))
        self._note_written(target)
        if len(pairs) > FEW_RUNS and self._copy_packed(source, target):
            return
        for (x, a, b), (y, c, d) in pairs:
            kind = LongCopy if b - a > LONG_COPY_BYTES else Copy
            self.add(kind(x, slice(a, b), y, slice(c, d)), x, y)

    def _copy_packed(self, source: Sequence[Run], target: Sequence[Run]) -> bool:
        """Copy many runs by numpy, where each side lies in one buffer; whether that
        is so. Both sides in many runs go through scratch."""
        if len({run.buffer for run in source}) > 1:
            return False
        if len({run.buffer for run in target}) > 1:
            return False
        x, y = source[0].buffer, target[0].buffer
        if len(source) == 1:
            self.add(Unpack(x, source[0].start, y, _selection(target)), x, y)
        elif len(target) == 1:
            self.add(Pack(x, _selection(source), y, target[0].start), x, y)
        else:
            bounce = self.bounce(sum(run.stop - run.start for run in source))
            self.add(Pack(x, _selection(source), TMP, bounce.start), x)
            self.add(Unpack(TMP, bounce.start, y, _selection(target)), y)
        return True

    def local(self, step: Local) -> None:
        """A copy or a reduction inside the memory of the rank."""
        source, target = (
            joined(self.layouts.placed(span)) for span in (step.src, step.dst)
        )
        if isinstance(step, CopySpan):
            self.copy(source, target)
            return
        self._note_written(target)
        most = MOST_REDUCED * self._element
        for (x, a, b), (y, c, _) in matched(source, target):
            for at in range(0, b - a, most):
                count = min(b - a - at, most) // self._element
                self._reduce((x, a + at), (y, c + at), count)

    def _reduce(self, source: tuple[int, int], target: tuple[int, int], n: int) -> None:
        """A reduction; one step with that before if both have the same target, as the
        step itself takes as long as to combine a few kilobytes."""
        last = self.steps[-1] if self.steps else None
        place = *target, n
        if isinstance(last, Reduce) and last[1:4] == place:
            self.steps[-1] = last._replace(sources=(*last.sources, source))
            return
        self.add(Reduce((source,), *target, n), source[0], target[0])

    def local_steps(self, steps: Sequence[Local]) -> None:
        """All local steps of a round."""
        if isinstance(steps, Steps) and steps.kind is CopySpan:
            self.copy(self.layouts.runs(steps.src), self.layouts.runs(steps.dst))
            return
        for step in steps:
            self.local(step)

    # -- messages

    def bounce(self, nbytes: int) -> Run:
        """Scratch for a message whose bytes lie in several places."""
        start = -(-self.scratch // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT
        self.scratch = start + nbytes
        return Run(TMP, start, self.scratch)

    def send(self, rank: int, data: Data) -> list[int]:
        """A message to a rank; its slots."""
        runs = self.layouts.runs(data, is_sent=self._copies_own_block)
        if len(runs) > 1:
            if (selection := _typed(runs, self._longest)) is not None:
                buffer = runs[0].buffer
                slot = self._slot()
                self.add(SendTyped(rank, buffer, selection, slot), buffer)
                return [slot]
            bounce = self.bounce(sum(run.stop - run.start for run in runs))
            self.copy(runs, [bounce])
            runs = [bounce]
        return self._message(Send, rank, runs[0] if runs else Run(SAID, 0, 0))

    def post(self, rank: int, data: Data) -> tuple[list[int], Callable[[], None]]:
        """A receive from a rank: its slots, and what puts its bytes in their places."""
        runs = self.layouts.runs(data)
        self._note_written(runs)
        if len(runs) <= 1:
            run = runs[0] if runs else Run(SAID, 0, 0)
            return self._message(Post, rank, run), _nothing
        if (selection := _typed(runs, self._longest)) is not None:
            buffer, slot = runs[0].buffer, self._slot()
            self.add(PostTyped(rank, buffer, selection, slot), buffer)
            return [slot], _nothing
        bounce = self.bounce(sum(run.stop - run.start for run in runs))
        return self._message(Post, rank, bounce), partial(self.copy, [bounce], runs)

    def _message(self, kind: type[Post | Send], rank: int, run: Run) -> list[int]:
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

    def gather(self, c: Library) -> tuple[list[int], Callable[[], None]]:
        """The MPI library's own allgather in a group, of blocks side by side: its slot,
        and what puts them where they belong."""
        runs = self.layouts.runs((c.whole,))
        self._note_written(runs)
        run, unpack = runs[0] if runs else Run(SAID, 0, 0), _nothing
        if len(runs) > 1:
            run = self.bounce(sum(x.stop - x.start for x in runs))
            self.copy(runs, [run])
            unpack = partial(self.copy, [run], runs)
        unit, slot = self.layouts.units[c.buf], self._slot()
        offsets = tuple(run.start + offset * unit for offset in c.offsets)
        self.add(Gather(True, run.buffer, offsets, slot), run.buffer)
        return [slot], unpack

    def _note_written(self, runs: Iterable[Run]) -> None:
        self.writes |= any(run.buffer not in (SEND, TMP, NODE, SAID) for run in runs)

    # -- rounds

    def rounds(
        self, rounds: Sequence[Round], first_copies: Sequence[tuple[Runs, Runs]] = ()
    ) -> None:
        """All rounds, with copies that need not wait for the messages of the first.

        Receives are posted up to a few rounds ahead, where nothing touches their memory
        till then; scratch for messages is each message's own.
        """
        rounds = rounds or [Round()]
        receives = _Receives(self, rounds)
        self.node = extent(rounds, "node") * self.layouts.units.get("node", 1)
        for k, r in enumerate(rounds):
            receives.post(k)
            slots: list[int] = []
            unpacking = receives.unpacking[k]
            for c in r.comm:
                if isinstance(c, SendSpans):
                    slots += self.send(c.to, c.data)
                elif isinstance(c, Library):
                    slot, unpack = self.gather(c)
                    slots += slot
                    unpacking.append(unpack)
            early, late = meanwhile(r) if r.comm else ((), r.then)
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
            if r.meet:
                self.meet(k + 1)

    def meet(self, round_number: int) -> None:
        """A meeting; at the first one the sizes are compared."""
        ranks = self._ranks
        self._meetings += 1
        step = Meet(ranks.meeting, self._meetings, round_number)
        if self._meetings == 1:
            step = step._replace(
                contribution=ranks.contribution, expected=ranks.expected
            )
        self.add(step, NODE)


class _Receives:
    """The receives of all rounds, each to be posted in some round."""

    def __init__(self, compiler: Compiler, rounds: Sequence[Round]) -> None:
        self._compiler = compiler
        self._due: list[list[tuple[int, Recv]]] = [[] for _ in rounds]
        #: of each round, what it waits for, and what is done with it then
        self.slots: list[list[int]] = [[] for _ in rounds]
        self.unpacking: list[list[Callable[[], None]]] = [[] for _ in rounds]
        for k, (r, whens) in enumerate(zip(rounds, posting(rounds), strict=True)):
            messages = (c for c in r.comm if isinstance(c, Recv))
            for message, when in zip(messages, whens, strict=True):
                self._due[when].append((k, message))

    def post(self, round_index: int) -> None:
        """Post what is due in a round."""
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
    """The selection of a message that MPI takes by a datatype, if it should."""
    if len({run.buffer for run in runs}) > 1:
        return None
    nbytes = sum(run.stop - run.start for run in runs)
    selection = _selection(runs) if nbytes <= longest else None
    return selection if selection is not None and selection.is_typed else None
