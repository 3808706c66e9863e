"""How large the pieces of a blocked ring are: rules on what all ranks contribute.

Träff et al. 2008 name three: the smallest block, a fixed size, and a square root that
weighs start-ups against the time to fill the pipeline. `best` tries many sizes. All
sizes are in elements, and so is `startup`: what passes in the time of a start-up.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isqrt

import numpy as np

from .patterns import STARTUP

#: the size of pieces by default, as in MPICH; in the paper 32 Ki to 1 Mi bytes
FIXED = 1 << 15


def pieces(counts: np.ndarray, size: int) -> np.ndarray:
    """Into how many pieces of a size each block is cut; an empty one counts too."""
    found: np.ndarray = np.maximum(1, -(-counts // size))
    return found


def ring_time(counts: np.ndarray, size: int, startup: float) -> float:
    """Rounds times what a round costs at the most, in elements."""
    found = pieces(counts, size)
    longest = min(size, int(counts.max()))
    return float((found.sum() - found.min()) * (startup + longest))


def smallest(counts: np.ndarray, least: int, startup: float) -> int:
    """Rule 1: the smallest block, but not below a threshold: equal blocks stay whole.
    It is for blocks that all have something; where one is empty, rule 3."""
    if counts.min() == 0:
        return square_root(counts, least, startup)
    return max(int(counts.min()), least or FIXED)


def fixed(counts: np.ndarray, size: int, startup: float) -> int:
    """Rule 2: the same for all distributions."""
    return size or FIXED


def square_root(counts: np.ndarray, least: int, startup: float) -> int:
    """Rule 3: the B with the least (m / B + (p + z - 2) / 2) (startup + B), where z of
    the p blocks are empty, and the last piece of every other is half full."""
    m, slots = int(counts.sum()), len(counts) + int((counts == 0).sum()) - 2
    return max(isqrt(int(2 * startup * m / slots)) if slots > 0 else m, least)


def best(counts: np.ndarray, least: int, startup: float) -> int:
    """The fastest of many sizes; of equals the largest: equal blocks stay whole.

    They are equal parts of the largest block, few or of about the size that rule 3
    says, that size itself, and the smallest block.
    """
    block, root = int(counts.max()), max(square_root(counts, least, startup), 1)
    about = {round(block / root * 2 ** (j / 4)) for j in range(-8, 9)}
    parts = {-(-block // n) for n in about | set(range(1, 9)) if n}
    found = {*parts, min(root, block), int(counts.min())}
    sizes = sorted({max(size, least, 1) for size in found}, reverse=True)
    return min(sizes, key=lambda size: ring_time(counts, size, startup))


Rule = Callable[[np.ndarray, int, float], int]
RULES: dict[str, Rule] = {
    "smallest": smallest,
    "fixed": fixed,
    "sqrt": square_root,
    "best": best,
}


def piece_size(
    counts: np.ndarray, rule: str = "", size: int = 0, startup: float = STARTUP
) -> int:
    """The size of pieces by a rule. To "fixed", `size` is the size, to the others the
    least size; without a rule it is taken if given, and the best if not."""
    rule = rule or ("fixed" if size else "best")
    if rule not in RULES:
        known = ", ".join(sorted(RULES))
        raise ValueError(f"no rule {rule!r} for the size of pieces; known: {known}")
    if size < 0:
        raise ValueError(f"size = {size}: pieces have one element at least")
    if not 0 <= startup < inf:
        raise ValueError(f"startup = {startup}: must be a number of elements")
    return max(RULES[rule](counts, size, startup), 1)
