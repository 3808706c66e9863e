"""Marks, the symbols for data on the reference machine.

A mark (index, lo, hi) stands for element `index` of the contributions of ranks lo to
hi - 1, reduced in rank order. Data would show only that a result is right for certain
values; a mark shows which contributions the result has. Where order does not matter, a
mark also has a bit for each rank in the reduction.
"""

from __future__ import annotations

import numpy as np

from .errors import BadOrder, CountedTwice

MARK = np.dtype([("index", "i8"), ("lo", "i4"), ("hi", "i4")])
Memory = dict[str, np.ndarray]


def unordered(p: int) -> np.dtype:
    """The type of marks of reductions in any order, of up to p ranks.

    A mark has a bit for each rank, because the combined ranks need not be a range.
    """
    return np.dtype([*MARK.descr, ("who", "u8", (-(-p // 64),))])


def blank(n: int, mark: np.dtype = MARK) -> np.ndarray:
    """n elements without data."""
    elements = np.zeros(n, mark)
    elements["index"] = elements["lo"] = elements["hi"] = -1
    return elements


def marks(origin: int, n: int, mark: np.dtype = MARK) -> np.ndarray:
    """The n elements of a rank's contribution."""
    elements = np.zeros(n, mark)
    elements["index"], elements["lo"], elements["hi"] = np.arange(n), origin, origin + 1
    if "who" in (mark.names or ()):
        elements["who"][:, origin // 64] = np.uint64(1 << origin % 64)
    return elements


def combine(src: np.ndarray, dst: np.ndarray, where: str = "") -> None:
    """Reduce dst := src (op) dst; raise if the result would be wrong."""
    if (src["index"] != dst["index"]).any():
        raise BadOrder(f"{where} combines different elements")
    if "who" not in (dst.dtype.names or ()):
        if (src["hi"] != dst["lo"]).any():
            raise BadOrder(f"{where} combines ranks that are not neighbours")
        dst["lo"] = src["lo"]
        return
    if (src["who"] & dst["who"]).any():
        raise CountedTwice(f"{where} combines what has a rank in common")
    dst["who"] |= src["who"]
    dst["lo"] = np.minimum(src["lo"], dst["lo"])
    dst["hi"] = np.maximum(src["hi"], dst["hi"])
