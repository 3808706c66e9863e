"""What each operation moves between ranks, and what must arrive.

One dictionary holds all operations. Every entry gives, for one rank, the blocks that it
sends and those that it must receive, from the numbers of the ranks alone: numpy
computes what is right, and no rank asks another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from mpi4py import MPI

#: how MPI wants blocks described: one; several of one size; several with counts;
#: several with counts and types
ONE, EQUAL, VECTOR, MIXED = "one", "equal", "vector", "mixed"

#: elements of block j of rank i; those of operations with equal blocks are of (1, 0)
SIZES: dict[str, Callable[[int, int], int]] = {
    "equal": lambda i, j: 4,
    "zeros": lambda i, j: (3 * i + 2 * j) % 5,
    "giant": lambda i, j: 1201 if i + j == 1 else 1,
    "some": lambda i, j: 40,
    "any": lambda i, j: (0, 3, 17, 1, 120, 0, 8)[(5 * i + 3 * j + 1) % 7],
    "long": lambda i, j: 997 + i,
    "large": lambda i, j: 20_000,
    "empty": lambda i, j: 0,
}
_PRIME = 65521


def compose(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Functions a t + b modulo a prime, x after y: associative, not commutative."""
    a, b, c, d = x >> 20, x & 0xFFFFF, y >> 20, y & 0xFFFFF
    return (a * c % _PRIME) << 20 | (a * d + b) % _PRIME


def _compose_in_mpi(inbuf: Any, inoutbuf: Any, datatype: MPI.Datatype) -> None:
    right = np.frombuffer(inoutbuf, "i8")
    right[:] = compose(np.frombuffer(inbuf, "i8"), right)


def composition() -> MPI.Op:
    """The operator of `compose`, for 8-byte integers."""
    return MPI.Op.Create(_compose_in_mpi, commute=False)


@dataclass(frozen=True)
class Group:
    """Ranks of a communicator by their numbers in the world of the communicator."""

    me: int
    #: ranks of the own group, in order, and of those that data come from
    here: tuple[int, ...]
    there: tuple[int, ...]

    @property
    def is_one(self) -> bool:
        """Whether the calls are inside one group."""
        return self.here == self.there


@dataclass(frozen=True)
class Drawn:
    """What all ranks of a call agree on."""

    op: str
    size: str
    dtype: str
    #: the operator, and what it makes of two arrays; of operations that combine
    operator: MPI.Op = field(default_factory=lambda: MPI.SUM)
    combine: Callable[[Any, Any], Any] = np.add
    #: a number of the communicator's world
    root: int = 0
    in_place: bool = False
    #: whether a count or the like that MPI lets users leave out is left out
    brief: bool = False


@dataclass
class Side:
    """The blocks of one buffer: what is sent, or what must have come."""

    shape: str
    blocks: list[np.ndarray]
    #: what a receive buffer has before, where that matters
    before: list[np.ndarray] | None = None
    #: elements after the blocks whose content MPI leaves open
    open_elements: int = 0


@dataclass
class Transfer:
    """One rank's part in a call: sides that are None stand for None in the call."""

    send: Side | None = None
    recv: Side | None = None
    #: what follows the buffers in the call
    rest: tuple[Any, ...] = ()
    #: MPI.IN_PLACE stands for one of the buffers
    in_place: str = ""
    #: whether there is one buffer only, as in Bcast, or two
    is_single: bool = False
    #: whether this rank has a part in the call
    takes_part: bool = True


@dataclass
class _Maker:
    """Makes the transfer of one rank for one call of a series."""

    group: Group
    drawn: Drawn
    turn: int
    transfer: Transfer = field(default_factory=Transfer)

    def count(self, i: int, j: int = 0) -> int:
        return SIZES[self.drawn.size](i, j)

    def values(self, i: int, j: int, n: int) -> np.ndarray:
        """Different for every rank, block and turn; sums of 8 ranks are exact."""
        modulus = 31 if np.dtype(self.drawn.dtype).itemsize == 1 else 1009
        numbers = np.arange(n) * 7 + 131 * i + 37 * j + 17 * self.turn + 1
        return (numbers % modulus).astype(self.drawn.dtype)

    def combined(self, ranks: Sequence[int], n: int) -> np.ndarray:
        """What the ranks contribute, combined in their order."""
        parts = (self.values(i, 0, n) for i in ranks)
        return reduce(self.drawn.combine, parts).astype(self.drawn.dtype)

    @property
    def root(self) -> int:
        """The root as this rank names it."""
        group, root = self.group, self.drawn.root
        if group.is_one:
            return group.here.index(root)
        if root == group.me:
            return MPI.ROOT
        return group.there.index(root) if root in group.there else MPI.PROC_NULL

    @property
    def leaves(self) -> tuple[int, ...]:
        """The ranks at the other end of a rooted call."""
        group, root = self.group, self.drawn.root
        if group.is_one:
            return group.here
        return group.there if root in group.here else group.here


def transfer(group: Group, drawn: Drawn, turn: int) -> Transfer:
    """One rank's part in a call of a series."""
    maker = _Maker(group, drawn, turn)
    OPERATIONS[drawn.op](maker)
    return maker.transfer


def _gathered(x: _Maker, irregular: bool) -> None:
    me, there = x.group.me, x.group.there
    counts = {i: x.count(i) if irregular else x.count(1) for i in {*there, me}}
    blocks = [x.values(i, 0, counts[i]) for i in there]
    mine = x.values(me, 0, counts[me])
    x.transfer = Transfer(
        Side(ONE, [mine]), Side(VECTOR if irregular else EQUAL, blocks)
    )
    if x.drawn.in_place and x.group.is_one:
        own = [b if i == me else b * 0 for i, b in zip(there, blocks, strict=True)]
        x.transfer.recv.before, x.transfer.in_place = own, "send"  # type: ignore


def _exchanged(x: _Maker, shape: str) -> None:
    me, there = x.group.me, x.group.there
    in_place = x.drawn.in_place and x.group.is_one

    def block(i: int, j: int) -> np.ndarray:
        low, high = sorted((i, j)) if in_place else (i, j)
        n = x.count(1) if shape == EQUAL else x.count(low, high)
        return x.values(i, j, n)

    sent, wanted = [block(me, j) for j in there], [block(i, me) for i in there]
    x.transfer = Transfer(Side(shape, sent), Side(shape, wanted))
    if in_place:
        x.transfer.recv.before, x.transfer.in_place = sent, "send"  # type: ignore


def _reduced_to_all(x: _Maker) -> None:
    n, me = x.count(1), x.group.me
    wanted, mine = x.combined(x.group.there, n), x.values(me, 0, n)
    x.transfer = Transfer(Side(ONE, [mine]), Side(ONE, [wanted]), (x.drawn.operator,))
    if x.drawn.in_place and x.group.is_one:
        x.transfer.recv.before, x.transfer.in_place = [mine], "send"  # type: ignore


def _reduced_and_scattered(x: _Maker, is_block: bool) -> None:
    me, here, there = x.group.me, x.group.here, x.group.there
    everyone = sorted({*here, *there})
    if is_block or x.drawn.brief:  # each receives as much
        each = x.count(1) * (1 if x.group.is_one else len(there))
        counts = [each] * len(here)
    elif x.group.is_one:
        counts = [x.count(i) for i in here]
    else:
        total = sum(x.count(i) for i in everyone)
        cuts = np.cumsum([x.count(i, 1) for i in here]).clip(max=total)
        cuts[-1] = total
        counts = np.diff([0, *cuts]).tolist()
    total, at = sum(counts), here.index(me)
    start = sum(counts[:at])
    wanted = x.combined(there, total)[start : start + counts[at]]
    mine = x.values(me, 0, total)
    named: Any = None if x.drawn.brief else counts
    rest = (x.drawn.operator,) if is_block else (named, x.drawn.operator)
    x.transfer = Transfer(
        Side(EQUAL if is_block else ONE, [mine]), Side(ONE, [wanted]), rest
    )
    if is_block:
        x.transfer.send.blocks = np.split(mine, len(here))  # type: ignore
    if x.drawn.in_place and x.group.is_one and not x.drawn.brief:
        recv = Side(ONE, [wanted], [mine], total - len(wanted))
        if is_block:  # the buffer has all blocks, of which the first is the result
            recv = Side(EQUAL, [wanted], [mine], total - len(wanted))
        x.transfer.recv, x.transfer.in_place = recv, "send"


def _broadcast(x: _Maker) -> None:
    n, root = x.count(1), x.root
    block = Side(ONE, [x.values(x.drawn.root, 0, n)])
    x.transfer = Transfer(rest=(root,), is_single=True)
    if x.drawn.root == x.group.me:
        x.transfer.send = block
    elif root == MPI.PROC_NULL:
        x.transfer.takes_part = False
    else:
        x.transfer.recv = block


def _rooted(x: _Maker, rest: tuple[Any, ...]) -> tuple[bool, bool]:
    """Whether this rank is the root, and whether it is at the other end."""
    is_root = x.drawn.root == x.group.me
    is_leaf = x.group.me in x.leaves and x.root != MPI.PROC_NULL
    x.transfer = Transfer(rest=(*rest, x.root), takes_part=is_root or is_leaf)
    return is_root, is_leaf


def _reduced(x: _Maker) -> None:
    n, me = x.count(1), x.group.me
    is_root, is_leaf = _rooted(x, (x.drawn.operator,))
    mine = x.values(me, 0, n)
    if is_leaf:
        x.transfer.send = Side(ONE, [mine])
    if is_root:
        x.transfer.recv = Side(ONE, [x.combined(x.leaves, n)])
        if x.drawn.in_place and x.group.is_one:
            x.transfer.recv.before, x.transfer.in_place = [mine], "send"


def _gathered_to_root(x: _Maker, irregular: bool) -> None:
    me, leaves = x.group.me, x.leaves
    is_root, is_leaf = _rooted(x, ())
    counts = [x.count(i) if irregular else x.count(1) for i in leaves]
    blocks = [x.values(i, 0, n) for i, n in zip(leaves, counts, strict=True)]
    if is_leaf:
        x.transfer.send = Side(ONE, [blocks[leaves.index(me)]])
    if is_root:
        x.transfer.recv = Side(VECTOR if irregular else EQUAL, blocks)
        if x.drawn.in_place and x.group.is_one:
            own = [b if i == me else b * 0 for i, b in zip(leaves, blocks, strict=True)]
            x.transfer.recv.before, x.transfer.in_place = own, "send"


def _scattered(x: _Maker, irregular: bool) -> None:
    me, leaves, root = x.group.me, x.leaves, x.drawn.root
    is_root, is_leaf = _rooted(x, ())
    counts = [x.count(i) if irregular else x.count(1) for i in leaves]
    blocks = [x.values(root, i, n) for i, n in zip(leaves, counts, strict=True)]
    if is_root:
        x.transfer.send = Side(VECTOR if irregular else EQUAL, blocks)
    if is_leaf:
        x.transfer.recv = Side(ONE, [blocks[leaves.index(me)]])
        if is_root and x.drawn.in_place and x.group.is_one:
            x.transfer.recv, x.transfer.in_place = None, "recv"


def _met(x: _Maker) -> None:
    x.transfer = Transfer()


#: every collective with buffers, and what one rank sends and receives in it
OPERATIONS: dict[str, Callable[[_Maker], None]] = {
    "Allgather": lambda x: _gathered(x, irregular=False),
    "Allgatherv": lambda x: _gathered(x, irregular=True),
    "Alltoall": lambda x: _exchanged(x, EQUAL),
    "Alltoallv": lambda x: _exchanged(x, VECTOR),
    "Alltoallw": lambda x: _exchanged(x, MIXED),
    "Allreduce": _reduced_to_all,
    "Reduce_scatter": lambda x: _reduced_and_scattered(x, is_block=False),
    "Reduce_scatter_block": lambda x: _reduced_and_scattered(x, is_block=True),
    "Barrier": _met,
    "Bcast": _broadcast,
    "Reduce": _reduced,
    "Gather": lambda x: _gathered_to_root(x, irregular=False),
    "Gatherv": lambda x: _gathered_to_root(x, irregular=True),
    "Scatter": lambda x: _scattered(x, irregular=False),
    "Scatterv": lambda x: _scattered(x, irregular=True),
}
REDUCTIONS = tuple(op for op in OPERATIONS if "educe" in op)
ROOTED = ("Bcast", "Reduce", "Gather", "Gatherv", "Scatter", "Scatterv")
SEVERAL = ("Allgather", "Allgatherv", "Alltoall", "Alltoallv")
