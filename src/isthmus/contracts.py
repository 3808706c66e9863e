"""What each collective starts from and must end with, as marks in every buffer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from .machine import MARK, Memory, blank, marks


@dataclass(frozen=True)
class Contract:
    """The memory a rank begins with, and the buffers it must have in the end."""

    before: Callable[[int], Memory]
    after: Callable[[int], Memory]


def _in_order(counts: Sequence[int], base: int = 0) -> np.ndarray:
    """The contributions of consecutive ranks, one after the other."""
    parts = [marks(base + i, int(k)) for i, k in enumerate(counts)]
    return np.concatenate([np.empty(0, MARK), *parts])


def inter_allgatherv(a: Sequence[int], b: Sequence[int]) -> Contract:
    """Everyone of a group ends with all blocks of the other, in rank order."""
    p = len(a)
    counts = [*a, *b]

    @cache
    def sent(by_a: bool) -> np.ndarray:
        return _in_order(a) if by_a else _in_order(b, p)

    def after(r: int) -> Memory:
        return {"recv": sent(by_a=r >= p)}

    def before(r: int) -> Memory:
        return {"send": marks(r, int(counts[r])), "recv": blank(len(after(r)["recv"]))}

    return Contract(before, after)


def allgatherv(counts: Sequence[int]) -> Contract:
    """In place: everyone begins with its own block in its place, and ends with all."""
    ends = np.cumsum(counts)

    @cache
    def everything() -> np.ndarray:
        return _in_order(counts)

    def before(r: int) -> Memory:
        recv = blank(len(everything()))
        own = slice(int(ends[r]) - int(counts[r]), int(ends[r]))
        recv[own] = everything()[own]
        return {"recv": recv}

    return Contract(before, lambda r: {"recv": everything()})


def reduce(p: int, count: int, root: int = 0) -> Contract:
    """The root ends with the contributions of all ranks, combined in rank order."""
    total = marks(0, count)
    total["hi"] = p

    def before(r: int) -> Memory:
        return {"send": marks(r, count), "recv": blank(count)}

    return Contract(before, lambda r: {"recv": total} if r == root else {})
