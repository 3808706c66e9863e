"""A group of any size as one of a power of two, for algorithms that need one."""

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

    The first ranks go in pairs of neighbours, and the first of a pair acts for both.
    """

    n: int

    @property
    def bits(self) -> int:
        """The logarithm of the number of ranks that act."""
        return self.n.bit_length() - 1

    @property
    def act(self) -> int:
        """The number of ranks that act."""
        return 1 << self.bits

    @property
    def pairs(self) -> int:
        """The number of ranks that act for two."""
        return self.n - self.act

    def number(self, r: Index) -> Index:
        """The number of a rank among those that act."""
        return pick(r < 2 * self.pairs, r // 2, r - self.pairs)

    def rank(self, v: Index) -> Index:
        """The rank that acts as number v."""
        return pick(v < self.pairs, 2 * v, v + self.pairs)

    def acts(self, r: Index) -> Mask:
        """Whether a rank acts."""
        return (r >= 2 * self.pairs) | (r % 2 == 0)


def fold(r: Index, who: Folded, total: int) -> tuple[Round, Index]:
    """The round after which ranks that act have a vector in "tmp", and its place there.

    The vector of a pair lies behind space for one, which the next rounds need; a rank
    that acts for itself has its own vector at the beginning.
    """
    own, came = Span("send", 0, total), Span("tmp", total, total)
    paired, acts = r < 2 * who.pairs, who.acts(r)
    comm = (
        Recv(r + 1, (came,), paired & acts),
        Send(r - 1, (own,), acts ^ True),
    )
    steps = (
        Reduce(own, came, paired & acts),
        Copy(own, Span("tmp", 0, total), paired ^ True),
    )
    return Round(comm, steps), pick(paired, total, 0)


def fold_cost(n: int, total: float, alpha: float, beta: float) -> float:
    """The time of one round of whole vectors, if n is no power of two."""
    return 0.0 if is_power(n) else alpha + total * beta


def sums(r: Index, n: int, m: int, base: int = 0) -> Generator[Round, None, Index]:
    """Rounds in which all that act swap sums with the one that differs in a bit.

    The lowest bit comes first, so that neighbours combine, and the result is in rank
    order. Returns the place of the sum in "tmp".
    """
    who = Folded(n)
    acts, v = who.acts(r), who.number(r)
    first, held = fold(r, who, m)
    yield from shift(iter([first]), base)
    for level in range(who.bits):
        partner = base + who.rank(v ^ 1 << level)
        mine, came = Span("tmp", held, m), Span("tmp", m - held, m)
        higher = v >> level & 1 == 1
        yield Round(
            (Recv(partner, (came,), acts), Send(partner, (mine,), acts)),
            (
                Reduce(mine, came, acts & (higher ^ True)),
                Reduce(came, mine, acts & higher),
            ),
        )
        held = pick(higher, held, m - held)
    return held
