"""Splitting by integers without moving data: only links of a chain are replaced.

Divide and conquer as in Moody, Ahn, de Supinski 2011: split by the leading bits, sort
each part, and link the parts up again.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from .batch import any_process, bit_length, each, largest, pick
from .bins import BIN_BITS, BIN_COUNT, BinTable, one_bin, plain, split_bins
from .chain import ChainLink, masked
from .compare import Code
from .dialogue import Dialogue
from .encoding import encode, integer
from .scans import total
from .segments import count, neighbours
from .split_entry import GroupPlace, SplitEntry, placed

#: bits of each split of a chain
DIGIT_BITS = BIN_BITS
#: bits of an integer of MPI_Comm_split
SPLIT_INTEGER_BITS = 32
#: least and greatest value, and the number of values; 0 if there is none
Range: TypeAlias = tuple[Any, Any, Any]

NO_KEY = encode(None)


def radix(
    link: ChainLink, entry: SplitEntry, whole_words: bool = False
) -> Dialogue[GroupPlace]:
    """Sort the chain by colour and key, four bits at a time, and cut it.

    With `whole_words` no leading bits are left out, not even bits shared by all values.
    By default they are, since a digit in which all values agree splits nothing, yet
    takes two scans of the chain.
    """
    color = entry.color if entry.split else encode(0)
    is_member = each(has_color, entry.color)
    value, key = each(_value, color), each(_value, entry.key)
    has_key = is_member & each(_is_key, entry.key)
    ranges = (value, value, is_member * 1), (key, key, has_key * 1)
    colors, keys = yield from total(link, ranges, _both)
    chain = link
    if any_process(colors[2] < link.size):
        chain = yield from split_bins(link, pick(is_member, link.size * 0, None), 1)
    if not any_process(chain.size > 0):
        return GroupPlace(None)
    to_number = _word if whole_words else _number
    color_number, color_bits = to_number(value, is_member, colors, chain.size)
    if not entry.split:
        color_bits = color_bits * 0
    key_number, key_bits = to_number(key, has_key, keys, chain.size)
    if isinstance(key_number, np.ndarray) and largest(color_bits + key_bits) > 63:
        raise ValueError("colours and keys in a batch have at most 63 bits together")
    sorted_chain = yield from relink(
        chain, color_number << key_bits | key_number, color_bits + key_bits
    )
    if not entry.split:
        return placed(sorted_chain)
    left, right = yield from neighbours(sorted_chain, value, sorted_chain.address)
    rank, size = yield from count(sorted_chain, left, right)
    return placed(masked(ChainLink(rank, size, link.address, left, right), is_member))


def has_color(code: Code | None) -> bool:
    """Whether a process has a colour, and so takes part in a split."""
    return code is not None


def _is_key(code: Code | None) -> bool:
    """Whether a key is a number; None is a key too, before all numbers."""
    return code is not None and code not in (b"", NO_KEY)


def _value(code: Code | None) -> int:
    """The integer of a colour or key, 0 for none."""
    return integer(code) if code is not None and _is_key(code) else 0


def check(code: Code | None, role: str) -> None:
    """Raise if a colour or key is not an integer."""
    try:
        _value(code)
    except ValueError:
        raise ValueError(f"radix needs integers; the {role} is none") from None


def _union(x: Range, y: Range) -> Range:
    """The range of two ranges, of which either may be empty."""
    least, greatest = pick(x[0] < y[0], x[0], y[0]), pick(x[1] > y[1], x[1], y[1])
    of_either = pick(x[2] == 0, (y[0], y[1]), (x[0], x[1]))
    return *pick((x[2] > 0) & (y[2] > 0), (least, greatest), of_either), x[2] + y[2]


def _both(x: tuple[Range, Range], y: tuple[Range, Range]) -> tuple[Range, Range]:
    """The ranges of colours and of keys, each of two chains as one."""
    return _union(x[0], y[0]), _union(x[1], y[1])


def _number(x: Any, has_value: Any, value_range: Range, size: Any) -> tuple[Any, Any]:
    """An integer counted from the least value, with None before all; and its bits."""
    least = value_range[0] - (value_range[2] < size)
    any_value = value_range[2] > 0
    bits = bit_length(pick(any_value, value_range[1] - least, 0))
    return pick(any_value & has_value, x - least, 0), bits


def _word(x: Any, has_value: Any, value_range: Range, size: Any) -> tuple[Any, Any]:
    """An integer as a whole word of at least 32 bits.

    Where a value is negative or missing, integers are counted from the least value,
    since the digits that split a chain have no sign.
    """
    number, bits = _number(x, has_value, value_range, size)
    fits_as_it_is = (value_range[0] >= 0) & (value_range[2] >= size)
    number = pick(fits_as_it_is, x, number)
    bits = pick(fits_as_it_is, bit_length(value_range[1]), bits)
    return number, pick(bits > SPLIT_INTEGER_BITS, bits, SPLIT_INTEGER_BITS)


def relink(link: ChainLink, number: Any, bits: Any) -> Dialogue[ChainLink]:
    """The chain in the order of a number of `bits` bits; equals stay in order.

    2⌈log n⌉ rounds for every four bits, and the memory of one table for each.
    """
    to_sort = (link.size > 1) & (bits > 0)
    if not any_process(to_sort):
        return link
    chain = masked(link, to_sort)
    lower_bits = pick(bits > DIGIT_BITS, bits - DIGIT_BITS, 0)
    digit = number >> lower_bits
    parts = yield from split_bins(chain, pick(to_sort, digit, None))
    parts = yield from relink(parts, number & ((1 << lower_bits) - 1), lower_bits)
    rejoined = yield from _rejoin(chain, parts, digit)
    return pick(to_sort, rejoined, link)  # type: ignore[no-any-return]


def _rejoin(link: ChainLink, parts: ChainLink, digit: Any) -> Dialogue[ChainLink]:
    """The parts linked up in order of their digits, by a total over their common chain.

    The fields of a bin are its first and last process, each plus one since 0 is an
    empty bin, and its size.
    """
    first, last = parts.rank == 0, (parts.size > 0) & (parts.rank == parts.size - 1)
    head, tail = pick(first, link.address + 1, 0), pick(last, link.address + 1, 0)
    own_ends = one_bin(
        BIN_COUNT, pick(first | last, digit, None), head, tail, parts.size
    )
    table = yield from total(link, own_ends, _ends)
    bins, own_digit = np.arange(BIN_COUNT), np.asarray(digit)[..., None]
    sizes = table.fields[-1]
    before = plain(np.where((sizes > 0) & (bins < own_digit), bins, -1).max(axis=-1))
    after = plain(
        np.where((sizes > 0) & (bins > own_digit), bins, BIN_COUNT).min(axis=-1)
    )
    rank = parts.rank + plain(np.where(bins < own_digit, sizes, 0).sum(axis=-1))
    tail = table.bin(pick(before >= 0, before, 0))[1] - 1
    head = table.bin(pick(after < BIN_COUNT, after, 0))[0] - 1
    left = pick(first, pick(before >= 0, tail, None), parts.left)
    right = pick(last, pick(after < BIN_COUNT, head, None), parts.right)
    return ChainLink(rank, link.size, link.address, left, right)


def _ends(x: BinTable, y: BinTable) -> BinTable:
    """The fields of two tables; a field filled in both has equal values in both."""
    return BinTable(tuple(map(np.bitwise_or, x.fields, y.fields)))
