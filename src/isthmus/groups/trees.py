"""Trees on a chain: reduce, broadcast, gather and scatter in ⌈log n⌉ rounds each.

A chain is contracted: in round i processes whose rank has bit i set become children of
their left neighbour, and the others link up without them. A child of level i covers the
2^i ranks from its own on, so values are combined in the order of the chain.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .chain import ChainLink
from .dialogue import Dialogue, ExchangeStep
from .scans import Op


@dataclass(frozen=True, slots=True)
class Tree:
    """A process of a tree whose root is rank 0, or of one of several such trees.

    The process covers `reach` ranks from its own on. Children are in the order of their
    levels 0, 1, …; `top` is the link of a root in the chain of all roots.
    """

    link: ChainLink
    parent: int | None
    children: tuple[int, ...]
    reach: int
    top: ChainLink | None

    def covers(self, rank: int) -> bool:
        """Whether a rank is in the subtree of this process."""
        return bool(0 <= rank - self.link.rank < self.reach)


def contract(link: ChainLink, levels: int | None = None) -> Dialogue[Tree]:
    """The tree over a chain; with `levels`, trees over 2^levels ranks each."""
    left, right, reach = link.left, link.right, 1
    covered_ranks = link.size if levels is None else min(link.size, 1 << levels)
    children: list[int] = []
    while reach < covered_ranks:
        if link.rank & reach:
            assert left is not None
            yield ExchangeStep(
                ((left, right),) if right is None else ((left, right), (right, left))
            )
            return Tree(link, left, tuple(children), reach, None)
        received = yield ExchangeStep(
            (), tuple(x for x in (left, right) if x is not None)
        )
        if right is not None:
            children.append(right)
            right = received[-1]
        if left is not None:
            left = received[0]
        reach *= 2
    top = ChainLink(
        link.rank // reach, -(-link.size // reach), link.address, left, right
    )
    return Tree(link, None, tuple(children), reach, top)


def reduce(tree: Tree, value: Any, op: Op) -> Dialogue[Any]:
    """The combined values of the whole tree; at the root only."""
    for child in tree.children:
        (received,) = yield ExchangeStep((), (child,))
        value = op(value, received)
    if tree.parent is None:
        return value
    yield ExchangeStep(((tree.parent, value),))
    return None


def bcast(tree: Tree, value: Any) -> Dialogue[Any]:
    """The root's value, on all ranks."""
    if tree.parent is not None:
        (value,) = yield ExchangeStep((), (tree.parent,))
    for child in reversed(tree.children):
        yield ExchangeStep(((child, value),))
    return value


def allreduce(tree: Tree, value: Any, op: Op) -> Dialogue[Any]:
    """The combined values of the whole tree: equal on all ranks, to the last digit."""
    value = yield from reduce(tree, value, op)
    return (yield from bcast(tree, value))


def gather(tree: Tree, value: Any) -> Dialogue[list[Any] | None]:
    """The values of the whole tree in a list; at the root only."""
    values: list[Any] | None = yield from reduce(tree, [value], operator.add)
    return values


def scatter(tree: Tree, values: Sequence[Any] | None) -> Dialogue[Any]:
    """The root's value for each rank."""
    if tree.parent is not None:
        (values,) = yield ExchangeStep((), (tree.parent,))
    assert values is not None
    for level, child in reversed(list(enumerate(tree.children))):
        yield ExchangeStep(((child, values[1 << level :]),))
        values = values[: 1 << level]
    return values[0]


def _towards(tree: Tree, rank: int) -> int:
    """The child whose subtree has a rank."""
    level: int = (rank - tree.link.rank).bit_length() - 1
    return tree.children[level]


def to_root(tree: Tree, value: Any, rank: int) -> Dialogue[Any]:
    """Send the value of a rank up to the root."""
    if not tree.covers(rank):
        return value
    if rank != tree.link.rank:
        (value,) = yield ExchangeStep((), (_towards(tree, rank),))
    if tree.parent is not None:
        yield ExchangeStep(((tree.parent, value),))
    return value


def from_root(tree: Tree, value: Any, rank: int) -> Dialogue[Any]:
    """Send the root's value down to a rank; None at all other ranks."""
    if not tree.covers(rank):
        return None
    if tree.parent is not None:
        (value,) = yield ExchangeStep((), (tree.parent,))
    if rank == tree.link.rank:
        return value
    yield ExchangeStep(((_towards(tree, rank), value),))
    return None
