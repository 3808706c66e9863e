"""Jenkins' one-at-a-time hash, and the bins of colours by their hash values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .bins import BIN_COUNT

#: bits of a hash value
HASH_BITS = 32
_HASH_MASK = (1 << HASH_BITS) - 1


def one_at_a_time(data: Iterable[Any]) -> Any:
    """The hash of Jenkins 1997, of 32 bits; a byte may be an array."""
    h: Any = 0
    for byte in data:
        h = (h + byte) & _HASH_MASK
        h = (h + (h << 10)) & _HASH_MASK
        h = h ^ (h >> 6)
    h = (h + (h << 3)) & _HASH_MASK
    h = h ^ (h >> 11)
    return (h + (h << 15)) & _HASH_MASK


def bin_of(code: Sequence[Any], iteration: int, bins: int = BIN_COUNT) -> Any:
    """The bin of a colour, by another hash function in every iteration.

    Each iteration takes a new region of the hash value; after the last region the bytes
    are rotated. The length goes first, since otherwise strings of zeros would never
    part.
    """
    bits = bins.bit_length() - 1
    rotation, region = divmod(iteration, HASH_BITS // bits)
    packed = [*len(code).to_bytes(4, "little"), *code]
    first_byte = rotation % len(packed)
    return one_at_a_time(packed[first_byte:] + packed[:first_byte]) >> region * bits & (
        bins - 1
    )
