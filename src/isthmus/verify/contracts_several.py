"""What collectives among several groups promise: each leaves out the own group.

The groups follow each other in one numbering.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from .contracts import Contract
from .marks import Memory, blank, marks


def _group_of(sizes: Sequence[int]) -> list[int]:
    """The group of every rank."""
    return np.repeat(np.arange(len(sizes)), sizes).tolist()  # type: ignore[no-any-return]


def multi_allgatherv(groups: Sequence[Sequence[int]]) -> Contract:
    """Everyone ends with the blocks of all groups but its own, in rank order; `groups`
    has the counts of each."""
    group = _group_of([len(counts) for counts in groups])
    counts = [int(k) for found in groups for k in found]

    @cache
    def others(i: int) -> np.ndarray:
        every = enumerate(zip(group, counts, strict=True))
        found = [marks(r, k) for r, (j, k) in every if j != i]
        return np.concatenate([blank(0), *found])

    def before(r: int) -> Memory:
        return {"send": marks(r, counts[r]), "recv": blank(len(others(group[r])))}

    return Contract(before, lambda r: {"recv": others(group[r])})


def multi_alltoallv(sizes: Sequence[int], table: np.ndarray) -> Contract:
    """Everyone ends with its block of everyone of the other groups, in rank order; row
    i of the table is what rank i sends to each, nothing to those of its group."""
    group = np.array(_group_of(sizes))
    ends = np.cumsum(table, 1)

    def received(r: int) -> np.ndarray:
        found = [
            marks(i, int(ends[i, r]))[int(ends[i, r] - table[i, r]) :]
            for i in np.flatnonzero(group != group[r]).tolist()
        ]
        return np.concatenate([blank(0), *found])

    def before(r: int) -> Memory:
        return {"send": marks(r, int(table[r].sum())), "recv": blank(len(received(r)))}

    return Contract(before, lambda r: {"recv": received(r)})
