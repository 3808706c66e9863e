"""Calls of every collective between two groups, and what they must give."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from mpi4py import MPI

from groups import Pair, same
from isthmus.collectives.records import record_of
from isthmus.schedules import registry

ROOTED = ["Bcast", "Reduce", "Gather", "Gatherv", "Scatter", "Scatterv"]
MUTUAL = [
    "Allreduce",
    "Reduce_scatter",
    "Reduce_scatter_block",
    "Alltoall",
    "Alltoallv",
    "Alltoallw",
    "Barrier",
]
OPERATIONS = [*ROOTED, *MUTUAL, "Allgather", "Allgatherv"]
REDUCING = [x for x in OPERATIONS if "educe" in x]

#: how many elements a rank contributes, by its number
KINDS = {
    "equal": lambda i: 4,
    "zeros": lambda i: (3 * i) % 5,
    "giant": lambda i: 1201 if i == 1 else 1,
    "some": lambda i: 40,
    "long": lambda i: 997,
    "empty": lambda i: 0,
}
_PRIME = 65521


def names(op: str, commutative: bool = True) -> list[str]:
    """The algorithms for an operation."""
    found = registry.algorithms(record_of(op, 2).name)
    return ["auto", *(a.name for a in found if commutative or not a.commutative)]


def chain(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x after y, of functions a t + b modulo a prime: associative, in order only."""
    a, b, c, d = x >> 20, x & 0xFFFFF, y >> 20, y & 0xFFFFF
    return (a * c % _PRIME) << 20 | (a * d + b) % _PRIME


def _in_order(inbuf: Any, inoutbuf: Any, datatype: MPI.Datatype) -> None:
    y = np.frombuffer(inoutbuf, "i8")
    y[:] = chain(np.frombuffer(inbuf, "i8"), y)


def in_order() -> MPI.Op:
    """An operator that is not commutative, for 8-byte integers."""
    return MPI.Op.Create(_in_order, commute=False)


@dataclass
class Case:
    """The arguments of one call on one rank, and what must be in its buffer then."""

    args: tuple[Any, ...]
    out: np.ndarray | None = None
    wanted: np.ndarray | None = None

    def clear(self) -> None:
        if self.out is not None:
            self.out.view("u1")[:] = 0xEE

    @property
    def fault(self) -> str:
        """What is wrong with the buffer."""
        if self.out is None or same(self.out, self.wanted):
            return ""
        return f"{self.out!r} is not {self.wanted!r}"


def data(rank: int, n: int, dtype: str = "i8", turn: int = 0) -> np.ndarray:
    """What a rank has: different in every rank, place and turn.

    MPI does not say what a sum is that overflows, so that of 7 ranks never does.
    """
    found = np.arange(n) * 7 + 131 * rank + 17 * turn + 1
    if np.dtype(dtype).kind in "iu":
        found %= np.iinfo(dtype).max // 7
    return found.astype(dtype)


@dataclass(frozen=True)
class Kit:
    """What the calls of a test have in common."""

    groups: Pair
    dtype: str = "i8"
    op: MPI.Op = field(default_factory=lambda: MPI.SUM)
    combine: Any = np.add
    turn: int = 0

    @property
    def here(self) -> range:
        n, p, there = self.groups.world.size, self.groups.p, self.groups.there
        return range(p, n) if there.start == 0 else range(p)

    def of(self, rank: int, n: int) -> np.ndarray:
        return data(rank, n, self.dtype, self.turn)

    def room(self, n: int) -> np.ndarray:
        return np.full(n, -1).astype(self.dtype)

    def combined(self, ranks: range, n: int) -> np.ndarray:
        """The contributions of some ranks, in order."""
        return reduce(self.combine, (self.of(i, n) for i in ranks))


def call(kit: Kit, op: str, kind: str, root: int = 0) -> Case:
    """One rank's arguments of an operation; the root is a number of either group."""
    if op in ROOTED:
        return _rooted(kit, op, KINDS[kind], root)
    return _mutual(kit, op, KINDS[kind])


def _rooted(kit: Kit, op: str, count: Any, root: int) -> Case:
    me, there = kit.groups.world.rank, kit.groups.there
    at = root - there.start if root in there else MPI.PROC_NULL
    at = MPI.ROOT if root == me else at
    leaves = there if at == MPI.ROOT else kit.here
    v = op.endswith("v")
    counts = [count(i) if v else count(1) for i in leaves]
    own = 0 if at in (MPI.ROOT, MPI.PROC_NULL) else counts[me - leaves.start]
    n = count(1)
    if at == MPI.PROC_NULL:
        return Case(
            {"Bcast": (None, at), "Reduce": (None, None, kit.op, at)}.get(
                op, (None, None, at)
            )
        )
    if op == "Bcast":
        if at == MPI.ROOT:
            return Case((kit.of(me, n), at))
        out = kit.room(n)
        return Case((out, at), out, kit.of(root, n))
    if op == "Reduce":
        if at != MPI.ROOT:
            return Case((kit.of(me, n), None, kit.op, at))
        out = kit.room(n)
        return Case((None, out, kit.op, at), out, kit.combined(leaves, n))
    if op.startswith("Gather"):
        if at != MPI.ROOT:
            return Case((kit.of(me, own), None, at))
        out = kit.room(sum(counts))
        parts = [kit.of(i, k) for i, k in zip(leaves, counts, strict=True)]
        return Case((None, [out, counts] if v else out, at), out, np.concatenate(parts))
    if at == MPI.ROOT:
        all_of_it = kit.of(me, sum(counts))
        return Case(([all_of_it, counts] if v else all_of_it, None, at))
    out, start = kit.room(own), sum(counts[: me - leaves.start])
    return Case((None, out, at), out, kit.of(root, sum(counts))[start : start + own])


def _mutual(kit: Kit, op: str, count: Any) -> Case:
    me, there = kit.groups.world.rank, kit.groups.there
    if op == "Barrier":
        return Case(())
    if op == "Allreduce":
        n, out = count(1), kit.room(count(1))
        return Case((kit.of(me, n), out, kit.op), out, kit.combined(there, n))
    if op.startswith("Reduce_scatter"):
        return _reduce_scatter(kit, op, count)
    if op.startswith("Allgather"):
        counts = [count(i) if op[-1] == "v" else count(1) for i in there]
        out = kit.room(sum(counts))
        parts = [kit.of(i, k) for i, k in zip(there, counts, strict=True)]
        mine = kit.of(me, count(me) if op[-1] == "v" else count(1))
        spec = [out, counts] if op[-1] == "v" else out
        return Case((mine, spec), out, np.concatenate(parts))

    def block(i: int, j: int) -> np.ndarray:
        n = count(i + 2 * j) if op != "Alltoall" else count(1)
        return kit.of(i + 50 * j, n)

    sent, got = [block(me, j) for j in there], [block(i, me) for i in there]
    send, wanted = np.concatenate(sent), np.concatenate(got)
    out = kit.room(len(wanted))
    specs: list[Any] = [send, out]
    if op != "Alltoall":
        sizes = [[len(x) for x in y] for y in (sent, got)]
        specs = [[x, k] for x, k in zip(specs, sizes, strict=True)]
    if op == "Alltoallw":
        specs = [_in_bytes(kit, x, k) for x, k in specs]
    return Case(tuple(specs), out, wanted)


def _in_bytes(kit: Kit, x: np.ndarray, counts: list[int]) -> list[Any]:
    """A block to each, of its own type, at a place in bytes."""
    kinds = [MPI.BYTE, MPI.Datatype.fromcode(x.dtype.char)]
    types = [kinds[i % 2] for i in range(len(counts))]
    units = [x.itemsize if t is MPI.BYTE else 1 for t in types]
    displs = np.cumsum([0, *counts[:-1]]) * x.itemsize
    counts = [n * k for n, k in zip(counts, units, strict=True)]
    return [x, counts, displs.tolist(), types]


def _reduce_scatter(kit: Kit, op: str, count: Any) -> Case:
    me, here, there = kit.groups.world.rank, kit.here, kit.groups.there
    index = me - here.start
    if op.endswith("block"):
        each = count(1) * len(there)
        counts, total = [each] * len(here), each * len(here)
    else:
        total = sum(count(i) for i in range(kit.groups.world.size))
        shares = [count(i + 1) for i in here]
        cut = np.cumsum([0, *shares]).clip(max=total)
        cut[-1] = total
        counts = np.diff(cut).tolist()
    out, start = kit.room(counts[index]), sum(counts[:index])
    wanted = kit.combined(there, total)[start : start + counts[index]]
    more = () if op.endswith("block") else (counts,)
    return Case((kit.of(me, total), out, *more, kit.op), out, wanted)


def refuses(groups: Pair, op: str, form: str) -> bool:
    """Whether the library's own call is refused on some rank: MPICH 4.0 makes no
    Ireduce and no Reduce_init at the root, those before MPI 4 nothing persistent."""
    if form == "blocking":
        return False
    inter, args = groups.native.Dup(), call(Kit(groups), op, "equal").args
    make = getattr(inter, f"{op}_init" if form == "persistent" else f"I{op.lower()}")

    def made() -> MPI.Request | None:
        try:
            return make(*args)
        except (MPI.Exception, NotImplementedError):
            return None

    # A root that refuses must not leave messages that others have sent.
    first = form == "persistent" or op not in ROOTED or args[-1] == MPI.ROOT
    request = made() if first else None
    refused = groups.world.allreduce(first and request is None, MPI.LOR)
    if not refused and not first:
        request = made()
    if request is not None:
        request.Free() if form == "persistent" else request.Wait()
    inter.Free()
    return refused
