"""Splitting all chains by hashed colours at once: `groups.hashed` with arrays."""

from __future__ import annotations

import numpy as np

from ..dialogue import WORD
from ..hashed import MOST
from ..hashing import BINS
from .bins import split_bins
from .bitonic import bitonic
from .entries import Entries, Places
from .hashing import Bins
from .links import NONE, Links
from .network import Array, Network
from .scans import total
from .segments import by_sort
from .serial import allgather_group


def hashed(
    net: Network,
    links: Links,
    entry: Entries,
    small: int = 0,
    most: int = MOST,
    bins: int = BINS,
) -> Places:
    """Split by hash bins until chains have one colour, or at most `small` members."""
    if not entry.split:
        return Places(_by_key(net, links, entry))
    if net.n <= small:
        return allgather_group(net, links, entry)
    binned = Bins(entry.codes, bins)
    done, chain = links.only(np.zeros(net.n, bool)), links
    size = np.zeros(net.n, np.int64)
    for iteration in range(most + 1):
        short = (chain.size > 0) & (chain.size <= small)
        if short.any():
            place = allgather_group(net, chain.only(short), entry)
            done, chain = place.links.where(short, done), chain.only(~short)
        ready = _one_color(net, chain.only(chain.size == size), entry)
        done = _by_key(net, chain.only(ready), entry).where(ready, done)
        chain = chain.only(~ready)
        if iteration == most:
            break
        q = np.append(binned.of(iteration), NONE)[entry.color]
        part = split_bins(net, chain, q, bins)
        size, alone = chain.size, part.size == 1
        done, chain = part.where(alone, done), part.only(~alone)
        if not chain.size.any():
            return Places(done)
    weights = entry.color_weight, entry.key_weight
    last = by_sort(net, chain, entry.color, entry.key, weights, bitonic)
    return Places(last.where(chain.size > 0, done))


def _by_key(net: Network, links: Links, entry: Entries) -> Links:
    """Chains of one colour in the order of their keys, if that is asked for."""
    if not entry.reorder:
        return links
    one, word = np.zeros(net.n, np.int64), np.full(net.n, WORD)
    return by_sort(net, links, one, entry.key, (word, entry.key_weight), bitonic)


def _one_color(net: Network, links: Links, entry: Entries) -> Array:
    """Whether all in a chain have one colour; not for those in none."""
    ri = np.flatnonzero(links.right >= 0)
    right = links.right[ri]
    net.step((ri, right, entry.color_weight[ri]))
    same = np.ones(net.n, bool)
    same[right] = entry.color[ri] == entry.color[right]
    found = total(net, links, same, np.logical_and, lambda rows: WORD)
    return found & (links.size > 0)
