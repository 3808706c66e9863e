"""The buffers of every operation that can be measured, and what must arrive in them.

Across two groups the root of a rooted operation is rank 0 of group A. Inside one group,
what comes from the other group comes from the own one. Data have no
pattern: a block for the wrong rank, or from it, never looks right. Sums are exact in
any order: of small whole numbers, mostly as doubles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import lcm
from typing import Any, NamedTuple, TypeVar

import numpy as np
from mpi4py import MPI

from ..distributions import regular

Sizes = tuple[int, ...]
#: what vectors that are added up may consist of
ELEMENTS = tuple(map(np.dtype, ("f8", "f4", "u1")))


class Call(NamedTuple):
    """The arguments of a call, its receive buffer, and what must be there after it."""

    arguments: tuple[Any, ...]
    recv: np.ndarray
    expected: np.ndarray


@dataclass(frozen=True)
class Seat:
    """A rank of one of the groups, and the blocks of its own and the other one."""

    side: int
    rank: int
    mine: Sizes
    #: none inside one group
    theirs: Sizes

    @property
    def senders(self) -> Sizes:
        """The blocks of those whose data this rank receives."""
        return self.theirs or self.mine

    @property
    def senders_side(self) -> int:
        """The group of those: the other one, if there are two."""
        return 1 - self.side if self.theirs else self.side

    @property
    def root(self) -> int:
        """What this rank gives as root: of group B rank 0 of A, in A whether it is;
        inside one group rank 0."""
        if self.side or not self.theirs:
            return 0
        return int(MPI.PROC_NULL if self.rank else MPI.ROOT)

    @property
    def is_root(self) -> bool:
        """Whether this rank is the root."""
        return self.side == 0 and self.rank == 0

    @property
    def contributes(self) -> bool:
        """Whether this rank is one of those at the other end of the root."""
        return self.side == 1 or not self.theirs


def block(side: int, frm: int, to: int, n: int) -> np.ndarray:
    """The bytes that a rank of a group has for one of the other."""
    return np.random.default_rng([side, frm, to]).integers(0, 256, n, np.uint8)


def _empty() -> np.ndarray:
    return np.empty(0, np.uint8)


def _taking(arguments: Callable[[np.ndarray], tuple[Any, ...]], data: Any) -> Call:
    """A call that receives these data."""
    expected = np.concatenate(data or [_empty()])
    recv = np.empty_like(expected)
    return Call(arguments(recv), recv, expected)


def _giving(*arguments: Any) -> Call:
    """A call that receives nothing."""
    return Call(arguments, _empty(), _empty())


class Vectors(NamedTuple):
    """Vectors that are added up: their type, their length, and what all are below.

    No sum overflows: MPI leaves to the library what it is then, and Open MPI's of small
    integers on x86-64 depends on the place.
    """

    element: np.dtype[Any]
    length: int
    below: int

    @classmethod
    def of(cls, seat: Seat, nbytes: int, parts: int = 1) -> Vectors:
        """Of so many bytes, in the largest type that gives an element to each part."""
        fit = (
            x
            for x in ELEMENTS
            if nbytes % x.itemsize == 0 and nbytes >= parts * x.itemsize
        )
        element, below = next(fit, ELEMENTS[-1]), 255
        if element == np.uint8:
            below = max(below // max(len(seat.mine), len(seat.senders)), 1)
        return cls(element, nbytes // element.itemsize, below)

    def one(self, side: int, rank: int) -> np.ndarray:
        """That of one rank."""
        return (block(side, rank, 0, self.length) % self.below).astype(self.element)

    def total(self, side: int, n: int) -> np.ndarray:
        """The sum over all ranks of a group."""
        found = np.zeros(self.length, self.element)
        for rank in range(n):
            found += self.one(side, rank)
        return found


#: makes the call of each operation that is measured
CALLS: dict[str, Callable[[Seat], Call]] = {}
_Make = TypeVar("_Make", bound=Callable[..., Call])


def measured(operation: str, *kind: Any) -> Callable[[_Make], _Make]:
    """Make the function below the maker of an operation's calls, of one kind if it
    makes several."""

    def register(make: _Make) -> _Make:
        CALLS[operation] = lambda seat: make(seat, *kind)
        return make

    return register


@measured("barrier")
def barrier(seat: Seat) -> Call:
    """Nothing is received."""
    return _giving()


@measured("bcast")
def bcast(seat: Seat) -> Call:
    """One block of the root to everyone of the other group, or of its own."""
    n = seat.mine[0] if seat.side == 0 else seat.theirs[0]
    data = block(0, 0, 0, n)
    if seat.is_root:
        return _giving(data, seat.root)
    if seat.contributes:
        return _taking(lambda recv: (recv, 0), [data])
    return _giving(_empty(), seat.root)


@measured("reduce")
def reduce(seat: Seat) -> Call:
    """The sum of the other group's vectors, or of its own group's, to the root."""
    side, n = seat.senders_side if seat.is_root else seat.side, len(seat.senders)
    send = None
    if seat.contributes:
        send = Vectors.of(seat, seat.mine[0]).one(seat.side, seat.rank)
    if not seat.is_root:
        return _giving(send, None, MPI.SUM, seat.root)
    total = Vectors.of(seat, seat.senders[0]).total(side, n)
    return _taking(lambda recv: (send, recv, MPI.SUM, seat.root), [total])


@measured("gather")
@measured("gatherv", True)
def gather(seat: Seat, v: bool = False) -> Call:
    """The blocks of the other group, or of its own, to the root."""
    send = None
    if seat.contributes:
        send = block(seat.side, seat.rank, 0, seat.mine[seat.rank])
    if not seat.is_root:
        return _giving(send, None, seat.root)
    side, counts = seat.senders_side, list(seat.senders)
    data = [block(side, i, 0, n) for i, n in enumerate(counts)]

    def arguments(recv: np.ndarray) -> tuple[Any, ...]:
        return send, [recv, counts] if v else recv, seat.root

    return _taking(arguments, data)


@measured("scatter")
@measured("scatterv", True)
def scatter(seat: Seat, v: bool = False) -> Call:
    """A block of the root's to each rank of the other group, or of its own."""
    send: Any = None
    if seat.is_root:
        counts = list(seat.senders)
        send = np.concatenate([block(0, 0, j, n) for j, n in enumerate(counts)])
        send = [send, counts] if v else send
    if not seat.contributes:
        return _giving(send, None, seat.root)
    data = block(0, 0, seat.rank, seat.mine[seat.rank])
    return _taking(lambda recv: (send, recv, seat.root), [data])


@measured("alltoall")
@measured("alltoallv", "v")
@measured("alltoallw", "w")
def alltoall(seat: Seat, form: str = "") -> Call:
    """A block of everyone to everyone of the other group, as large as its own."""
    n = len(seat.senders)
    own = seat.mine[seat.rank]
    send = np.concatenate([block(seat.side, seat.rank, j, own) for j in range(n)])
    sizes = list(seat.senders)
    data = [block(seat.senders_side, i, seat.rank, k) for i, k in enumerate(sizes)]

    def spec(buffer: np.ndarray, counts: list[int]) -> Any:
        if form == "w":
            starts = [0, *np.cumsum(counts[:-1]).tolist()]
            return [buffer, (counts, starts), [MPI.BYTE] * len(counts)]
        return [buffer, counts] if form == "v" else buffer

    return _taking(lambda recv: (spec(send, [own] * n), spec(recv, sizes)), data)


@measured("allreduce")
def allreduce(seat: Seat) -> Call:
    """The sum of the other group's vectors to everyone."""
    vectors = Vectors.of(seat, seat.mine[0])
    send = vectors.one(seat.side, seat.rank)
    total = vectors.total(seat.senders_side, len(seat.senders))
    return _taking(lambda recv: (send, recv, MPI.SUM), [total])


@measured("reduce_scatter")
def reduce_scatter(seat: Seat) -> Call:
    """A share of the sum of the other group's vectors to each."""
    p, q = len(seat.mine), len(seat.senders)
    vectors = Vectors.of(seat, seat.mine[0], max(p, q))
    counts = regular(p, vectors.length)
    send, start = vectors.one(seat.side, seat.rank), sum(counts[: seat.rank])
    part = vectors.total(seat.senders_side, q)[start : start + counts[seat.rank]]
    return _taking(lambda recv: (send, recv, counts, MPI.SUM), [part])


@measured("reduce_scatter_block")
def reduce_scatter_block(seat: Seat) -> Call:
    """An equal share of the sum of the other group's vectors to each."""
    p, q = len(seat.mine), len(seat.senders)
    vectors = Vectors.of(seat, seat.mine[0], lcm(p, q))
    vectors = vectors._replace(length=vectors.length // lcm(p, q) * lcm(p, q))
    send, each = vectors.one(seat.side, seat.rank), vectors.length // p
    part = vectors.total(seat.senders_side, q)[
        seat.rank * each : (seat.rank + 1) * each
    ]
    return _taking(lambda recv: (send, recv, MPI.SUM), [part])
