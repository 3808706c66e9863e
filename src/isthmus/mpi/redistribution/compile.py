"""From the rounds of a redistribution to a plan, for fields of any strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...redistribution.runs import some_of
from ...schedules.ir import Copy, Data, Local, Pieces, Recv, Round, Send, Steps
from ...schedules.program import extent
from ..buffers.selection import Selection
from ..plan.compile import LONGEST_MESSAGE_BYTES, SCRATCH_ALIGNMENT
from ..plan.steps import (
    TMP,
    Await,
    AwaitSized,
    Divide,
    Move,
    Pack,
    Post,
    PostTyped,
    Reduce,
    Send as SendRun,
    SendTyped,
    Step,
    Unpack,
)
from .fields import Field, select_pairs

#: bytes: as many sends of a round are under way at once, in their order, as are no more
#: than this together. On a lab of 8 + 8 hosts at 50 Mbit/s, long messages one by one
#: take 1.08 to 1.09 of the limit, two or four at once 1.2 (MPICH 5.0, Open MPI 5.0)
FLIGHT_BYTES = 1 << 16
#: bytes of a message from which on several fields go in a message each: to pack them
#: into one takes longer than another start-up
SEPARATE_FIELDS_BYTES = 1 << 16


class FieldsCompiler:
    """The steps so far of a redistribution."""

    def __init__(
        self,
        source: Sequence[Field],
        target: Sequence[Field],
        *,
        cut: int,
        is_typed: bool,
    ) -> None:
        """Messages of more than `cut` bytes, if it is given, are sent in several; long
        runs are sent by datatypes of MPI, if its memory is the host's."""
        self._fields = {"send": source, "recv": target}
        self._cut = min(cut or LONGEST_MESSAGE_BYTES, LONGEST_MESSAGE_BYTES)
        self._is_typed = is_typed
        self.steps: list[Step] = []
        self.slots = self.scratch = 0

    def tmp(self, elements: int) -> None:
        """Scratch for so many elements of each target field, as the buffer "tmp"."""
        fields = []
        for x in self._fields["recv"]:
            strides = (x.dtype.itemsize,)
            start = self._room(elements * x.dtype.itemsize)
            fields.append(Field((elements,), strides, x.dtype, TMP, start))
        self._fields["tmp"] = fields

    def _room(self, nbytes: int) -> int:
        start = -(-self.scratch // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT
        self.scratch = start + nbytes
        return start

    def _slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    # -- messages

    def _messages(self, c: Send | Recv) -> list[list[tuple[Field, Selection]]]:
        """A message, as the parts in which it goes; both ends cut alike, since both
        know the elements and the types of all fields."""
        name, start, size = runs_of(c.data)
        fields = self._fields[name]
        unit = sum(x.dtype.itemsize for x in fields)
        total = int(size.sum())
        most = max(self._cut // max(unit, 1), 1)
        parts = []
        for low in range(0, total, most) or [0]:
            piece = (
                some_of(start, size, low, low + most) if total > most else (start, size)
            )
            selected = [(x, x.select(*piece)) for x in fields]
            if total * unit >= SEPARATE_FIELDS_BYTES:
                parts += [[one] for one in selected]
            else:
                parts.append(selected)
        return parts

    def _sends(self, c: Send) -> list[tuple[list[Step], Step, int]]:
        """Of each part of a message: what packs it, its send, and its bytes."""
        result: list[tuple[list[Step], Step, int]] = []
        for part in self._messages(c):
            nbytes = sum(selection.nbytes for _, selection in part)
            slot, direct = self._slot(), self._direct(part)
            if direct is not None:
                x, selection = direct
                start = int(selection.offsets[0]) if len(selection.offsets) else 0
                send: Step = SendRun(c.to, x.buffer, start, nbytes, slot)
                result.append(([], send, nbytes))
                continue
            if self._typed(part):
                x, selection = part[0]
                send = SendTyped(c.to, x.buffer, selection, slot)
                result.append(([], send, nbytes))
                continue
            at = first = self._room(nbytes)
            packing: list[Step] = []
            for x, selection in part:
                packing.append(Pack(x.buffer, selection, TMP, at))
                at += selection.nbytes
            result.append((packing, SendRun(c.to, TMP, first, nbytes, slot), nbytes))
        return result

    def _posts(self, c: Recv) -> list[tuple[Step, AwaitSized, list[Step]]]:
        """Of each part of a message: its receive, its end, and what unpacks it."""
        result: list[tuple[Step, AwaitSized, list[Step]]] = []
        for part in self._messages(c):
            nbytes = sum(selection.nbytes for _, selection in part)
            slot, direct = self._slot(), self._direct(part)
            end = AwaitSized(slot, c.frm, nbytes, 1)
            if direct is not None:
                x, selection = direct
                start = int(selection.offsets[0]) if len(selection.offsets) else 0
                post: Step = Post(c.frm, x.buffer, start, nbytes, slot)
                result.append((post, end, []))
                continue
            if self._typed(part):
                x, selection = part[0]
                post = PostTyped(c.frm, x.buffer, selection, slot)
                result.append((post, end, []))
                continue
            at = first = self._room(nbytes)
            unpacking: list[Step] = []
            for x, selection in part:
                unpacking.append(Unpack(TMP, at, x.buffer, selection))
                at += selection.nbytes
            result.append((Post(c.frm, TMP, first, nbytes, slot), end, unpacking))
        return result

    def _direct(
        self, part: Sequence[tuple[Field, Selection]]
    ) -> tuple[Field, Selection] | None:
        """The one field of a message whose bytes are one run there."""
        if len(part) == 1 and len(part[0][1].lengths) <= 1:
            return part[0]
        return None

    def _typed(self, part: Sequence[tuple[Field, Selection]]) -> bool:
        return self._is_typed and len(part) == 1 and part[0][1].is_typed

    # -- rounds

    def add(self, r: Round) -> None:
        """A round: all receives are posted, sends follow each other in flights; what
        came is unpacked while others come."""
        posts = [x for c in r.comm if isinstance(c, Recv) for x in self._posts(c)]
        sends = [x for c in r.comm if isinstance(c, Send) for x in self._sends(c)]
        self.steps += [post for post, _, _ in posts]
        under_way: list[int] = []
        for flight in _flights(sends):
            for packing, _, _ in flight:
                self.steps += packing
            if under_way:
                self.steps.append(Await(tuple(under_way), 1))
            self.steps += [send for _, send, _ in flight]
            under_way = [send.slot for _, send, _ in flight]
        for _, end, unpacking in posts:
            self.steps += [end, *unpacking]
        if under_way:
            self.steps.append(Await(tuple(under_way), 1))
        self.local(r.then)

    def local(self, steps: Sequence[Local]) -> None:
        """Local steps of a round, as an exchange has them: all of one kind."""
        if not steps:
            return
        assert isinstance(steps, Steps)
        start, at, size = steps.src.start, steps.dst.start, steps.src.size
        ends = self._fields[steps.src.buf], self._fields[steps.dst.buf]
        for k, (x, y) in enumerate(zip(*ends, strict=True)):
            if steps.kind is Copy:
                read, written = select_pairs(x, start, y, at, size)
                self.steps.append(Move(x.buffer, read, y.buffer, written))
            else:
                self._reduce(k, x.select(start, size), x, y.select(at, size), y)

    def _reduce(
        self, k: int, read: Selection, x: Field, written: Selection, y: Field
    ) -> None:
        """target := source (op) target, of elements side by side."""
        left, right = self._room(read.nbytes), self._room(written.nbytes)
        count = read.nbytes // x.dtype.itemsize
        self.steps += [
            Pack(x.buffer, read, TMP, left),
            Pack(y.buffer, written, TMP, right),
            Reduce(TMP, left, TMP, right, count, k),
            Unpack(TMP, right, y.buffer, written),
        ]

    def divide(self, x: Field, divisors: np.ndarray) -> None:
        """Divide sums by how many there are."""
        if divisors.size:
            shaped = divisors.reshape(x.shape)
            self.steps.append(Divide(x.buffer, x.first, x.strides, x.dtype, shaped))


def runs_of(data: Data) -> tuple[str, np.ndarray, np.ndarray]:
    """The buffer of a message, and its runs there."""
    if isinstance(data, Pieces):
        name, start, size = data.buf, data.start, data.size
    else:
        (name,) = {x.buf for x in data}
        start, size = (
            np.array([getattr(x, end) for x in data]) for end in ("start", "size")
        )
    keep = size > 0
    return name, start[keep], size[keep]


def _flights(
    sends: Sequence[tuple[list[Step], Any, int]],
) -> list[list[tuple[list[Step], Any, int]]]:
    """Messages that are under way at once."""
    flights: list[list[tuple[list[Step], Any, int]]] = []
    room = 0
    for send in sends:
        nbytes = send[2]
        if not flights or nbytes > room:
            flights.append([])
            room = FLIGHT_BYTES
        flights[-1].append(send)
        room -= nbytes
    return flights


def compiled(
    crossing: Sequence[Round],
    spreading: Sequence[Round],
    source: Sequence[Field],
    target: Sequence[Field],
    divisors: np.ndarray | None,
    *,
    cut: int,
    is_typed: bool,
) -> FieldsCompiler:
    """The steps of the rounds, with a division of the sums between them."""
    compiler = FieldsCompiler(source, target, cut=cut, is_typed=is_typed)
    if n := extent(crossing, "tmp"):
        compiler.tmp(n)
    for r in crossing:
        compiler.add(r)
    if divisors is not None:
        for x in target:
            compiler.divide(x, divisors)
    for r in spreading:
        compiler.add(r)
    return compiler
