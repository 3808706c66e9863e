"""A group of any size as a group of a power of two ranks.

Algorithms that go bit by bit need the power of two, since otherwise the rank that
differs in a bit may not exist.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from ...schedules.ir import Copy, Index, Mask, Recv, Reduce, Round, Send, Span
from ...schedules.layout import pick
from ...schedules.program import shift
from .patterns import is_power


@dataclass(frozen=True)
class Folded:
    """n ranks, of which as many act as the largest power of two in n.

    The first ranks go in pairs of neighbours, and the first rank of a pair acts for
    both.
    """

    n: int

    @property
    def bits(self) -> int:
        """The logarithm of the number of acting ranks."""
        return self.n.bit_length() - 1

    @property
    def act(self) -> int:
        """The number of acting ranks."""
        return 1 << self.bits

    @property
    def pairs(self) -> int:
        """The number of pairs, in which one rank acts for both."""
        return self.n - self.act

    def number(self, r: Index) -> Index:
        """The number of a rank among the acting ranks."""
        return pick(r < 2 * self.pairs, r // 2, r - self.pairs)

    def rank(self, v: Index) -> Index:
        """The acting rank of number v."""
        return pick(v < self.pairs, 2 * v, v + self.pairs)

    def acts(self, r: Index) -> Mask:
        """Whether a rank acts."""
        return (r >= 2 * self.pairs) | (r % 2 == 0)


def fold(r: Index, folded: Folded, total: int) -> tuple[Round, Index]:
    """The round that gives acting ranks a vector in "tmp", and the vector's place.

    The vector of a pair lies behind space for another, which the next rounds need; a
    rank that acts for itself has its own vector at the beginning.
    """
    own, arrived = Span("send", 0, total), Span("tmp", total, total)
    paired, acts = r < 2 * folded.pairs, folded.acts(r)
    comm = (
        Recv(r + 1, (arrived,), paired & acts),
        Send(r - 1, (own,), acts ^ True),
    )
    steps = (
        Reduce(own, arrived, paired & acts),
        Copy(own, Span("tmp", 0, total), paired ^ True),
    )
    return Round(comm, steps), pick(paired, total, 0)


def fold_cost(n: int, total: float, alpha: float, beta: float) -> float:
    """The time of one round of whole vectors, if n is no power of two."""
    return 0.0 if is_power(n) else alpha + total * beta


def sums(r: Index, n: int, m: int, base: int = 0) -> Generator[Round, None, Index]:
    """Rounds in which all acting ranks swap sums, with a partner for each bit.

    The lowest bit comes first, so that neighbours combine, and the result is in rank
    order. Returns the place of the sum in "tmp".
    """
    folded = Folded(n)
    acts, v = folded.acts(r), folded.number(r)
    first, sum_start = fold(r, folded, m)
    yield from shift(iter([first]), base)
    for level in range(folded.bits):
        partner = base + folded.rank(v ^ 1 << level)
        own_sum, arrived = Span("tmp", sum_start, m), Span("tmp", m - sum_start, m)
        higher = v >> level & 1 == 1
        yield Round(
            (Recv(partner, (arrived,), acts), Send(partner, (own_sum,), acts)),
            (
                Reduce(own_sum, arrived, acts & (higher ^ True)),
                Reduce(arrived, own_sum, acts & higher),
            ),
        )
        sum_start = pick(higher, sum_start, m - sum_start)
    return sum_start
