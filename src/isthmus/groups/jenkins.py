"""Jenkins' one-at-a-time hash, and the bins that colours fall into."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .bins import BINS, BITS

#: bits of a hash value
WIDTH = 32
#: regions of a hash value that choose bins of their own
REGIONS = WIDTH // BITS
_MASK = (1 << WIDTH) - 1


def one_at_a_time(data: Iterable[Any]) -> Any:
    """The hash of Jenkins 1997, of 32 bits; a byte may be an array of lanes."""
    h: Any = 0
    for byte in data:
        h = (h + byte) & _MASK
        h = (h + (h << 10)) & _MASK
        h = h ^ (h >> 6)
    h = (h + (h << 3)) & _MASK
    h = h ^ (h >> 11)
    return (h + (h << 15)) & _MASK


def bin_of(code: Sequence[Any], iteration: int, bins: int = BINS) -> Any:
    """The bin of a colour, by another hash function in every iteration.

    A new region of the hash value each time; when they are used up, the bytes are
    rotated. The length goes first, or strings of zeros would never part.
    """
    bits = bins.bit_length() - 1
    rotation, region = divmod(iteration, WIDTH // bits)
    packed = [*len(code).to_bytes(4, "little"), *code]
    at = rotation % len(packed)
    return one_at_a_time(packed[at:] + packed[:at]) >> region * bits & (bins - 1)
