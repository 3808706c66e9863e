"""Splitting all chains by integers at once: `groups.radix` with arrays."""

from __future__ import annotations

import numpy as np

from ..dialogue import WORD
from ..encoding import integer
from ..radix import DIGIT, NO_KEY
from .bins import split_bins
from .entries import Entries, Places
from .links import NONE, Links
from .network import Array, Network
from .scans import total
from .segments import count, neighbours

_BINS = 1 << DIGIT
#: An entry of a table [process, bin] has three fields: first and last process of the
#: bin, plus one, 0 if unknown; and its size. Two entries together are x | y.
_FIELD = 21
_MASK = (1 << _FIELD) - 1
_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def radix(net: Network, links: Links, entry: Entries) -> Places:
    """Sort the chain by colour and key, four bits at a time, and cut it."""
    if net.n >= _MASK:
        raise ValueError(f"{net.n} processes are too many; at most {_MASK - 1}")
    inside = entry.color >= 0
    color = _integers(entry.codes, entry.color)[0], inside
    key = _integers(entry.keys, entry.key)
    mine = np.stack((_range(*color, inside), _range(*key, inside)), axis=1)
    colors, keys = total(net, links, mine, _union, _weigh)[0]
    chain = links
    if colors[2] < net.n:
        chain = split_bins(net, links, np.where(inside, 0, NONE), 1)
    size = int(chain.size.max())
    high, more = _number(*color, colors, size)
    low, bits = _number(*key, keys, size)
    if more + bits > 63:
        raise ValueError("colours and keys with more than 63 bits together")
    done = relink(net, chain, high << bits | low, more + bits)
    if not entry.split:
        return Places(done)
    here, word = np.arange(net.n), np.full(net.n, WORD)
    left, right = neighbours(net, done, color[0], word, here)
    rank, size_ = count(net, done, left, right)
    return Places(Links(rank, size_, left, right).only(inside))


def _integers(codes: list[bytes], number: Array) -> tuple[Array, Array]:
    """The integers that processes have, 0 where none is given; and whether one is."""
    known = [code not in (b"", NO_KEY) for code in codes]
    values = [integer(c) if k else 0 for c, k in zip(codes, known, strict=True)]
    return np.array([*values, 0])[number], np.array([*known, False])[number]


def _range(value: Array, known: Array, inside: Array) -> Array:
    """Rows (least, greatest, how many)."""
    some = known & inside
    return np.stack(
        (np.where(some, value, _MOST), np.where(some, value, _LEAST), some), axis=1
    )


def _union(x: Array, y: Array) -> Array:
    least, most = np.minimum(x[..., 0], y[..., 0]), np.maximum(x[..., 1], y[..., 1])
    return np.stack((least, most, x[..., 2] + y[..., 2]), axis=-1)


def _weigh(rows: Array) -> Array:
    """Three words for a range of colours and one of keys; one where there is none."""
    return WORD * np.asarray(np.where(rows[..., 2] > 0, 3, 1).sum(axis=1))


def _number(value: Array, known: Array, seen: Array, n: int) -> tuple[Array, int]:
    """Integers counted from the least there is, none before it; and their bits."""
    if seen[2] == 0:
        return np.zeros_like(value), 0
    least = int(seen[0]) - bool(seen[2] < n)
    return np.where(known, value - least, 0), (int(seen[1]) - least).bit_length()


def relink(net: Network, links: Links, u: Array, bits: int) -> Links:
    """All chains in the order of u, of so many bits; equals keep their order."""
    long = links.size > 1
    if bits == 0 or not long.any():
        return links
    rest = max(0, bits - DIGIT)
    q = u >> rest
    chain = links.only(long)
    part = split_bins(net, chain, q, _BINS)
    part = relink(net, part, u & ((1 << rest) - 1), rest)
    return _rejoin(net, chain, part, q).where(long, links)


def _rejoin(net: Network, links: Links, part: Links, q: Array) -> Links:
    """The parts one after the other, by a total over the chains they came from."""
    inside = part.size > 0
    first, last = part.rank == 0, inside & (part.rank == part.size - 1)
    who = np.flatnonzero(first | last)
    here = np.arange(net.n)
    head, tail = np.where(first, here + 1, 0), np.where(last, here + 1, 0)
    table = np.zeros((net.n, _BINS), np.int64)
    table[who, q[who]] = (head << 2 * _FIELD | tail << _FIELD | part.size)[who]
    ends = total(net, links, table, np.bitwise_or, _weigh_ends)
    bins = np.arange(_BINS)
    lower = np.where(bins < q[:, None], ends, 0)
    upper = np.where(bins > q[:, None], ends, 0)
    before = lower[here, _BINS - 1 - (lower[:, ::-1] > 0).argmax(axis=1)]
    after = upper[here, (upper > 0).argmax(axis=1)]
    tail, head = (before >> _FIELD & _MASK) - 1, (after >> 2 * _FIELD) - 1
    return Links(
        part.rank + (lower & _MASK).sum(axis=1),
        links.size,
        np.where(first, tail, part.left),
        np.where(last, head, part.right),
    )


def _weigh_ends(table: Array) -> Array:
    """A bin that is not empty has its number, both ends and its size."""
    return 4 * WORD * np.asarray(np.count_nonzero(table, axis=1))
