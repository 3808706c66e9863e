"""Splitting by integers without moving data: the links of a chain are set anew.

Divide and conquer as in Moody, Ahn, de Supinski 2011: split by the leading bits, sort
each part, and link the parts up again.
"""

from __future__ import annotations

from typing import TypeAlias

from .bins import split_bins
from .chain import Link
from .compare import Code
from .dialogue import Dialogue
from .encoding import encode, integer
from .place import Entry, Place
from .scans import total
from .segments import count, neighbours

#: bits that a chain is split by at a time
DIGIT = 4
#: for every bin that is not empty: its first process, its last, and its size
Ends: TypeAlias = dict[int, tuple[int | None, int | None, int]]
#: least and greatest value, and how many
Range: TypeAlias = tuple[int, int, int] | None

NO_KEY = encode(None)


def radix(link: Link, entry: Entry) -> Dialogue[Place]:
    """Sort the chain by colour and key, four bits at a time, and cut it."""
    color, key = _integers(entry)
    mine = (None, None) if entry.color is None else (_range(color), _range(key))
    colors, keys = yield from total(link, mine, _both)
    chain: Link | None = link
    if colors is None or colors[2] < link.size:
        chain = yield from split_bins(link, None if entry.color is None else 0)
    if chain is None:
        return Place(None)
    high, more = _number(color, colors, chain.size)
    low, bits = _number(key, keys, chain.size)
    done = yield from relink(chain, high << bits | low, more + bits)
    if not entry.split:
        return Place(done)
    left, right = yield from neighbours(done, color, done.address)
    rank, size = yield from count(done, left, right)
    return Place(Link(rank, size, link.address, left, right))


def _integers(entry: Entry) -> tuple[int | None, int | None]:
    """Colour and key as integers; None is a key too, before all others."""
    color = integer(entry.color) if entry.split and entry.color is not None else 0
    return color, None if entry.key in (b"", NO_KEY) else integer(entry.key)


def check(code: Code | None, what: str) -> None:
    """Raise if a colour or key is not an integer."""
    try:
        if code is not None and code not in (b"", NO_KEY):
            integer(code)
    except ValueError:
        raise ValueError(f"radix needs integers; the {what} is none") from None


def _range(x: int | None) -> Range:
    return None if x is None else (x, x, 1)


def _union(x: Range, y: Range) -> Range:
    if x is None or y is None:
        return y if x is None else x
    return min(x[0], y[0]), max(x[1], y[1]), x[2] + y[2]


def _both(x: tuple[Range, Range], y: tuple[Range, Range]) -> tuple[Range, Range]:
    return _union(x[0], y[0]), _union(x[1], y[1])


def _number(x: int | None, seen: Range, n: int) -> tuple[int, int]:
    """An integer counted from the least there is, None before it; and its bits."""
    if seen is None:
        return 0, 0
    least = seen[0] - (seen[2] < n)
    return (0 if x is None else x - least), (seen[1] - least).bit_length()


def relink(link: Link, u: int, bits: int) -> Dialogue[Link]:
    """The chain in the order of u, of so many bits; equals keep their order.

    2⌈log n⌉ rounds for every four bits, and the memory of a table for each.
    """
    if bits == 0 or link.size == 1:
        return link
    rest = max(0, bits - DIGIT)
    q = u >> rest
    part = yield from split_bins(link, q)
    assert part is not None
    part = yield from relink(part, u & ((1 << rest) - 1), rest)
    return (yield from _rejoin(link, part, q))


def _rejoin(link: Link, part: Link, q: int) -> Dialogue[Link]:
    """The parts one after the other, by a total over the chain they came from."""
    first, last = part.rank == 0, part.rank == part.size - 1
    mine: Ends = {}
    if first or last:
        here = link.address
        mine[q] = (here if first else None, here if last else None, part.size)
    table = yield from total(link, mine, _ends)
    left, right = part.left, part.right
    if first:
        before = [p for p in table if p < q]
        left = table[max(before)][1] if before else None
    if last:
        after = [p for p in table if p > q]
        right = table[min(after)][0] if after else None
    rank = part.rank + sum(table[p][2] for p in table if p < q)
    return Link(rank, link.size, link.address, left, right)


def _ends(x: Ends, y: Ends) -> Ends:
    table = dict(x)
    for q, (head, tail, size) in y.items():
        h, t, _ = x.get(q, (None, None, 0))
        table[q] = (head if h is None else h, tail if t is None else t, size)
    return table
