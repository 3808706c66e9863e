"""What each collective starts from and must end with, as marks in every buffer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from .marks import MARK, Memory, blank, marks, unordered


@dataclass(frozen=True)
class Contract:
    """The memory a rank begins with, and the buffers it must have in the end."""

    before: Callable[[int], Memory]
    after: Callable[[int], Memory]
    #: the kind of marks, for scratch memory too
    mark: np.dtype = MARK
    #: of whom a rank must have heard: it may not end before these have begun
    hears: Callable[[int], range] = lambda r: range(0)


def in_order(counts: Sequence[int], base: int = 0) -> np.ndarray:
    """The contributions of consecutive ranks, one after the other."""
    parts = [marks(base + i, int(k)) for i, k in enumerate(counts)]
    return np.concatenate([np.empty(0, MARK), *parts])


def combined(ranks: range, count: int, mark: np.dtype) -> np.ndarray:
    """The contributions of consecutive ranks, reduced to one."""
    every = marks(ranks[0], count, mark)
    every["hi"] = ranks.stop
    if "who" in (mark.names or ()):
        every["who"] = sum(marks(r, 1, mark)["who"] for r in ranks)
    return every


def inter_allgatherv(a: Sequence[int], b: Sequence[int]) -> Contract:
    """Everyone of a group ends with all blocks of the other, in rank order."""
    p = len(a)
    counts = [*a, *b]

    @cache
    def sent(by_a: bool) -> np.ndarray:
        return in_order(a) if by_a else in_order(b, p)

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
        return in_order(counts)

    def before(r: int) -> Memory:
        recv = blank(len(everything()))
        own = slice(int(ends[r]) - int(counts[r]), int(ends[r]))
        recv[own] = everything()[own]
        return {"recv": recv}

    return Contract(before, lambda r: {"recv": everything()})


def bcast(count: int, root: int = 0) -> Contract:
    """In place: the root begins with the data, and everyone ends with them."""

    @cache
    def data() -> np.ndarray:
        return marks(root, count)

    def before(r: int) -> Memory:
        return {"recv": data() if r == root else blank(count)}

    return Contract(before, lambda r: {"recv": data()})


def reduce(p: int, count: int, root: int = 0, commutative: bool = False) -> Contract:
    """The root ends with the contributions of all ranks, combined in rank order; for
    commutative operators, in any, but each once."""
    mark = unordered(p) if commutative else MARK

    def before(r: int) -> Memory:
        return {"send": marks(r, count, mark), "recv": blank(count, mark)}

    def after(r: int) -> Memory:
        return {"recv": combined(range(p), count, mark)} if r == root else {}

    return Contract(before, after, mark)


def gatherv(counts: Sequence[int], root: int = 0) -> Contract:
    """The root ends with the blocks of all ranks, in rank order."""

    @cache
    def everything() -> np.ndarray:
        return in_order(counts)

    def before(r: int) -> Memory:
        room = blank(sum(counts) if r == root else 0)
        return {"send": marks(r, int(counts[r])), "recv": room}

    return Contract(before, lambda r: {"recv": everything()} if r == root else {})


def scatterv(counts: Sequence[int], root: int = 0) -> Contract:
    """Everyone ends with its block of what the root has."""
    ends = np.cumsum(counts)

    @cache
    def everything() -> np.ndarray:
        return marks(root, sum(counts))

    def before(r: int) -> Memory:
        send = everything() if r == root else blank(0)
        return {"send": send, "recv": blank(int(counts[r]))}

    def after(r: int) -> Memory:
        return {"recv": everything()[int(ends[r]) - int(counts[r]) : int(ends[r])]}

    return Contract(before, after)
