"""How m elements may lie on p ranks: the six distributions of Träff et al. 2008.

The slides name them, but their pictures are lost; the shares below are our reading.
Counts always add up to m: every rank gets its share rounded down, and what is left goes
one by one to the largest fractions, of equal ones to the lower rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .spelling import unknown


def spread(m: int, weights: Sequence[int]) -> list[int]:
    """m elements in proportion to the weights; a weight of zero gets none."""
    if not weights:
        raise ValueError("there is no rank: p must be at least 1")
    if m < 0:
        raise ValueError(f"m = {m}: must be at least 0")
    whole = sum(weights)
    shares = [divmod(m * weight, whole) for weight in weights]
    counts = [count for count, _ in shares]
    by_fraction = sorted(range(len(shares)), key=lambda i: -shares[i][1])
    for i in by_fraction[: m - sum(counts)]:
        counts[i] += 1
    return counts


def _peak(p: int, at: int, high: int, low: int) -> list[int]:
    """One weight at a rank, another at all others."""
    if not 0 <= at < max(p, 1):
        raise ValueError(f"at = {at}: there are ranks 0 to {p - 1}")
    return [high if i == at else low for i in range(p)]


def regular(p: int, m: int) -> list[int]:
    """Everyone has the same."""
    return spread(m, [1] * p)


def broadcast(p: int, m: int, at: int = 0) -> list[int]:
    """One rank has everything."""
    return spread(m, _peak(p, at, 1, 0))


def spike(p: int, m: int, at: int = 0) -> list[int]:
    """One rank has half of everything, the others the same."""
    return spread(m, _peak(p, at, max(p - 1, 1), 1))


def half(p: int, m: int) -> list[int]:
    """Every other rank, from the first on, has the same, the rest nothing."""
    return spread(m, [1 - i % 2 for i in range(p)])


def half_block(p: int, m: int) -> list[int]:
    """The first half of the ranks have the same, the second half nothing."""
    return spread(m, [int(2 * i < p) for i in range(p)])


def linear(p: int, m: int) -> list[int]:
    """Shares fall by the same amount from rank to rank: p, p - 1, …, 1."""
    return spread(m, list(range(p, 0, -1)))


def geometric(p: int, m: int) -> list[int]:
    """Each rank has half of what the ranks before it left, the last all of that."""
    return spread(m, [1 << max(p - 2 - i, 0) for i in range(p)])


Distribution = Callable[[int, int], list[int]]

#: the six, and the same with the heavy ranks elsewhere
DISTRIBUTIONS: dict[str, Distribution] = {
    "regular": regular,
    "broadcast": broadcast,
    "broadcast-middle": lambda p, m: broadcast(p, m, p // 2),
    "broadcast-last": lambda p, m: broadcast(p, m, p - 1),
    "spike": spike,
    "spike-middle": lambda p, m: spike(p, m, p // 2),
    "spike-last": lambda p, m: spike(p, m, p - 1),
    "half": half,
    "half-block": half_block,
    "linear": linear,
    "geometric": geometric,
}
#: those of the slides, in their order
SIX = ("regular", "broadcast", "spike", "half", "linear", "geometric")


def counts(name: str, p: int, m: int) -> list[int]:
    """What each of p ranks has of m elements, by the name of a distribution."""
    if name not in DISTRIBUTIONS:
        raise ValueError(unknown("distribution", name, DISTRIBUTIONS))
    return DISTRIBUTIONS[name](p, m)
