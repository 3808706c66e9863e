"""Round-optimal schedules on circulant graphs, after Träff.

In a round everyone sends to the rank skip[k] further on. Which of n parts of a root's
data a rank sends depends on its distance from the root only. The part is computed in
O(log p) for one rank, and for all ranks at once by doubling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from math import isqrt

import numpy as np

from ...schedules.ir import Index


@lru_cache(maxsize=64)
def skips(p: int) -> tuple[int, ...]:
    """The distances 1 = skip[0] < … < skip[q] = p: each half the next, rounded up."""
    distances = [p]
    while distances[-1] > 1:
        distances.append(-(-distances[-1] // 2))
    return tuple(reversed(distances))


def base_block(p: int, r: int) -> int:
    """The first block from root 0 to rank r: the last skip of the path to r."""
    skip = skips(p)
    q = len(skip) - 1
    for k in range(q - 1, -1, -1):
        if r == skip[k]:
            return k
        if r > skip[k]:
            r -= skip[k]
    return q


class _Search:
    """A search for each round's block, which no nearer rank could send.

    The search descends over the sums of skips, in which every block is taken once.
    """

    def __init__(self, p: int, r: int) -> None:
        self.skip = skips(p)
        self.q = len(self.skip) - 1
        own = base_block(p, r)
        self.free = [e for e in range(self.q, -1, -1) if e != own]
        self.top, self.bound = r + p, 2 * p
        self.chosen_blocks: list[int] = []

    def _after(self, e: int) -> int:
        """The next free block below e, or -1."""
        return next((x for x in self.free if x < e), -1)

    def descend(self, base: int, e: int) -> None:
        """Choose, from e down, the blocks that can be reached from the sum `base`."""
        skip, q = self.skip, self.q
        while e >= 0 and len(self.chosen_blocks) < q:
            x, k = base + skip[e], len(self.chosen_blocks)
            if x <= self.top - skip[k] and x < self.bound:
                if x <= self.top - skip[k + 1]:
                    self.descend(x, self._after(e))
                    if len(self.chosen_blocks) == q:
                        return
                if base > self.top - skip[len(self.chosen_blocks) + 1]:
                    return
                self.bound = x
                self.chosen_blocks.append(e)
                self.free.remove(e)
            e = self._after(e)


def receives(p: int, r: int) -> tuple[int, ...]:
    """The block that rank r receives in each of q rounds, with root 0.

    Blocks below zero belong to the q rounds before.
    """
    search = _Search(p, r)
    search.descend(0, search.free[0] if search.free else -1)
    q, own = search.q, base_block(p, r)
    return tuple(own if e == q else e - q for e in search.chosen_blocks)


@lru_cache(maxsize=16)
def receive_table(p: int) -> np.ndarray:
    """The schedules of all ranks: row r is `receives` of rank r."""
    table = np.empty((1, 0), np.int8)
    for q, n in enumerate(skips(p)[1:], 1):
        table = _doubled(table, q, n)
    table.flags.writeable = False
    return table


def _doubled(half: np.ndarray, q: int, n: int) -> np.ndarray:
    """The table of n ranks from the table of half as many, rounded up.

    One more round comes last. In the last round the lower half gets the newest block of
    the round before, and the upper half, which until then does as the lower half, its
    own block.
    """
    own = half.max(axis=1, initial=0)
    own[0] = q - 1
    newest = np.full(len(half), -1, np.int8)
    lower = np.column_stack((np.where(half < 0, half - 1, half), newest))
    upper = np.column_stack((np.where(half < 0, half - 1, -1), own))
    table = np.concatenate((lower, upper[: n - len(half)]))
    if n % 2:
        # the halves differ by a rank: ranks whose blocks come from beyond rank 0 may
        # get them in another order, and are among the first q
        table[:q] = [receives(n, r) for r in range(min(q, n))]
    return table.astype(np.int8, copy=False)


def rounds(p: int, n: int) -> Iterator[tuple[int, Callable[[Index], Index]]]:
    """The n - 1 + q rounds of a broadcast of n parts: skips, and parts by rank.

    The function of a round maps a rank's distance from the root to the number of its
    part, below zero for none. No part comes twice.
    """
    skip = skips(p)
    q = len(skip) - 1
    for i in range(n - 1 + q if q else 0):
        k = (i - n + 1) % q
        yield skip[k], partial(_part, receive_table(p)[:, k], i - k, n - 1)


def _part(blocks: np.ndarray, since: int, last: int, v: Index) -> Index:
    return np.minimum(blocks[v].astype(np.int64) + since, last)


def cuts(waste: int, startup: float) -> int:
    """The n with the least sum of n start-ups and an n-th of the waste."""
    n = isqrt(int(max(waste, 0) / startup))
    return n + 1 if n == 0 or waste > n * (n + 1) * startup else n
