"""What collectives between a root and the leaves of another group begin with, and what
they promise. The root is vertex 0, and leaf j of the group is vertex j + 1."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from .contracts import Contract, bcast, combined, in_order
from .marks import MARK, Memory, blank, marks, unordered

__all__ = ["Contract", "bcast", "gatherv", "reduce", "scatterv"]


def reduce(n: int, count: int, commutative: bool = False) -> Contract:
    """The root ends with the contributions of the n - 1 leaves, combined in rank order;
    for commutative operators, in any, but each once."""
    mark = unordered(n) if commutative else MARK

    def before(v: int) -> Memory:
        if v == 0:
            return {"send": blank(0, mark), "recv": blank(count, mark)}
        return {"send": marks(v, count, mark), "recv": blank(0, mark)}

    def after(v: int) -> Memory:
        return {} if v else {"recv": combined(range(1, n), count, mark)}

    return Contract(before, after, mark)


def gatherv(counts: Sequence[int]) -> Contract:
    """The root ends with the blocks of all leaves, in rank order."""

    @cache
    def everything() -> np.ndarray:
        return in_order(counts, 1)

    def before(v: int) -> Memory:
        if v == 0:
            return {"send": blank(0), "recv": blank(sum(counts))}
        return {"send": marks(v, int(counts[v - 1])), "recv": blank(0)}

    return Contract(before, lambda v: {} if v else {"recv": everything()})


def scatterv(counts: Sequence[int]) -> Contract:
    """Every leaf ends with its block of what the root has."""
    ends = np.cumsum([0, *counts])

    @cache
    def everything() -> np.ndarray:
        return marks(0, int(ends[-1]))

    def before(v: int) -> Memory:
        if v == 0:
            return {"send": everything(), "recv": blank(0)}
        return {"send": blank(0), "recv": blank(int(counts[v - 1]))}

    def after(v: int) -> Memory:
        return {"recv": everything()[ends[v - 1] : ends[v]]} if v else {}

    return Contract(before, after)
