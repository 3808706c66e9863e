"""Round-optimal schedules on circulant graphs, after Träff.

In round k everyone sends to the rank skip[k] further on. Which of n blocks of a root it
sends is a matter of its distance from the root only, and is found in O(log p).
"""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=64)
def skips(p: int) -> tuple[int, ...]:
    """The distances 1 = skip[0] < … < skip[q] = p: each half the next, rounded up."""
    found = [p]
    while found[-1] > 1:
        found.append(-(-found[-1] // 2))
    return tuple(reversed(found))


def base_block(p: int, r: int) -> int:
    """The first block that rank r gets from root 0: the last skip of its path."""
    skip = skips(p)
    q = len(skip) - 1
    for k in range(q - 1, -1, -1):
        if r == skip[k]:
            return k
        if r > skip[k]:
            r -= skip[k]
    return q


class _Search:
    """Finds, for each round, the block that nobody nearer could send: a descent over
    the sums of skips, in which every block is taken once."""

    def __init__(self, p: int, r: int) -> None:
        self.skip = skips(p)
        self.q = len(self.skip) - 1
        own = base_block(p, r)
        self.free = [e for e in range(self.q, -1, -1) if e != own]
        self.top, self.bound = r + p, 2 * p
        self.found: list[int] = []

    def _after(self, e: int) -> int:
        """The next free block below e, or -1."""
        return next((x for x in self.free if x < e), -1)

    def descend(self, base: int, e: int) -> None:
        """Take what can be reached from the sum `base` with blocks from e down."""
        skip, q = self.skip, self.q
        while e >= 0 and len(self.found) < q:
            x, k = base + skip[e], len(self.found)
            if x <= self.top - skip[k] and x < self.bound:
                if x <= self.top - skip[k + 1]:
                    self.descend(x, self._after(e))
                    if len(self.found) == q:
                        return
                if base > self.top - skip[len(self.found) + 1]:
                    return
                self.bound = x
                self.found.append(e)
                self.free.remove(e)
            e = self._after(e)


@lru_cache(maxsize=1 << 16)
def receives(p: int, r: int) -> tuple[int, ...]:
    """The block that rank r receives in each of q rounds, with root 0; blocks below
    zero belong to the q rounds before."""
    search = _Search(p, r)
    search.descend(0, search.free[0] if search.free else -1)
    q, own = search.q, base_block(p, r)
    return tuple(own if e == q else e - q for e in search.found)


def sends(p: int, r: int) -> tuple[int, ...]:
    """The block that rank r sends in each of q rounds, with root 0."""
    skip = skips(p)
    q = len(skip) - 1
    if r == 0:
        return tuple(range(q))
    own = base_block(p, r)
    found = [own - q] * q
    x, size, c = r, p, own
    for k in range(q - 1, 0, -1):
        if x < skip[k]:
            known = x + skip[k] < size
            size = min(size, skip[k])
        else:
            c, known = k - q, x > skip[k]
            x, size = x - skip[k], size - skip[k]
        found[k] = c if known else receives(p, (r + skip[k]) % p)[k]
    return tuple(found)


def phase(p: int, n: int, i: int) -> tuple[int, int]:
    """In round i of n - 1 + q: which skip, and what to add to a schedule's block."""
    q = len(skips(p)) - 1
    x = (q - (n - 1) % q) % q
    return (i + x) % q, q * ((i + x) // q) - x
