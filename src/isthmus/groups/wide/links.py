"""The links of all processes, in one chain or in several, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .network import Array

#: where there is no process
NONE = -1


@dataclass(frozen=True)
class Links:
    """By address: rank, size, left and right; of size 0 where a process is in none."""

    rank: Array
    size: Array
    left: Array
    right: Array

    def only(self, chosen: Array) -> Links:
        """The chains of those chosen, which are whole chains."""
        return self.where(chosen, nowhere(len(self.rank)))

    def where(self, chosen: Array, other: Links) -> Links:
        """These links where chosen, the others elsewhere."""
        return Links(
            np.where(chosen, self.rank, other.rank),
            np.where(chosen, self.size, other.size),
            np.where(chosen, self.left, other.left),
            np.where(chosen, self.right, other.right),
        )


def nowhere(n: int) -> Links:
    """The links of n processes that are in no chain."""
    none, zero = np.full(n, NONE), np.zeros(n, np.int64)
    return Links(none, zero, none, none)


def whole(n: int) -> Links:
    """The chain of all n processes, in their order."""
    rank = np.arange(n)
    right = np.where(rank < n - 1, rank + 1, NONE)
    return Links(rank, np.full(n, n), rank - 1, right)
