"""Batcher's network on all chains at once: `groups.sorts.bitonic` with arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .links import Links
from .network import Array, Network
from .scans import ladder


def bitonic(net: Network, links: Links, items: Array, weights: Array) -> Array:
    """Sort numbers, one of each process; `weights` are the bytes of each number."""
    lefts, rights = ladder(net, links)
    rank = links.rank
    item: Array = items.copy()
    for lo, n, up in reversed(list(_halves(links))):
        here = np.flatnonzero(n > 1)
        lo, n, up = lo[here], n[here], up[here]
        while here.size:
            d = np.frexp(n - 1)[1] - 1
            half = np.left_shift(1, d)
            first = rank[here] < lo + half
            paired = ~first | (rank[here] + half < lo + n)
            _exchange(
                net,
                item,
                weights,
                here[paired],
                np.where(first, rights[d, here], lefts[d, here])[paired],
                (first == up)[paired],
            )
            lo, n = np.where(first, lo, lo + half), np.where(first, half, n - half)
            more = n > 1
            here, lo, n, up = here[more], lo[more], n[more], up[more]
    return item


def _exchange(
    net: Network, item: Array, weights: Array, here: Array, partner: Array, low: Array
) -> None:
    """Partners show each other their items; one keeps the lower, one the higher."""
    mine, other = item[here], item[partner]
    net.step((here, partner, weights[mine]))
    item[here] = np.where(low, np.minimum(mine, other), np.maximum(mine, other))


def _halves(links: Links) -> Iterator[tuple[Array, Array, Array]]:
    """The stretches (first rank, length, ascending) that every rank is merged in."""
    rank, n = links.rank, links.size
    lo, up = np.zeros_like(n), np.ones(len(n), bool)
    while (n > 1).any():
        yield lo, n, up
        half = n // 2
        first = rank < lo + half
        up = np.where(first, ~up, up)
        lo, n = np.where(first, lo, lo + half), np.where(first, half, n - half)
