"""Consecutive blocks in a buffer: edges, spans, and the block of an element."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from .ir import Index, Span, Spans


def clip(i: Index, low: int, high: int) -> Index:
    """i, limited to the range from low to high."""
    if isinstance(i, np.ndarray):
        return np.minimum(np.maximum(i, low), high)
    return low if i < low else min(i, high)


def pick(condition: Index, yes: Index, no: Index) -> Index:
    """`yes` for ranks where the condition holds, `no` elsewhere."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, yes, no)
    return yes if condition else no


def lesser(x: Index, y: Index) -> Index:
    """The smaller of two indices, rank by rank."""
    return pick(x < y, x, y)


def cut(total: Index, n: Index, i: Index) -> Index:
    """The first element of part i of n parts of `total`, the longer parts first."""
    return i * (total // n) + lesser(i, total % n)


class Blocks:
    """n blocks in rank order; block i has the elements from offset(i) to offset(i + 1).

    Blocks before the first and beyond the last are empty, so that most algorithms need
    no special cases at the edges.
    """

    n: int
    buf: str = "recv"

    def offset(self, i: Index) -> Index:
        """The first element of block i."""
        raise NotImplementedError

    @property
    def total(self) -> int:
        """The number of elements of all blocks together."""
        return int(self.offset(self.n))

    def find(self, x: Index) -> Index:
        """The block with element x."""
        raise NotImplementedError

    def size(self, i: Index) -> Index:
        """The number of elements of block i."""
        return self.offset(i + 1) - self.offset(i)

    def size_of(self, i: Index, j: Index) -> Index:
        """The size of block j of rank i; an error if the rank does not know."""
        raise ValueError(
            "a rank does not know the blocks of others: an algorithm that must know "
            "them is registered with own_counts=True"
        )

    def range(self, i: Index, j: Index) -> Spans:
        """Blocks i to j - 1, as one span."""
        start = self.offset(i)
        return (Span(self.buf, start, self.offset(j) - start),)

    def __getitem__(self, i: Index) -> Spans:
        return self.range(i, i + 1)

    def within(self, buf: str) -> Blocks:
        """The blocks at equal places of another buffer."""
        return replace(self, buf=buf)  # type: ignore[type-var]

    def window(self, i: Index, n: int) -> Spans:
        """n blocks from block i on, the first following the last."""
        i = i % self.n
        return self.range(i, i + n) + self.range(0, i + n - self.n)


@dataclass(frozen=True)
class Even(Blocks):
    """n blocks of equal size."""

    n: int
    each: int
    buf: str = "recv"

    def offset(self, i: Index) -> Index:
        """The first element of block i."""
        return clip(i, 0, self.n) * self.each

    def size_of(self, i: Index, j: Index) -> Index:
        """The size of any block of any rank."""
        return self.each

    def find(self, x: Index) -> Index:
        """The block with element x."""
        return clip(x // max(self.each, 1), 0, self.n - 1)


@dataclass(frozen=True)
class Uneven(Blocks):
    """Blocks of any counts, in rank order."""

    counts: Sequence[int] | np.ndarray
    buf: str = "recv"

    @cached_property
    def n(self) -> int:  # type: ignore[override]
        """The number of blocks."""
        return len(self.counts)

    @cached_property
    def offsets(self) -> np.ndarray:
        """The edges of the blocks: n + 1 numbers of elements."""
        return np.concatenate(([0], np.cumsum(self.counts, dtype=np.int64)))

    @cached_property
    def _ends(self) -> list[int]:
        """The edges as plain ints, because indexing an array takes longer."""
        return self.offsets.tolist()  # type: ignore[no-any-return]

    def offset(self, i: Index) -> Index:
        """The first element of block i."""
        if type(i) is int:
            return self._ends[clip(i, 0, self.n)]
        return self.offsets[clip(i, 0, self.n)]

    def find(self, x: Index) -> Index:
        """The block with element x; an empty block has no element."""
        if type(x) is int:
            return clip(bisect_right(self._ends, x) - 1, 0, self.n - 1)
        i = np.searchsorted(self.offsets, x, side="right") - 1
        return clip(i, 0, self.n - 1)


@dataclass(frozen=True)
class Passing(Uneven):
    """The blocks sent by a rank, and the sizes of blocks that pass through the rank.

    Row l of `held` has, by way, the size of the block that the rank holds before the
    block moves by digit l of its way.
    """

    held: np.ndarray = field(default_factory=lambda: np.empty((0, 0), np.int64))


@dataclass(frozen=True)
class Shares(Blocks):
    """`whole` elements cut into n nearly equal shares, the longer ones first."""

    n: int
    whole: int
    buf: str = "recv"

    def offset(self, i: Index) -> Index:
        """The first element of share i."""
        return cut(self.whole, self.n, clip(i, 0, self.n))

    def find(self, x: Index) -> Index:
        """The share with element x."""
        short, longer = divmod(self.whole, self.n)
        edge = longer * (short + 1)
        beyond = longer + (x - edge) // max(short, 1)
        return clip(pick(x < edge, x // (short + 1), beyond), 0, self.n - 1)


@dataclass(frozen=True)
class OwnBlock(Blocks):
    """The blocks of a group where a rank knows its own block and the total only.

    A look at another block raises, so that an algorithm that lacks the flag
    `own_counts` fails its tests: without the flag the runtime does not ask other ranks.
    """

    n: int
    index: int
    start: int
    own: int
    whole: int
    buf: str = "recv"

    def offset(self, i: Index) -> Index:
        """The first element of block i; an error for blocks unknown to the rank."""
        known = {0: 0, self.index: self.start, self.index + 1: self.start + self.own}
        known[self.n] = self.whole
        if np.ndim(i) or i not in known:
            raise ValueError(
                f"rank {self.index} does not know block {i} of its own group: an "
                "algorithm that must know it is registered with own_counts=True"
            )
        return known[i]


@dataclass(frozen=True)
class Mapped(Blocks):
    """Blocks with offsets computed by a function."""

    n: int
    begin: Callable[[Index], Index]
    buf: str = "recv"

    def offset(self, i: Index) -> Index:
        """The first element of block i."""
        return self.begin(clip(i, 0, self.n))


GroupBlocks = Even | Uneven | OwnBlock | Shares


@dataclass(frozen=True)
class Leaves(Blocks):
    """The blocks of a root and of a remote group's leaves; that of the root is empty.

    The root has a block, since algorithms number it as vertex 0 among the leaves.
    """

    group: GroupBlocks

    @property
    def n(self) -> int:  # type: ignore[override]
        """The number of blocks."""
        return self.group.n + 1

    @property
    def buf(self) -> str:  # type: ignore[override]
        """The buffer of the group's blocks."""
        return self.group.buf

    def offset(self, i: Index) -> Index:
        """The first element of block i."""
        return self.group.offset(clip(i - 1, 0, self.group.n))

    def find(self, x: Index) -> Index:
        """The block with element x."""
        return self.group.find(x) + 1


@dataclass(frozen=True)
class Rows(Blocks):
    """The blocks of rank r, with row r of a table as edges."""

    offsets: np.ndarray
    r: Index
    buf: str = "recv"

    @cached_property
    def n(self) -> int:  # type: ignore[override]
        """The number of blocks of a rank."""
        return len(self.offsets[0]) - 1

    def offset(self, i: Index) -> Index:
        """The first element of block i."""
        return self.offsets[self.r, clip(i, 0, self.n)]

    def size_of(self, i: Index, j: Index) -> Index:
        """The size of block j of rank i."""
        return self.offsets[i, j + 1] - self.offsets[i, j]


@dataclass(frozen=True)
class Side:
    """A group: the number of its first rank, and the blocks contributed by its ranks.

    As a span of the receivers' "recv" buffer, blocks[i] is the place of rank i's block.
    """

    base: int
    blocks: GroupBlocks

    @property
    def n(self) -> int:
        """The number of ranks in the group."""
        return self.blocks.n

    def number(self, i: Index) -> Index:
        """The number of rank i of the group."""
        return self.base + i

    def own(self, i: Index) -> Spans:
        """The contribution of rank i, in its own send buffer."""
        return (Span("send", 0, self.blocks.size(i)),)


def overlap(x: Blocks, i: Index, y: Blocks, j: Index) -> tuple[Index, Index]:
    """Start and size of the elements common to block i of x and block j of y."""
    low = pick(x.offset(i) > y.offset(j), x.offset(i), y.offset(j))
    high = lesser(x.offset(i) + x.size(i), y.offset(j) + y.size(j))
    return low, pick(high > low, high - low, 0)
