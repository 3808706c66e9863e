"""Gather(v) from the leaves of a group to a root outside the group.

The root is vertex 0 of p, and its block is empty. The blocks of the leaves, vertices 1
to p - 1, go from "send" to their places in the root's "recv".
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..schedules.ir import Copy, Index, Program, Recv, Round, Send, Span, Spans
from ..schedules.layout import Blocks, Leaves, Mapped, Uneven
from ..schedules.program import map_spans
from ..schedules.registry import algorithm
from .parts import gather
from .parts.patterns import doubling_cost, outer, turns_cost

INTER_GATHERS = ("inter_gather", "inter_gatherv")


def _own(v: Index, blocks: Blocks) -> Spans:
    return (Span("send", 0, blocks.size(v)),)


@algorithm(*INTER_GATHERS, paper="Silva, Silva 1999; MPICH", cost=turns_cost)
def linear(p: int, v: Index, blocks: Leaves) -> Program:
    """Every leaf sends its block straight to the root, which awaits all at once.

    A single round, of p - 1 messages at the root. A leaf knows no block but its own.
    """
    if outer(v):
        yield Round(tuple(Recv(i, blocks[i]) for i in range(1, p)))
    else:
        yield Round((Send(0, _own(v, blocks)),))


def _tree(p: int, v: Index, blocks: Blocks) -> Program:
    """Subtrees hand up their blocks; a vertex holds the blocks of its own subtree."""
    own, begin = _own(v, blocks), blocks.offset(v)
    subtree = Mapped(
        p, lambda i: blocks.offset(i) - begin, "recv" if outer(v) else "tmp"
    )
    yield Round(then=(Copy(own[0], subtree[v][0], gather.alone(p, v) ^ True),))
    yield from gather.up(p, v, subtree, own)


@algorithm(*INTER_GATHERS, paper="folklore", cost=doubling_cost, own_counts=True)
def binomial(p: int, v: Index, blocks: Leaves) -> Program:
    """A tree with the root itself on top: subtrees of leaves hand up their blocks.

    ceil(log2 p) rounds, and every byte comes to the root once. A leaf knows the blocks
    of its own subtree, and holds them in "tmp".
    """
    return _tree(p, v, blocks)


#: bytes from which on a block goes straight to the root
LARGE_BLOCK_BYTES = 1 << 13


def mixed_cost(p: int, k: float, alpha: float, beta: float) -> float:
    """The time of `linear` for large blocks, of a tree for small blocks."""
    return (turns_cost if k >= LARGE_BLOCK_BYTES else doubling_cost)(p, k, alpha, beta)


@algorithm(*INTER_GATHERS, paper="isthmus", cost=mixed_cost, own_counts=True)
def mixed(p: int, v: Index, blocks: Leaves, size: int = LARGE_BLOCK_BYTES) -> Program:
    """Small blocks go up a tree with the root on top, large ones straight to the root.

    ceil(log2 p) rounds, and one for the large blocks, since a tree would send these
    again at every level; every byte comes to the root once. A leaf knows the small
    blocks of its own subtree, and holds them in "tmp".
    """
    counts = np.asarray(blocks.size(np.arange(p)))
    large = counts >= size
    small = Uneven(np.where(large, 0, counts))
    if outer(v):
        yield from map_spans(_tree(p, 0, small), partial(_spread, blocks, small))
        yield Round(tuple(Recv(int(i), blocks[int(i)]) for i in np.flatnonzero(large)))
    else:
        yield from _tree(p, v, small)
        yield Round((Send(0, _own(v, blocks), large[v]),))


def _spread(blocks: Blocks, small: Uneven, packed: Span) -> Spans:
    """The places of packed small blocks among all blocks, with neighbours joined."""
    spans: list[Span] = []
    first_and_end = int(packed.start), int(packed.start + packed.size)
    block_numbers = range(*np.searchsorted(small.offsets, first_and_end).tolist())
    for i in (i for i in block_numbers if small.size(i)):
        start, size = int(blocks.offset(i)), int(small.size(i))
        if spans and spans[-1].start + spans[-1].size == start:
            last = spans.pop()
            start, size = last.start, last.size + size
        spans.append(Span(packed.buf, start, size))
    return tuple(spans) or (packed,)
