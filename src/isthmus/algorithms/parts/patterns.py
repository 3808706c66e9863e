"""Index arithmetic and closed forms shared by algorithms."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from ...schedules.ir import Index, Mask

#: elements that pass in the time of a start-up, by default
STARTUP_ELEMENTS = float(1 << 14)


def startup_in(alpha: float, beta: float) -> float:
    """The elements that pass in the time of a start-up, at least one."""
    return max(alpha / beta, 1.0) if beta > 0 else inf


def log2(n: int) -> int:
    """The logarithm of n to base 2, rounded up."""
    return (n - 1).bit_length()


def turns_cost(p: int, k: float, alpha: float, beta: float) -> float:
    """The time of p - 1 blocks in turn: of a ring, or at the port of a single rank."""
    return (p - 1) * (alpha + k * beta)


def doubling_cost(p: int, k: float, alpha: float, beta: float) -> float:
    """The time of ceil(log2 p) rounds in which a rank receives each block once."""
    return log2(p) * alpha + (p - 1) * k * beta


def outer(v: Index) -> bool:
    """Whether v is vertex 0, a root that lies outside the group of the leaves.

    The first rank decides for all, since all are of one group.
    """
    return bool(np.ravel(v)[0] == 0)


def is_power(n: int) -> bool:
    """Whether n is a power of two."""
    return n & (n - 1) == 0


def ring(n: Index, i: Index) -> Iterator[tuple[Index, Index, Mask]]:
    """For each round of a ring of n, the blocks that place i receives and sends.

    The third value says whether a ring of n still turns, since ranks may have rings of
    different sizes.
    """
    for t in range(int(np.max(n)) - 1):
        yield (i - t - 1) % n, (i - t) % n, t < n - 1


def tree(n: int, r: Index) -> Iterator[tuple[int, Mask, Mask]]:
    """The levels of a binomial tree with root 0, leaves first: (step, below, above).

    `below` says whether r hangs below r - step, `above` whether r + step hangs below r.
    """
    for level in range(log2(n)):
        step = 1 << level
        below = r % (2 * step) == step
        above = (r % (2 * step) == 0) & (r + step < n)
        yield step, below, above
