"""Marks, which stand for data on the reference machine: who contributed what.

A mark (index, lo, hi) stands for element `index` of the contributions of ranks lo to
hi - 1, reduced in that order. Where order does not matter, a mark also says who is in
it, a bit for each rank.
"""

from __future__ import annotations

import numpy as np

from .errors import BadOrder, CountedTwice

MARK = np.dtype([("index", "i8"), ("lo", "i4"), ("hi", "i4")])
Memory = dict[str, np.ndarray]


def unordered(p: int) -> np.dtype:
    """Marks of reductions whose order does not matter, of up to p ranks."""
    return np.dtype([*MARK.descr, ("who", "u8", (-(-p // 64),))])


def blank(n: int, mark: np.dtype = MARK) -> np.ndarray:
    """n elements that nobody wrote."""
    out = np.zeros(n, mark)
    out["index"] = out["lo"] = out["hi"] = -1
    return out


def marks(origin: int, n: int, mark: np.dtype = MARK) -> np.ndarray:
    """The n elements that one rank contributes."""
    out = np.zeros(n, mark)
    out["index"], out["lo"], out["hi"] = np.arange(n), origin, origin + 1
    if "who" in (mark.names or ()):
        out["who"][:, origin // 64] = np.uint64(1 << origin % 64)
    return out


def combine(src: np.ndarray, dst: np.ndarray, where: str = "") -> None:
    """dst := src (op) dst; raise where that would be wrong."""
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
