"""Splitting by integers without moving data: the links of a chain are replaced.

Divide and conquer as in Moody, Ahn, de Supinski 2011: split by the leading bits, sort
each part, and link the parts up again.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from .bins import BINS, BITS, Table, one_bin, plain, split_bins
from .chain import Link, masked
from .compare import Code
from .dialogue import Dialogue
from .encoding import encode, integer
from .lanes import any_lane, bit_length, each, largest, pick
from .place import Entry, Place, placed
from .scans import total
from .segments import count, neighbours

#: bits that a chain is split by at a time
DIGIT = BITS
#: bits of an integer of MPI_Comm_split
WORD_BITS = 32
#: least and greatest value, and how many there are; 0 if none
Range: TypeAlias = tuple[Any, Any, Any]

NO_KEY = encode(None)


def radix(link: Link, entry: Entry, whole_words: bool = False) -> Dialogue[Place]:
    """Sort the chain by colour and key, four bits at a time, and cut it.

    Of `whole_words` no leading bits are left out, not even those that all share: a
    digit in which all agree splits nothing, and takes two scans of the whole chain.
    """
    color = entry.color if entry.split else encode(0)
    inside = each(is_some, entry.color)
    value, key = each(_value, color), each(_value, entry.key)
    known = inside & each(_is_key, entry.key)
    mine = (value, value, inside * 1), (key, key, known * 1)
    colors, keys = yield from total(link, mine, _both)
    chain = link
    if any_lane(colors[2] < link.size):
        chain = yield from split_bins(link, pick(inside, link.size * 0, None), 1)
    if not any_lane(chain.size > 0):
        return Place(None)
    number = _word if whole_words else _number
    high, more = number(value, inside, colors, chain.size)
    if not entry.split:
        more = more * 0
    low, bits = number(key, known, keys, chain.size)
    if isinstance(low, np.ndarray) and largest(more + bits) > 63:
        raise ValueError("colours and keys in lanes have at most 63 bits together")
    done = yield from relink(chain, high << bits | low, more + bits)
    if not entry.split:
        return placed(done)
    left, right = yield from neighbours(done, value, done.address)
    rank, size = yield from count(done, left, right)
    return placed(masked(Link(rank, size, link.address, left, right), inside))


def is_some(code: Code | None) -> bool:
    """Whether a process is in a split."""
    return code is not None


def _is_key(code: Code | None) -> bool:
    """Whether it is a number; None is a key too, before all others."""
    return code is not None and code not in (b"", NO_KEY)


def _value(code: Code | None) -> int:
    return integer(code) if code is not None and _is_key(code) else 0


def check(code: Code | None, what: str) -> None:
    """Raise if a colour or key is not an integer."""
    try:
        _value(code)
    except ValueError:
        raise ValueError(f"radix needs integers; the {what} is none") from None


def _union(x: Range, y: Range) -> Range:
    least, most = pick(x[0] < y[0], x[0], y[0]), pick(x[1] > y[1], x[1], y[1])
    one = pick(x[2] == 0, (y[0], y[1]), (x[0], x[1]))
    return *pick((x[2] > 0) & (y[2] > 0), (least, most), one), x[2] + y[2]


def _both(x: tuple[Range, Range], y: tuple[Range, Range]) -> tuple[Range, Range]:
    return _union(x[0], y[0]), _union(x[1], y[1])


def _number(x: Any, known: Any, seen: Range, n: Any) -> tuple[Any, Any]:
    """An integer counted from the least there is, None before it; and its bits."""
    least = seen[0] - (seen[2] < n)
    some = seen[2] > 0
    bits = bit_length(pick(some, seen[1] - least, 0))
    return pick(some & known, x - least, 0), bits


def _word(x: Any, known: Any, seen: Range, n: Any) -> tuple[Any, Any]:
    """The same of whole words: as it is, unless some are negative or missing, and of 32
    bits at the least."""
    number, bits = _number(x, known, seen, n)
    natural = (seen[0] >= 0) & (seen[2] >= n)
    number = pick(natural, x, number)
    bits = pick(natural, bit_length(seen[1]), bits)
    return number, pick(bits > WORD_BITS, bits, WORD_BITS)


def relink(link: Link, u: Any, bits: Any) -> Dialogue[Link]:
    """The chain in the order of u, of so many bits; equals keep their order.

    2⌈log n⌉ rounds for every four bits, and the memory of a table for each.
    """
    some = (link.size > 1) & (bits > 0)
    if not any_lane(some):
        return link
    chain = masked(link, some)
    rest = pick(bits > DIGIT, bits - DIGIT, 0)
    q = u >> rest
    part = yield from split_bins(chain, pick(some, q, None))
    part = yield from relink(part, u & ((1 << rest) - 1), rest)
    done = yield from _rejoin(chain, part, q)
    return pick(some, done, link)  # type: ignore[no-any-return]


def _rejoin(link: Link, part: Link, q: Any) -> Dialogue[Link]:
    """The parts one after the other, by a total over the chain they came from.

    A bin of the table has its first and its last process, plus one, and its size.
    """
    first, last = part.rank == 0, (part.size > 0) & (part.rank == part.size - 1)
    head, tail = pick(first, link.address + 1, 0), pick(last, link.address + 1, 0)
    mine = one_bin(BINS, pick(first | last, q, None), head, tail, part.size)
    table = yield from total(link, mine, _ends)
    bins, own = np.arange(BINS), np.asarray(q)[..., None]
    sizes = table.fields[-1]
    before = plain(np.where((sizes > 0) & (bins < own), bins, -1).max(axis=-1))
    after = plain(np.where((sizes > 0) & (bins > own), bins, BINS).min(axis=-1))
    rank = part.rank + plain(np.where(bins < own, sizes, 0).sum(axis=-1))
    tail = table.bin(pick(before >= 0, before, 0))[1] - 1
    head = table.bin(pick(after < BINS, after, 0))[0] - 1
    left = pick(first, pick(before >= 0, tail, None), part.left)
    right = pick(last, pick(after < BINS, head, None), part.right)
    return Link(rank, link.size, link.address, left, right)


def _ends(x: Table, y: Table) -> Table:
    return Table(tuple(map(np.bitwise_or, x.fields, y.fields)))
