"""How m elements may lie on p ranks: the six distributions of Träff et al. 2008.

The slides name all six, but the pictures are lost; the shares below are our reading.
Counts always add up to m: every rank gets its share rounded down, and the elements left
over go one each to the largest fractions, among equal fractions to the lower rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .spelling import unknown


def spread(m: int, weights: Sequence[int]) -> list[int]:
    """Counts of m elements in proportion to the weights, none for a weight of zero."""
    if not weights:
        raise ValueError("there is no rank: p must be at least 1")
    if m < 0:
        raise ValueError(f"m = {m}: must be at least 0")
    total_weight = sum(weights)
    shares = [divmod(m * weight, total_weight) for weight in weights]
    counts = [count for count, _ in shares]
    by_fraction = sorted(range(len(shares)), key=lambda i: -shares[i][1])
    for i in by_fraction[: m - sum(counts)]:
        counts[i] += 1
    return counts


def _peak(p: int, at: int, high: int, low: int) -> list[int]:
    """The weights of p ranks: `high` for the rank `at`, `low` for the rest."""
    if not 0 <= at < max(p, 1):
        raise ValueError(f"at = {at}: there are ranks 0 to {p - 1}")
    return [high if i == at else low for i in range(p)]


def regular(p: int, m: int) -> list[int]:
    """Equal counts for all ranks."""
    return spread(m, [1] * p)


def broadcast(p: int, m: int, at: int = 0) -> list[int]:
    """All elements on one rank."""
    return spread(m, _peak(p, at, 1, 0))


def spike(p: int, m: int, at: int = 0) -> list[int]:
    """Half of the elements on one rank, equal counts on the rest."""
    return spread(m, _peak(p, at, max(p - 1, 1), 1))


def half(p: int, m: int) -> list[int]:
    """Equal counts for the ranks with even numbers, nothing for odd ones."""
    return spread(m, [1 - i % 2 for i in range(p)])


def half_block(p: int, m: int) -> list[int]:
    """Equal counts for the first half of the ranks, nothing for the second half."""
    return spread(m, [int(2 * i < p) for i in range(p)])


def linear(p: int, m: int) -> list[int]:
    """Counts that fall linearly from rank to rank: shares of p, p - 1, …, 1."""
    return spread(m, list(range(p, 0, -1)))


def geometric(p: int, m: int) -> list[int]:
    """Half of the remaining elements for each rank in turn, the last gets the rest."""
    return spread(m, [1 << max(p - 2 - i, 0) for i in range(p)])


Distribution = Callable[[int, int], list[int]]

#: the six by name, and variants with the heavy ranks elsewhere
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
#: the distributions of the slides, in their order
PAPER_DISTRIBUTIONS = ("regular", "broadcast", "spike", "half", "linear", "geometric")


def counts(name: str, p: int, m: int) -> list[int]:
    """The counts of p ranks that hold m elements, by the name of a distribution."""
    if name not in DISTRIBUTIONS:
        raise ValueError(unknown("distribution", name, DISTRIBUTIONS))
    return DISTRIBUTIONS[name](p, m)
