"""Jenkins' hash of many colours at once, and the bins they fall into."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..hashing import BINS
from .network import Array


class Bins:
    """The bins of colours, as `groups.hashing.bin_of` gives them; or fewer or more."""

    def __init__(self, codes: Sequence[bytes], bins: int = BINS) -> None:
        self.bins, self.bits = bins, bins.bit_length() - 1
        packed = [len(code).to_bytes(4, "little") + code for code in codes]
        self.length = np.fromiter(map(len, packed), np.int64, len(packed))
        widest = int(self.length.max(initial=0))
        joined = b"".join(code.ljust(widest, b"\0") for code in packed)
        self.bytes = np.frombuffer(joined, np.uint8).reshape(len(packed), widest)
        self.rotation, self.hash = -1, np.zeros(len(packed), np.uint32)

    def of(self, iteration: int) -> Array:
        """The bin of every colour in an iteration."""
        rotation, region = divmod(iteration, 32 // self.bits)
        if rotation != self.rotation:
            self.rotation, self.hash = rotation, self._hash(rotation)
        found = self.hash >> np.uint32(region * self.bits) & np.uint32(self.bins - 1)
        return np.asarray(found, np.int64)

    def _hash(self, rotation: int) -> Array:
        h = np.zeros(len(self.length), np.uint32)
        rows = np.arange(len(h))
        for j in range(self.bytes.shape[1]):
            byte = self.bytes[rows, (j + rotation) % self.length]
            mixed = h + byte
            mixed += mixed << np.uint32(10)
            mixed ^= mixed >> np.uint32(6)
            h = np.where(j < self.length, mixed, h)
        h += h << np.uint32(3)
        h ^= h >> np.uint32(11)
        return np.asarray(h + (h << np.uint32(15)))
