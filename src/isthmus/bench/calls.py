"""The buffers of every operation that can be measured, and the data that must arrive.

Across two groups the root of a rooted operation is rank 0 of group A. Inside one group
the senders are the ranks of the local group. Data have no pattern, so that a block for
the wrong rank, or from the wrong rank, never looks right. Sums are of small whole
numbers, mostly as doubles, so that all are exact in any order.
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
#: types of the elements of vectors that are added up, the preferred one first
ELEMENT_TYPES = tuple(map(np.dtype, ("f8", "f4", "u1")))


class CheckedCall(NamedTuple):
    """The arguments of a call, its receive buffer, and the expected data."""

    arguments: tuple[Any, ...]
    recv: np.ndarray
    expected: np.ndarray


@dataclass(frozen=True)
class Seat:
    """A rank of a group, and the bytes of the blocks of the local and remote group."""

    side: int
    rank: int
    own_blocks: Sizes
    #: empty inside one group
    remote_blocks: Sizes

    @property
    def senders(self) -> Sizes:
        """The blocks of the group that sends to this rank."""
        return self.remote_blocks or self.own_blocks

    @property
    def senders_side(self) -> int:
        """The number of the group that sends to this rank."""
        return 1 - self.side if self.remote_blocks else self.side

    @property
    def root(self) -> int:
        """The root argument of the rank: 0 inside one group and in group B, in group A
        MPI.ROOT or MPI.PROC_NULL."""
        if self.side or not self.remote_blocks:
            return 0
        return int(MPI.PROC_NULL if self.rank else MPI.ROOT)

    @property
    def is_root(self) -> bool:
        """Whether this rank is the root."""
        return self.side == 0 and self.rank == 0

    @property
    def contributes(self) -> bool:
        """Whether this rank exchanges a block with the root: in two groups, B does."""
        return self.side == 1 or not self.remote_blocks


def block(side: int, sender: int, receiver: int, n: int) -> np.ndarray:
    """The n random bytes that a rank of a group sends to a receiver."""
    rng = np.random.default_rng([side, sender, receiver])
    return rng.integers(0, 256, n, np.uint8)


def _empty() -> np.ndarray:
    return np.empty(0, np.uint8)


def _receiving_call(
    arguments: Callable[[np.ndarray], tuple[Any, ...]], data: Any
) -> CheckedCall:
    """A call that must receive blocks, back to back."""
    expected = np.concatenate(data or [_empty()])
    recv = np.empty_like(expected)
    return CheckedCall(arguments(recv), recv, expected)


def _silent_call(*arguments: Any) -> CheckedCall:
    """A call of a rank that receives no data."""
    return CheckedCall(arguments, _empty(), _empty())


class Vectors(NamedTuple):
    """Vectors to add up: element type, length, and a bound on the elements.

    No sum overflows: MPI leaves the result of an overflow to the library, and with Open
    MPI on x86-64 the result for small integers depends on the place in the vector.
    """

    element: np.dtype[Any]
    length: int
    bound: int

    @classmethod
    def fitting(cls, seat: Seat, nbytes: int, parts: int = 1) -> Vectors:
        """Vectors of `nbytes`, in the largest type that gives each part an element."""
        fitting_types = (
            dtype
            for dtype in ELEMENT_TYPES
            if nbytes % dtype.itemsize == 0 and nbytes >= parts * dtype.itemsize
        )
        element, bound = next(fitting_types, ELEMENT_TYPES[-1]), 255
        if element == np.uint8:
            bound = max(bound // max(len(seat.own_blocks), len(seat.senders)), 1)
        return cls(element, nbytes // element.itemsize, bound)

    def contribution(self, side: int, rank: int) -> np.ndarray:
        """The vector of a rank of a group."""
        return (block(side, rank, 0, self.length) % self.bound).astype(self.element)

    def total(self, side: int, n: int) -> np.ndarray:
        """The sum over all n ranks of a group."""
        total = np.zeros(self.length, self.element)
        for rank in range(n):
            total += self.contribution(side, rank)
        return total


#: for each operation that is measured, the function that makes a rank's call
CALL_MAKERS: dict[str, Callable[[Seat], CheckedCall]] = {}
_Maker = TypeVar("_Maker", bound=Callable[..., CheckedCall])


def measured(operation: str, *arguments: Any) -> Callable[[_Maker], _Maker]:
    """Register the function below as the maker of an operation's calls.

    The arguments tell operations apart that share a maker, as Gather and Gatherv do.
    """

    def register(maker: _Maker) -> _Maker:
        CALL_MAKERS[operation] = lambda seat: maker(seat, *arguments)
        return maker

    return register


@measured("barrier")
def barrier(seat: Seat) -> CheckedCall:
    """A call without buffers."""
    return _silent_call()


@measured("bcast")
def bcast(seat: Seat) -> CheckedCall:
    """The root's block to all ranks of the remote group, or of the only group."""
    n = seat.own_blocks[0] if seat.side == 0 else seat.remote_blocks[0]
    data = block(0, 0, 0, n)
    if seat.is_root:
        return _silent_call(data, seat.root)
    if seat.contributes:
        return _receiving_call(lambda recv: (recv, 0), [data])
    return _silent_call(_empty(), seat.root)


@measured("reduce")
def reduce(seat: Seat) -> CheckedCall:
    """The sum of the vectors of the remote group, or of the only group, to the root."""
    side, n = seat.senders_side if seat.is_root else seat.side, len(seat.senders)
    send = None
    if seat.contributes:
        send = Vectors.fitting(seat, seat.own_blocks[0]).contribution(
            seat.side, seat.rank
        )
    if not seat.is_root:
        return _silent_call(send, None, MPI.SUM, seat.root)
    total = Vectors.fitting(seat, seat.senders[0]).total(side, n)
    return _receiving_call(lambda recv: (send, recv, MPI.SUM, seat.root), [total])


@measured("gather")
@measured("gatherv", True)
def gather(seat: Seat, v: bool = False) -> CheckedCall:
    """The blocks of the remote group, or of the only group, to the root."""
    send = None
    if seat.contributes:
        send = block(seat.side, seat.rank, 0, seat.own_blocks[seat.rank])
    if not seat.is_root:
        return _silent_call(send, None, seat.root)
    side, counts = seat.senders_side, list(seat.senders)
    data = [block(side, i, 0, n) for i, n in enumerate(counts)]

    def arguments(recv: np.ndarray) -> tuple[Any, ...]:
        return send, [recv, counts] if v else recv, seat.root

    return _receiving_call(arguments, data)


@measured("scatter")
@measured("scatterv", True)
def scatter(seat: Seat, v: bool = False) -> CheckedCall:
    """A block of the root to each rank of the remote group, or of the only group."""
    send: Any = None
    if seat.is_root:
        counts = list(seat.senders)
        send = np.concatenate([block(0, 0, j, n) for j, n in enumerate(counts)])
        send = [send, counts] if v else send
    if not seat.contributes:
        return _silent_call(send, None, seat.root)
    data = block(0, 0, seat.rank, seat.own_blocks[seat.rank])
    return _receiving_call(lambda recv: (send, recv, seat.root), [data])


@measured("alltoall")
@measured("alltoallv", "v")
@measured("alltoallw", "w")
def alltoall(seat: Seat, form: str = "") -> CheckedCall:
    """A block of each rank to each rank of the remote group, or of the only group.

    All blocks of a sending rank have the size of its own block.
    """
    n = len(seat.senders)
    own = seat.own_blocks[seat.rank]
    send = np.concatenate([block(seat.side, seat.rank, j, own) for j in range(n)])
    sizes = list(seat.senders)
    data = [block(seat.senders_side, i, seat.rank, k) for i, k in enumerate(sizes)]

    def spec(buffer: np.ndarray, counts: list[int]) -> Any:
        if form == "w":
            starts = [0, *np.cumsum(counts[:-1]).tolist()]
            return [buffer, (counts, starts), [MPI.BYTE] * len(counts)]
        return [buffer, counts] if form == "v" else buffer

    return _receiving_call(
        lambda recv: (spec(send, [own] * n), spec(recv, sizes)), data
    )


@measured("allreduce")
def allreduce(seat: Seat) -> CheckedCall:
    """The sum of the senders' vectors to every rank."""
    vectors = Vectors.fitting(seat, seat.own_blocks[0])
    send = vectors.contribution(seat.side, seat.rank)
    total = vectors.total(seat.senders_side, len(seat.senders))
    return _receiving_call(lambda recv: (send, recv, MPI.SUM), [total])


@measured("reduce_scatter")
def reduce_scatter(seat: Seat) -> CheckedCall:
    """A share of the sum of the senders' vectors to each rank."""
    p, q = len(seat.own_blocks), len(seat.senders)
    vectors = Vectors.fitting(seat, seat.own_blocks[0], max(p, q))
    counts = regular(p, vectors.length)
    send, start = vectors.contribution(seat.side, seat.rank), sum(counts[: seat.rank])
    part = vectors.total(seat.senders_side, q)[start : start + counts[seat.rank]]
    return _receiving_call(lambda recv: (send, recv, counts, MPI.SUM), [part])


@measured("reduce_scatter_block")
def reduce_scatter_block(seat: Seat) -> CheckedCall:
    """An equal share of the sum of the senders' vectors to each rank."""
    p, q = len(seat.own_blocks), len(seat.senders)
    vectors = Vectors.fitting(seat, seat.own_blocks[0], lcm(p, q))
    vectors = vectors._replace(length=vectors.length // lcm(p, q) * lcm(p, q))
    send, each = vectors.contribution(seat.side, seat.rank), vectors.length // p
    part = vectors.total(seat.senders_side, q)[
        seat.rank * each : (seat.rank + 1) * each
    ]
    return _receiving_call(lambda recv: (send, recv, MPI.SUM), [part])
