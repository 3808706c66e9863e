"""Rounds of a redistribution bound to fields: persistent requests, packing, copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

from ...redistribution.runs import some_of
from ...schedules.ir import Copy, Data, Local, Pieces, Recv, Round, Send, Steps
from ...schedules.program import extent
from ..engine.flow import Arrival, Exchange, Flow, Part, Slot
from ..engine.plan import Plan, Stage, Step, each
from ..memory import memory
from ..memory.libraries import NUMPY, Library
from ..memory.memory import Piece
from ..waiting.waiting import Limit, wait
from . import fields
from .fields import Array

#: bytes: as many sends of a round are under way at once, in their order, as are no more
#: than this together. On a lab of 8 + 8 hosts at 50 Mbit/s, long messages one by one
#: take 1.08 to 1.09 of the limit, two or four at once 1.2 (MPICH 5.0, Open MPI 5.0)
FLIGHT = 1 << 16


class Binder:
    """Makes a plan of rounds, for arrays by the buffer that they are."""

    def __init__(
        self,
        arrays: dict[str, Sequence[Array]],
        comm: MPI.Intracomm,
        tag: int,
        cut: int,
        combine: Callable[[np.ndarray, np.ndarray], Any] | None,
        by: Library,
        flow: Flow | None = None,
    ) -> None:
        """Messages of more than `cut` bytes, if it is given, are sent in several; a
        library packs; a flow finds what is copied from and to a device."""
        self.by, self.flow = by, flow
        self.arrays, self.comm, self.tag, self.cut = arrays, comm, tag, cut
        self.combine = combine
        self.scratch: list[Any] = []

    def room(self, nbytes: int) -> Any:
        """Memory of our own, where the fields are."""
        self.scratch.append(found := self.by.room(nbytes))
        return found

    def parts(self, c: Send | Recv) -> list[Part]:
        """A message, in as many parts as it is sent; both ends cut alike."""
        buf, start, size = runs_of(c.data)
        unit = sum(x.dtype.itemsize for x in self.arrays[buf])
        most = max(self.cut // max(unit, 1), 1)
        if not self.cut or int(size.sum()) <= most:
            return [self.message(c, buf, start, size)]
        found = []
        for low in range(0, int(size.sum()), most):
            some = some_of(start, size, low, low + most)
            found.append(self.message(c, buf, *some))
        return found

    def message(
        self, c: Send | Recv, buf: str, start: np.ndarray, size: np.ndarray
    ) -> Part:
        """A message of the elements of all fields, one field after the other."""
        places = [fields.place(x, start, size) for x in self.arrays[buf]]
        packed = sum(x.nbytes for x in places if not x.is_direct)
        at = self.by.address(self.room(packed)) if packed else 0
        copies: list[Step] = []
        parts: list[tuple[int, int, MPI.Datatype]] = []
        for x in places:
            if x.is_direct:
                parts.append(x.datatype())
                continue
            copies.append(x.copier(at, unpack=isinstance(c, Recv)))
            parts.append(memory.spec([(at, x.nbytes)]))
            at += x.nbytes
        nbytes = sum(x.nbytes for x in places)
        peer = c.frm if isinstance(c, Recv) else c.to
        made = Part(self._request(c, _one(parts)), peer, nbytes, copies)
        if self.flow is not None:
            made.pieces = [x.span for x in places]
        return made

    def _request(
        self, c: Send | Recv, spec: tuple[int, int, MPI.Datatype]
    ) -> MPI.Prequest:
        base, count, datatype = spec
        buffer = [memory.buffer(base), count, datatype]
        if isinstance(c, Recv):
            request = self.comm.Recv_init(buffer, c.frm, self.tag)
        else:
            request = self.comm.Send_init(buffer, c.to, self.tag)
        memory.release(datatype)
        return request

    def _come(self, pieces: Sequence[Piece]) -> list[Step]:
        """What waits until some memory is there, if it is copied from a device."""
        number = -1 if self.flow is None else self.flow.reads(pieces)
        if self.flow is None or number < 0:
            return []
        # a copy on this machine comes to its end
        return [partial(wait, Arrival(self.flow, number, self.comm), Limit())]

    def steps(self, local: Sequence[Local], stage: Stage) -> list[Step]:
        """Local steps of a stage."""
        if not local:
            return []
        assert isinstance(local, Steps)  # as an exchange has them
        found: list[Step] = []
        start, at, size = local.src.start, local.dst.start, local.src.size
        ends = self.arrays[local.src.buf], self.arrays[local.dst.buf]
        for x, y in zip(*ends, strict=True):
            if self.flow is not None:
                places = fields.place(x, start, size), fields.place(y, at, size)
                reads, writes = ([place.span] for place in places)
                found += self._come(reads if local.kind is Copy else reads + writes)
                self.flow.writes(writes, stage)
            if local.kind is Copy:
                found.append(fields.copier(x, start, y, at, size, self.room))
            else:
                found.append(self._reduce(x, start, y, at, size))
        return found

    def _reduce(
        self, x: Array, start: np.ndarray, y: Array, at: np.ndarray, size: np.ndarray
    ) -> Step:
        """dst := src (op) dst, on the host."""
        assert self.combine is not None
        n = int(size.sum()) * x.dtype.itemsize
        left, right = (self.room(n).view(x.dtype) for _ in "xy")
        source, target = fields.place(x, start, size), fields.place(y, at, size)
        result = self.by.address(right)
        return partial(
            each,
            (
                source.copier(self.by.address(left)),
                target.copier(result),
                partial(self.combine, left, right),
                target.copier(result, unpack=True),
            ),
        )

    def stages(self, r: Round) -> tuple[list[Step], list[Stage]]:
        """What must be packed before a round, and its stages: all receives are posted,
        and sends follow each other; what came is unpacked while others come."""
        receives = [x for c in r.comm if isinstance(c, Recv) for x in self.parts(c)]
        sends = _flights([self.parts(c) for c in r.comm if isinstance(c, Send)])
        if self.flow is not None:
            return [], self._exchange(r, sends, receives, self.flow)
        stage = Stage(start=[x.request for x in receives])
        found, first = [stage], list[Step]()
        for k, flight in enumerate(sends):
            for i, x in enumerate(flight):
                if not (k or i):
                    first = x.copies
                elif x.copies or not i:
                    stage.meanwhile += x.copies  # packed while others are sent
                    found.append(stage := Stage())
                stage.start.append(x.request)
            stage.wait += [x.request for x in flight]
            stage.peers += [x.peer for x in flight]
        for x in receives:
            stage.wait.append(x.request)
            stage.peers.append(x.peer)
            if x.copies:
                stage.then += x.copies
                found.append(stage := Stage())
        stage.then += self.steps(r.then, stage)
        return first, found

    def _exchange(
        self, r: Round, sends: list[list[Part]], receives: list[Part], flow: Flow
    ) -> list[Stage]:
        """The stages of a round with fields on a device."""
        before = 0
        for flight in sends:
            for x in flight:
                x.number, x.after = flow.reads(x.pieces), before
            before += len(flight)
        for x in receives:
            flow.writes(x.pieces, x)
        made = Exchange(flow, [x for flight in sends for x in flight], receives)
        last = Stage()
        last.then += self.steps(r.then, last)
        return [Stage(meet=made, held=made.requests), last]


def _flights(sends: Sequence[list[Part]]) -> list[list[Part]]:
    """Messages, each in its parts, that are under way at once."""
    found: list[list[Part]] = []
    room = 0
    for parts in sends:
        nbytes = sum(x.nbytes for x in parts)
        if not found or nbytes > room:
            found.append([])
            room = FLIGHT
        found[-1] += parts
        room -= nbytes
    return found


def runs_of(data: Data) -> tuple[str, np.ndarray, np.ndarray]:
    """The buffer of a message, and its runs there."""
    if isinstance(data, Pieces):
        buf, start, size = data.buf, data.start, data.size
    else:
        (buf,) = {x.buf for x in data}
        start, size = (
            np.array([getattr(x, y) for x in data]) for y in ("start", "size")
        )
    keep = size > 0
    return buf, start[keep], size[keep]


def _one(
    parts: Sequence[tuple[int, int, MPI.Datatype]],
) -> tuple[int, int, MPI.Datatype]:
    """The parts of a message as one, by their addresses; those in one piece where they
    follow each other."""
    merged: list[tuple[int, int, MPI.Datatype]] = []
    for base, n, kind in parts:
        if merged and kind == MPI.BYTE == merged[-1][2] and sum(merged[-1][:2]) == base:
            base, n = merged[-1][0], merged.pop()[1] + n
        merged.append((base, n, kind))
    if len(merged) <= 1:
        return merged[0] if merged else (0, 0, MPI.BYTE)
    bases, counts, kinds = zip(*merged, strict=True)
    first = min(bases)
    found = MPI.Datatype.Create_struct(counts, [x - first for x in bases], kinds)
    for kind in kinds:
        memory.release(kind)
    return first, 1, found.Commit()


def bind(
    crossing: Sequence[Round],
    spreading: Sequence[Round],
    source: Sequence[Array],
    target: Sequence[Array],
    comm: MPI.Intracomm,
    limit: Limit,
    tag: int,
    cut: int = 0,
    combine: Callable[[np.ndarray, np.ndarray], Any] | None = None,
    between: Sequence[Step] = (),
    by: Library = NUMPY,
    slot: Slot | None = None,
) -> Plan:
    """A plan of the rounds, with steps between them; a library packs, or a slot has the
    copies of fields on a device."""
    arrays: dict[str, Sequence[Array]] = {"send": source, "recv": target}
    flow = None if slot is None else Flow(slot)
    binder = Binder(arrays, comm, tag, cut, combine, by, flow)
    if n := extent(crossing, "tmp"):
        room = [binder.room(n * x.dtype.itemsize).view(x.dtype) for x in target]
        arrays["tmp"] = [fields.array_of(x) for x in room]
    before: list[Step] = []
    stages: list[Stage] = []
    for some, last in ((crossing, between), (spreading, ())):
        for r in some:
            first, found = binder.stages(r)
            if stages:
                stages[-1].then += first
            else:
                before += first
            stages += found
        if stages:
            stages[-1].then += last
            if flow is not None and last:
                flow.writes([x.span for x in target], stages[-1])
    if flow is None:
        return Plan(stages, limit, before, scratch=binder.scratch)
    flow.complete(stages)
    plan = Plan(stages, limit, [flow.begin, *before], [flow.end], binder.scratch)
    plan.slot = slot
    return plan
