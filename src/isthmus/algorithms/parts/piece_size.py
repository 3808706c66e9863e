"""The size of the pieces of a blocked ring: rules on the blocks of all ranks.

Träff et al. 2008 name three: the smallest block, a fixed size, and a square root that
weighs start-ups against the time to fill the pipeline. `best` tries many sizes. All
sizes are in elements, and so is `startup`: the elements that pass in the time of a
start-up.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isqrt

import numpy as np

from .patterns import STARTUP_ELEMENTS

#: the size of pieces by default, as in MPICH; in the paper 32 Ki to 1 Mi bytes
DEFAULT_PIECE_ELEMENTS = 1 << 15


def pieces(counts: np.ndarray, size: int) -> np.ndarray:
    """The number of pieces of each block; an empty block counts as one piece."""
    piece_counts: np.ndarray = np.maximum(1, -(-counts // size))
    return piece_counts


def ring_time(counts: np.ndarray, size: int, startup: float) -> float:
    """The number of rounds times the cost of the longest round, in elements."""
    piece_counts = pieces(counts, size)
    longest = min(size, int(counts.max()))
    return float((piece_counts.sum() - piece_counts.min()) * (startup + longest))


def smallest(counts: np.ndarray, least: int, startup: float) -> int:
    """Rule 1: the smallest block, but not below a threshold: equal blocks stay whole.

    Where a block is empty, rule 3, since no piece can be as small as an empty block.
    """
    if counts.min() == 0:
        return square_root(counts, least, startup)
    return max(int(counts.min()), least or DEFAULT_PIECE_ELEMENTS)


def fixed(counts: np.ndarray, size: int, startup: float) -> int:
    """Rule 2: an equal size for all distributions."""
    return size or DEFAULT_PIECE_ELEMENTS


def square_root(counts: np.ndarray, least: int, startup: float) -> int:
    """Rule 3: the B with the least (m / B + (p + z - 2) / 2) (startup + B).

    Here z of the p blocks are empty, and the last piece of every full block is half
    full.
    """
    m, slots = int(counts.sum()), len(counts) + int((counts == 0).sum()) - 2
    return max(isqrt(int(2 * startup * m / slots)) if slots > 0 else m, least)


def best(counts: np.ndarray, least: int, startup: float) -> int:
    """The fastest of many sizes; of equals the largest: equal blocks stay whole.

    Candidates are equal parts of the largest block, few or of about the size of rule 3,
    the size of rule 3, and the smallest block.
    """
    block, root = int(counts.max()), max(square_root(counts, least, startup), 1)
    about = {round(block / root * 2 ** (j / 4)) for j in range(-8, 9)}
    parts = {-(-block // n) for n in about | set(range(1, 9)) if n}
    candidates = {*parts, min(root, block), int(counts.min())}
    sizes = sorted({max(size, least, 1) for size in candidates}, reverse=True)
    return min(sizes, key=lambda size: ring_time(counts, size, startup))


Rule = Callable[[np.ndarray, int, float], int]
PIECE_SIZE_RULES: dict[str, Rule] = {
    "smallest": smallest,
    "fixed": fixed,
    "sqrt": square_root,
    "best": best,
}


def piece_size(
    counts: np.ndarray, rule: str = "", size: int = 0, startup: float = STARTUP_ELEMENTS
) -> int:
    """The size of pieces by a rule.

    To "fixed", `size` is the size, to other rules the least size. Without a rule,
    `size` is the size, or the best size if `size` is 0.
    """
    rule = rule or ("fixed" if size else "best")
    if rule not in PIECE_SIZE_RULES:
        known = ", ".join(sorted(PIECE_SIZE_RULES))
        raise ValueError(f"no rule {rule!r} for the size of pieces; known: {known}")
    if size < 0:
        raise ValueError(f"size = {size}: pieces have one element at least")
    if not 0 <= startup < inf:
        raise ValueError(f"startup = {startup}: must be a number of elements")
    return max(PIECE_SIZE_RULES[rule](counts, size, startup), 1)
