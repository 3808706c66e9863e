"""Trees on the chain of all processes, level by level: `groups.trees` with arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..dialogue import WORD
from .links import Links, nowhere
from .network import Array, Network


@dataclass(frozen=True)
class Tree:
    """For every level who goes to sleep at it, and to whom; the chain of the roots."""

    levels: list[tuple[Array, Array]]
    reach: int
    top: Links


def contract(net: Network, links: Links, levels: int | None = None) -> Tree:
    """The tree over the chain; with `levels`, trees over 2^levels ranks each."""
    n = int(links.size.max())
    left, right, reach = links.left.copy(), links.right.copy(), 1
    most = n if levels is None else min(n, 1 << levels)
    found = []
    while reach < most:
        live = (links.size > 0) & (links.rank % reach == 0)
        sleepers = np.flatnonzero(live & (links.rank & reach > 0))
        parents, others = left[sleepers], right[sleepers]
        more = others >= 0
        net.step((sleepers, parents, WORD), (sleepers[more], others[more], WORD))
        right[parents], left[others[more]] = others, parents[more]
        found.append((sleepers, parents))
        reach *= 2
    roots = (links.size > 0) & (links.rank % reach == 0)
    size = np.full(net.n, -(-n // reach))
    top = Links(links.rank // reach, size, left, right)
    return Tree(found, reach, top.where(roots, nowhere(net.n)))


def gather(net: Network, tree: Tree, sizes: Array) -> None:
    """Bring everything to the roots; `sizes` are the bytes of each process."""
    held = sizes.copy()
    for sleepers, parents in tree.levels:
        net.step((sleepers, parents, held[sleepers]))
        held[parents] += held[sleepers]


def scatter(net: Network, tree: Tree, links: Links, sizes: Array) -> None:
    """Hand out what the roots hold; `sizes` are the bytes for each rank."""
    upto = np.concatenate(([0], np.cumsum(sizes)))
    for level in reversed(range(len(tree.levels))):
        sleepers, parents = tree.levels[level]
        lo = links.rank[sleepers]
        hi = np.minimum(lo + (1 << level), len(sizes))
        net.step((parents, sleepers, upto[hi] - upto[lo]))


def gather_scatter(net: Network, links: Links, items: Array, weights: Array) -> Array:
    """Merge all items on their way up the tree, and hand them out again."""
    tree = contract(net, links)
    gather(net, tree, weights[items])
    scatter(net, tree, links, weights)
    return links.rank
