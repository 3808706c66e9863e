"""Jenkins' one-at-a-time hash, and the bins that colours fall into."""

from __future__ import annotations

#: bits of the hash that choose a bin, and how many bins that makes
BITS = 4
BINS = 1 << BITS
#: regions of a 32-bit hash value that choose bins of their own
REGIONS = 32 // BITS
_MASK = 0xFFFFFFFF


def one_at_a_time(data: bytes) -> int:
    """The hash of Jenkins 1997, of 32 bits."""
    h = 0
    for byte in data:
        h = (h + byte) & _MASK
        h = (h + (h << 10)) & _MASK
        h ^= h >> 6
    h = (h + (h << 3)) & _MASK
    h ^= h >> 11
    return (h + (h << 15)) & _MASK


def bin_of(code: bytes, iteration: int) -> int:
    """The bin of a colour, by another hash function in every iteration.

    A new region of the hash value each time; when they are used up, the bytes are
    rotated. The length goes first, or strings of zeros would never part.
    """
    rotation, region = divmod(iteration, REGIONS)
    packed = len(code).to_bytes(4, "little") + code
    at = rotation % len(packed)
    return one_at_a_time(packed[at:] + packed[:at]) >> (region * BITS) & (BINS - 1)
