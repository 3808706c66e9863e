"""Splits in which everyone sees all entries: `groups.serial`, from sizes alone.

The tables of all processes would take n² entries. Their bytes are counted, and what
every process would find in its table is found once for all.
"""

from __future__ import annotations

import numpy as np

from ..dialogue import WORD
from .entries import Entries, Places
from .links import NONE, Links
from .network import Array, Network
from .scans import allgather


def allgather_group(net: Network, links: Links, entry: Entries) -> Places:
    """Everyone gathers all colours and keys along its chain, and sorts them."""
    heads = _heads(links)
    allgather(net, links, entry.color_weight + entry.key_weight + WORD)
    return _places(links, heads, entry)


def allgather_mpi(net: Network, links: Links, entry: Entries) -> Places:
    """As allgather_group, with the MPI library's own allgather over all processes."""
    sizes = entry.color_weight + entry.key_weight + 2 * WORD
    rounds, heard = (net.n - 1).bit_length(), sizes.sum() - sizes
    net.rounds = np.full(net.n, net.rounds.max() + rounds)
    net.messages += rounds
    net.bytes += heard
    net.time = net.time.max() + rounds * net.alpha + net.beta * heard
    return _places(links, _heads(links), entry)


def _heads(links: Links) -> Array:
    """The address of the first process of every process's chain."""
    at = np.where(links.left < 0, np.arange(len(links.left)), links.left)
    while True:
        further = at[at]
        if (further == at).all():
            return at
        at = further


def _places(links: Links, heads: Array, entry: Entries) -> Places:
    """The groups of every chain, by key and then by rank."""
    here = (links.size > 0) & (entry.color >= 0)
    order = np.lexsort((links.rank, entry.key, entry.color, heads))
    order = order[here[order]]
    color, head = entry.color[order], heads[order]
    same = (color[1:] == color[:-1]) & (head[1:] == head[:-1])
    new = np.ones(len(order), bool)
    new[1:] = ~same
    begins, group = np.flatnonzero(new), np.cumsum(new) - 1
    sizes = np.diff(np.append(begins, len(order)))
    at = np.arange(len(order)) - begins[group]
    n = len(links.rank)
    rank, size, left, right, number = (np.full(n, NONE) for _ in range(5))
    rank[order], size[:] = at, 0
    size[order] = sizes[group]
    left[order[1:]] = np.where(same, order[:-1], NONE)
    right[order[:-1]] = np.where(same, order[1:], NONE)
    leaders = links.rank[order[begins]]
    number[order] = np.argsort(np.argsort(leaders))[group]
    return Places(Links(rank, size, left, right), number)
