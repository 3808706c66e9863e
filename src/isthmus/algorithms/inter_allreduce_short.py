"""Allreduce between two groups for short vectors: few rounds, each of all of it."""

from __future__ import annotations

from ..schedules.ir import Comm, Index, Program, Recv, Round, Send, Span
from ..schedules.layout import Shares, Side, pick
from ..schedules.program import pad
from ..schedules.registry import algorithm
from .folding import Folded, sums
from .patterns import log2


def _levels(senders: int, n: int) -> int:
    """The rounds in which so many senders reach n ranks."""
    return log2(-(-n // senders) + 1)


def _from_outside(
    r: Index, here: Side, there: Side, m: int, step: int
) -> tuple[Comm, ...]:
    """Take the other group's sum, and hand it on inside a team: the team is a binomial
    tree whose root, number 0, is the one that acts for it in the other group."""
    who, whole = Folded(there.n), (Span("recv", 0, m),)
    teams = Shares(who.act, here.n)
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
    who = Folded(here.n)
    teams, v = Shares(who.act, there.n), who.number(r)
    member = there.base + teams.offset(v) + step - 1
    return (Send(member, (sum_,), who.acts(r) & (step <= teams.size(v))),)


def _doubling_cost(p: int, q: int, m: float, alpha: float, beta: float) -> float:
    a, b = Folded(p), Folded(q)
    sums = max(x.bits + (x.pairs > 0) for x in (a, b))
    across = max(_levels(a.act, q), _levels(b.act, p))
    return (sums + across) * (alpha + m * beta)


@algorithm("inter_allreduce", paper="folklore", cost=_doubling_cost)
def doubling(r: Index, here: Side, there: Side, m: int) -> Program:
    """Both groups double up to their sums, and all that have one hand it across.

    log2 p rounds of all, and one across; ceil(log2(p/q + 1)) if p > q; one more to fold
    a group that is no power of two. For any operator. Room for two vectors.
    """
    held = yield from sums(r, here.n, m, here.base)
    mine, other = Folded(here.n), Folded(there.n)
    yield from pad(iter(()), max(other.bits - mine.bits, 0))
    coming, going = _levels(other.act, here.n), _levels(mine.act, there.n)
    for t in range(max(coming, going)):
        comm: tuple[Comm, ...] = ()
        if t < coming:
            comm += _from_outside(r, here, there, m, 1 << coming - 1 - t)
        if t < going:
            sum_ = Span("tmp", held, m)
            comm += _to_team(r, here, there, sum_, 1 << going - 1 - t)
        yield Round(comm)
