"""Allreduce between two groups: everyone ends with the sum of the remote group.

Each function is the program of rank r of the local group, `here`; the remote group,
`there`, runs the function with both groups exchanged. Everyone contributes "send", of m
elements. First algorithms for long vectors, then `doubling`, of few rounds; `baselines`
has those of libraries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..schedules.ir import Comm, Index, Program, Recv, Round, Send, Span
from ..schedules.layout import Shares, Side, pick
from ..schedules.program import lay, pad, shift
from ..schedules.registry import algorithm
from . import inter_reduce_scatter
from .allgatherv import ring
from .inter_reduce_scatter import across_cost, ordered_cost
from .parts.folding import Folded, sums
from .parts.inter_shares import Scheme, commutative, ordered as by_rank, sums_across
from .parts.patterns import log2
from .reduce_scatter import bruck_cost


def _in_shares(
    r: Index, here: Side, there: Side, m: int, scheme_for: Callable[[int], Scheme]
) -> Program:
    """Everyone gets a share of the remote group's sum; then both groups collect."""
    schemes = scheme_for(here.n), scheme_for(there.n)
    shares_wanted = Shares(here.n, m), Shares(there.n, m)
    place = shares_wanted[0][schemes[0].number(r)][0]
    yield from sums_across(
        r, here, there, m, schemes, shares_wanted, place, numbered=True
    )
    yield from shift(schemes[0].collect(here.n, r, shares_wanted[0]), here.base)


def _ordered_cost(p: int, q: int, m: float, alpha: float, beta: float) -> float:
    """The time to reduce into shares in rank order, swap and collect the shares."""
    return (
        max(ordered_cost(n, m, alpha, beta) for n in (p, q))
        + across_cost(p, q, m, alpha, beta)
        + bruck_cost(max(p, q), m, alpha, beta)
    )


@algorithm(
    "inter_allreduce",
    paper="Rabenseifner 2004, halving; Kang, Träff et al. 2019, the exchange",
    cost=_ordered_cost,
)
def ordered(r: Index, here: Side, there: Side, m: int) -> Program:
    """Reduce into shares inside each group, swap the shares, collect the shares.

    For any operator: 2 log2 p rounds and the exchange, or log p + p - 1 if p is not a
    power of two. For p = q no element is sent in vain.
    """
    return _in_shares(r, here, there, m, by_rank)


@algorithm(
    "inter_allreduce",
    paper="Träff 2024, on circulant graphs; Kang, Träff et al. 2019, the exchange",
    cost=lambda p, q, m, alpha, beta: (
        2 * bruck_cost(max(p, q), m, alpha, beta) + across_cost(p, q, m, alpha, beta)
    ),
    commutative=True,
)
def bruck(r: Index, here: Side, there: Side, m: int) -> Program:
    """Reduce into shares in the fewest rounds for any group, combined in any order.

    2 ceil(log2 p) rounds and the exchange.
    """
    return _in_shares(r, here, there, m, commutative)


def _direct_cost(p: int, q: int, m: float, alpha: float, beta: float) -> float:
    """A share of everyone's vector in each round, then a ring of the shares."""
    n = max(p, q)
    return n * (alpha + m / min(p, q) * beta) + (n - 1) * (alpha + m / n * beta)


@algorithm("inter_allreduce", paper="folklore", cost=_direct_cost)
def direct(r: Index, here: Side, there: Side, m: int) -> Program:
    """Everyone sends each remote rank a share to combine, then both groups collect.

    2 max(p, q) - 1 rounds of a share, for any operator. For p = q no element is sent in
    vain; else ranks of the smaller group get more shares than they send. Scratch for
    two shares.
    """
    shares = Shares(here.n, m)
    sides = replace(here, blocks=shares), replace(there, blocks=Shares(there.n, m))
    own = {"recv": ("recv", shares.offset(r))}
    yield from lay(inter_reduce_scatter.direct(r, *sides), own)
    yield from shift(ring(here.n, r, shares), here.base)


def _levels(senders: int, n: int) -> int:
    """The rounds that a number of senders need to reach n ranks."""
    return log2(-(-n // senders) + 1)


def _from_outside(
    r: Index, here: Side, there: Side, m: int, step: int
) -> tuple[Comm, ...]:
    """Receive the remote group's sum, and hand it on inside a team.

    The team is a binomial tree whose root, number 0, is the rank of the remote group
    that acts for the team.
    """
    folded, whole = Folded(there.n), (Span("recv", 0, m),)
    teams = Shares(folded.act, here.n)
    team = teams.find(r)
    v, own = r - teams.offset(team) + 1, here.base + r
    root = there.base + folded.rank(team)
    above = (v % (2 * step) == 0) & (v + step <= teams.size(team))
    return (
        Recv(pick(v == step, root, own - step), whole, v % (2 * step) == step),
        Send(own + step, whole, above),
    )


def _to_team(
    r: Index, here: Side, there: Side, sum_: Span, step: int
) -> tuple[Comm, ...]:
    """Send the local group's sum to members of the rank's team in the remote group."""
    folded = Folded(here.n)
    teams, v = Shares(folded.act, there.n), folded.number(r)
    member = there.base + teams.offset(v) + step - 1
    return (Send(member, (sum_,), folded.acts(r) & (step <= teams.size(v))),)


def _doubling_cost(p: int, q: int, m: float, alpha: float, beta: float) -> float:
    """The time of whole vectors: rounds that double up to sums, and rounds across."""
    fold_a, fold_b = Folded(p), Folded(q)
    doubling_rounds = max(
        folded.bits + (folded.pairs > 0) for folded in (fold_a, fold_b)
    )
    across = max(_levels(fold_a.act, q), _levels(fold_b.act, p))
    return (doubling_rounds + across) * (alpha + m * beta)


@algorithm("inter_allreduce", paper="folklore", cost=_doubling_cost)
def doubling(r: Index, here: Side, there: Side, m: int) -> Program:
    """Both groups double up to their sums, and all ranks with a sum hand it across.

    log2 p rounds of all data, and one across; ceil(log2(p/q + 1)) if p > q; one more to
    fold a group that is no power of two. For any operator. Scratch for two vectors.
    """
    sum_start = yield from sums(r, here.n, m, here.base)
    own_fold, remote_fold = Folded(here.n), Folded(there.n)
    yield from pad(iter(()), max(remote_fold.bits - own_fold.bits, 0))
    rounds_in = _levels(remote_fold.act, here.n)
    rounds_out = _levels(own_fold.act, there.n)
    for t in range(max(rounds_in, rounds_out)):
        comm: tuple[Comm, ...] = ()
        if t < rounds_in:
            comm += _from_outside(r, here, there, m, 1 << rounds_in - 1 - t)
        if t < rounds_out:
            sum_ = Span("tmp", sum_start, m)
            comm += _to_team(r, here, there, sum_, 1 << rounds_out - 1 - t)
        yield Round(comm)
