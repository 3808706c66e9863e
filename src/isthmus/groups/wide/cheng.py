"""Sorting on a few processes that find exact splitters: `groups.cheng` with arrays.

Row i of a table is what sorter i holds, and column j is about the items that go to
sorter j. Items are the numbers 0 … n-1.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..dialogue import WORD
from .links import Links
from .network import Array, Lane, Network
from .scans import allgather, total
from .segments import Sort
from .trees import Tree, contract, gather, scatter


def cheng(m: int) -> Sort:
    """The sort in which a sorter holds at most m items."""

    def sort(net: Network, links: Links, items: Array, weights: Array) -> Array:
        tree = contract(net, links, m.bit_length() - 1)
        gather(net, tree, weights[items])
        if tree.top.size.max() > 1:
            _exchange(net, tree, _blocks(links, tree, items), weights)
        scatter(net, tree, links, weights)
        return links.rank

    return sort


def _blocks(links: Links, tree: Tree, items: Array) -> list[Array]:
    """The items that every sorter holds, in order."""
    by_rank = items[np.argsort(links.rank)]
    at = range(0, len(items), tree.reach)
    return [np.sort(by_rank[i : i + tree.reach]) for i in at]


def _exchange(net: Network, tree: Tree, blocks: list[Array], weights: Array) -> None:
    """Sort what all sorters hold; each keeps as many items as it had."""
    sorters = np.flatnonzero(tree.top.size)
    sorters = sorters[np.argsort(tree.top.rank[sorters])]
    allgather(net, tree.top, np.full(net.n, 2 * WORD))
    cuts = _cuts(net, tree.top, sorters, blocks, weights)
    sizes = np.empty(cuts.shape, np.int64)
    for i, block in enumerate(blocks):
        upto = np.concatenate(([0], np.cumsum(weights[block])))
        sizes[i] = np.diff(upto[np.append(cuts[i], len(block))])
    net.step(*_all_to_all(sorters, np.ones(len(sorters), bool), sizes))


def _all_to_all(sorters: Array, listen: Array, sizes: Array) -> Iterator[Lane]:
    """Everyone sends to every sorter that listens, but not to itself."""
    p = len(sorters)
    for shift in range(1, p):
        to = np.arange(shift, shift + p) % p
        some = np.flatnonzero(listen[to])
        yield sorters[some], sorters[to[some]], sizes[some, to[some]]


def _cuts(
    net: Network, top: Links, sorters: Array, blocks: list[Array], weights: Array
) -> Array:
    """Where the items of every sorter begin, in the items of each."""
    p, lengths = len(blocks), np.array([len(block) for block in blocks])
    low, high = np.zeros((p, p), np.int64), np.tile(lengths[:, None], p)
    rank = np.cumsum(lengths) - lengths
    left = np.arange(p) > 0  # those not yet cut
    while left.any():
        width, middle = high - low, _middles(blocks, low, high)
        sizes = WORD + np.where(width > 0, weights[middle], WORD)
        net.step(*_all_to_all(sorters, left, sizes))
        median = _medians(width, middle)
        told = np.full(net.n, WORD)
        told[sorters] = np.where(left, weights[median], WORD)
        allgather(net, top, told)
        ends = np.stack([np.searchsorted(block, median) for block in blocks])
        ends = np.clip(ends, low, high)
        has = (ends < high) & (_at(blocks, ends) == median)
        message = 2 * WORD * int(left.sum())
        total(net, top, np.zeros(net.n, bool), np.logical_or, lambda rows: message)  # noqa: B023
        below, equal = (ends - low).sum(axis=0), has.sum(axis=0)
        less, more = left & (rank < below), left & (rank >= below + equal)
        high = np.where(less, ends, high)
        low = np.where(more, ends + has, np.where(left & ~less, ends, low))
        rank = np.where(more, rank - below - equal, rank)
        left = less | more
    return low


def _at(blocks: list[Array], index: Array) -> Array:
    """The items at these places of every block; any where there are no more."""
    return np.stack(
        [b[np.minimum(row, len(b) - 1)] for b, row in zip(blocks, index, strict=True)]
    )


def _middles(blocks: list[Array], low: Array, high: Array) -> Array:
    return _at(blocks, (low + high) // 2)


def _medians(weight: Array, item: Array) -> Array:
    """The least item of a column that has, with those before it, half the weight."""
    order = np.argsort(item, axis=0)
    weight = np.take_along_axis(weight, order, axis=0)
    upto = np.cumsum(weight, axis=0)
    at = np.argmax(2 * upto >= np.maximum(1, upto[-1]), axis=0)
    found: Array = np.take_along_axis(item, order, axis=0)[at, np.arange(len(at))]
    return found
