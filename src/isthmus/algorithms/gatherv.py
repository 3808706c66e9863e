"""Gatherv inside a group: the blocks of all ranks go from "send" to their places in the
root's "recv"."""

from __future__ import annotations

import numpy as np

from ..schedules.ir import Copy, Index, Program, Recv, Round, Send, Span
from ..schedules.layout import Blocks, Mapped, Uneven
from ..schedules.registry import algorithm
from .parts import gather
from .parts.patterns import doubling_cost, tree, turns_cost


@algorithm("gatherv", paper="MPICH; Open MPI", cost=turns_cost)
def linear(p: int, r: Index, blocks: Blocks, root: int) -> Program:
    """Everyone sends a block straight to the root, which awaits all at once.

    A single round, of p - 1 messages at the root. A rank knows no block but its own.
    """
    own, is_root = Span("send", 0, blocks.size(r)), r == root
    other_ranks = [i for i in range(p) if i != root] if np.any(is_root) else []
    yield Round(then=(Copy(own, blocks[root][0], is_root),) if np.any(is_root) else ())
    yield Round(
        (
            *(Recv(i, blocks[i], is_root) for i in other_ranks),
            Send(root, (own,), is_root ^ True),
        )
    )


@algorithm("gatherv", paper="folklore", cost=doubling_cost, own_counts=True)
def binomial(p: int, r: Index, blocks: Blocks, root: int) -> Program:
    """Subtrees hand up their blocks in a binomial tree that begins at the root.

    ceil(log2 p) rounds, and every byte comes to the root once. A rank knows the blocks
    of its own subtree, and holds them in "tmp".
    """
    v, own = (r - root) % p, Span("send", 0, blocks.size(r))
    ranks = (np.arange(p) + root) % p
    by_tree = Uneven(np.asarray(blocks.size(ranks)))
    begin = by_tree.offset(v)
    subtree = Mapped(p, lambda i: by_tree.offset(i) - begin, "tmp")
    top, leaf = v == 0, (v > 0) & gather.alone(p, v)
    inner = (top | leaf) ^ True
    (place,), (first,) = blocks[root], subtree[v]
    at_top = Span(place.buf, place.start, own.size)
    yield Round(then=(Copy(own, at_top, top), Copy(own, first, inner)))
    for step, below, above in tree(p, v):
        parent, child = (r - step) % p, (r + step) % p
        child_blocks = blocks.window(root + step, min(step, p - step))
        yield Round(
            (
                Recv(child, child_blocks, above & top),
                Recv(child, subtree.range(v + step, v + 2 * step), above & inner),
                Send(parent, subtree.range(v, v + step), below & inner),
                Send(parent, (own,), below & leaf),
            )
        )
