"""Allreduce between two groups for short vectors: few rounds, each of all of it."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from ..ir import Comm, Copy, Index, Mask, Program, Recv, Reduce, Round, Send, Span
from ..layout import Shares, Side, pick
from ..program import pad
from ..registry import algorithm
from .patterns import log2


@dataclass(frozen=True)
class _Folded:
    """n ranks as the largest power of two in them: the first ones go in pairs, of which
    the second acts for both."""

    n: int

    @property
    def bits(self) -> int:
        """The logarithm of how many act."""
        return self.n.bit_length() - 1

    @property
    def pairs(self) -> int:
        """How many act for two."""
        return self.n - (1 << self.bits)

    @property
    def rounds(self) -> int:
        """How many rounds until all that act have the sum."""
        return self.bits + 1

    def number(self, r: Index) -> Index:
        """The number of a rank among those that act."""
        return pick(r < 2 * self.pairs, r // 2, r - self.pairs)

    def rank(self, v: Index) -> Index:
        """The rank that acts as number v."""
        return pick(v < self.pairs, 2 * v + 1, v + self.pairs)

    def acts(self, r: Index) -> Mask:
        """Whether a rank acts."""
        return (r >= 2 * self.pairs) | (r % 2 == 1)


def _own_sum(r: Index, here: Side, m: int) -> Generator[Round, None, Index]:
    """All that act swap sums with the one that differs in a bit, the lowest first, so
    that neighbours combine; in the end, where in "tmp" the sum lies."""
    who = _Folded(here.n)
    acts, v = who.acts(r), who.number(r)
    own, first = Span("send", 0, m), Span("tmp", 0, m)
    held, free = 0 * r, 0 * r + m
    came = Span("tmp", free, m)
    second = acts & (r < 2 * who.pairs)
    yield Round(
        (
            Recv(here.base + r - 1, (came,), second),
            Send(here.base + r + 1, (own,), acts ^ True),
        ),
        (Copy(own, first, acts), Reduce(came, first, second)),
    )
    for level in range(who.bits):
        partner = here.base + who.rank(v ^ 1 << level)
        mine, came = Span("tmp", held, m), Span("tmp", free, m)
        higher = v >> level & 1 == 1
        yield Round(
            (Recv(partner, (came,), acts), Send(partner, (mine,), acts)),
            (
                Reduce(mine, came, acts & (higher ^ True)),
                Reduce(came, mine, acts & higher),
            ),
        )
        held, free = pick(higher, held, free), pick(higher, free, held)
    return held


def _levels(senders: int, n: int) -> int:
    """The rounds in which so many senders reach n ranks."""
    return log2(-(-n // senders) + 1)


def _from_outside(
    r: Index, here: Side, there: Side, m: int, step: int
) -> tuple[Comm, ...]:
    """Take the other group's sum, and hand it on inside a team: the team is a binomial
    tree whose root, number 0, is the one that acts for it in the other group."""
    who, whole = _Folded(there.n), (Span("recv", 0, m),)
    teams = Shares(1 << who.bits, here.n)
    team = teams.find(r)
    v, own = r - teams.offset(team) + 1, here.base + r
    root = there.base + who.rank(team)
    above = (v % (2 * step) == 0) & (v + step <= teams.size(team))
    return (
        Recv(pick(v == step, root, own - step), whole, v % (2 * step) == step),
        Send(own + step, whole, above),
    )


def _to_team(
    r: Index, here: Side, there: Side, sum_: Span, step: int
) -> tuple[Comm, ...]:
    """Hand the own group's sum to members of the team in the other group."""
    who = _Folded(here.n)
    teams, v = Shares(1 << who.bits, there.n), who.number(r)
    member = there.base + teams.offset(v) + step - 1
    return (Send(member, (sum_,), who.acts(r) & (step <= teams.size(v))),)


def _doubling_cost(p: int, q: int, m: float, alpha: float, beta: float) -> float:
    """For powers of two."""
    p, q = max(p, q), min(p, q)
    return (log2(p) + _levels(q, p)) * (alpha + m * beta)


@algorithm("inter_allreduce", paper="folklore", cost=_doubling_cost)
def doubling(r: Index, here: Side, there: Side, m: int) -> Program:
    """Both groups double up to their sums, and all that have one hand it across.

    log2 p rounds of all, and one across; ceil(log2(p/q + 1)) if p > q; one more to fold
    a group that is no power of two. For any operator. Room for two vectors.
    """
    held = yield from _own_sum(r, here, m)
    mine, other = _Folded(here.n), _Folded(there.n)
    yield from pad(iter(()), max(other.rounds - mine.rounds, 0))
    coming, going = _levels(1 << other.bits, here.n), _levels(1 << mine.bits, there.n)
    for t in range(max(coming, going)):
        comm: tuple[Comm, ...] = ()
        if t < coming:
            comm += _from_outside(r, here, there, m, 1 << coming - 1 - t)
        if t < going:
            sum_ = Span("tmp", held, m)
            comm += _to_team(r, here, there, sum_, 1 << going - 1 - t)
        yield Round(comm)
