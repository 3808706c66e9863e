"""Allgather(v) between two groups: the two algorithms that Algorithm 1 grew out of.

In both, as in `segmented`, each process of the smaller group has a team in the larger.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..schedules.ir import Index, Program, Recv, Round, Send, Span, Spans
from ..schedules.layout import Mapped, Shares, Side, cut, pick
from ..schedules.registry import Stage, algorithm
from .inter_allgatherv import BOTH, collect, is_larger, larger_first, segmented
from .patterns import ring


def _across(r: Index, here: Side, there: Side) -> Program:
    """Pass whole blocks round the ring of teams, member c of one to member c of the
    next; where the next has one more, the members take turns to serve it."""
    teams = Shares(there.n, here.n)
    j = teams.find(r)
    c, n = r - teams.offset(j), teams.size(j)
    left, right = (j - 1) % teams.n, (j + 1) % teams.n
    few, many = teams.size(left), teams.size(right)
    for t, (received, sent, _) in enumerate(ring(teams.n, j)):
        source = here.base + teams.offset(left) + pick(c < few, c, t % few)
        target, data = here.base + teams.offset(right), there.blocks[sent]
        yield Round(
            (
                Recv(source, there.blocks[received]),
                Send(target + c, data, c < many),
                Send(target + n, data, (n < many) & (c == t % n)),
            )
        )


def _unsegmented_cost(
    p: int,
    q: int,
    ka: float,
    kb: float,
    alpha: float,
    beta: float,
    stage: Callable[..., float],
) -> float:
    p, q, ka, kb = larger_first(p, q, ka, kb)
    team = -(-p // q)
    exchange = team * (alpha + max(ka, kb) * beta)
    across = (q - 1) * (alpha + kb * beta)
    return exchange + max(across, stage(q, team * ka, alpha, beta))


@algorithm(
    *BOTH,
    paper="Kang et al., EuroMPI 2018, Algorithm 1",
    cost=_unsegmented_cost,
    staged=True,
)
def unsegmented(r: Index, here: Side, there: Side, stage: Stage) -> Program:
    """A process of the smaller group sends its whole block to each of its team.

    Simple, but the exchange costs p/q blocks: no multiple of the lower bound holds.
    """
    if is_larger(here, there):
        partner = Shares(there.n, here.n).find(r)
        yield Round(
            (
                Recv(there.base + partner, there.blocks[partner]),
                Send(there.base + partner, here.own(r)),
            )
        )
        yield from _across(r, here, there)
    else:
        teams = Shares(here.n, there.n)
        first, n = teams.offset(r), teams.size(r)
        members = [(first + i, i < n) for i in range(int(np.max(n)))]
        yield Round(
            (
                *(Recv(there.base + i, there.blocks[i], when) for i, when in members),
                *(Send(there.base + i, here.own(r), when) for i, when in members),
            )
        )
        pieces = Mapped(here.n, lambda j: there.blocks.offset(teams.offset(j)))
        yield from collect(r, here, pieces, stage)


def _inside_team(r: Index, here: Side, there: Side) -> Program:
    """Put the team's segments together: a ring in each team."""
    teams = Shares(there.n, here.n)
    j = teams.find(r)
    first, n = teams.offset(j), teams.size(j)
    c, k, at = r - first, there.blocks.size(j), there.blocks.offset(j)
    left, right = (here.base + first + (c + d) % n for d in (-1, 1))

    def segment(i: Index) -> Spans:
        return (Span("recv", at + cut(k, n, i), cut(k, n, i + 1) - cut(k, n, i)),)

    for received, sent, turns in ring(n, c):
        yield Round(
            (Recv(left, segment(received), turns), Send(right, segment(sent), turns))
        )


def _two_step_cost(
    p: int,
    q: int,
    ka: float,
    kb: float,
    alpha: float,
    beta: float,
    stage: Callable[..., float],
) -> float:
    p, q, ka, kb = larger_first(p, q, ka, kb)
    team = -(-p // q)
    exchange = team * (alpha + max(ka, kb / team) * beta)
    inside = (team - 1) * (alpha + kb / team * beta)
    across = (q - 1) * (alpha + kb * beta)
    return exchange + max(inside + across, stage(q, team * ka, alpha, beta))


@algorithm(
    *BOTH,
    paper="Kang et al., EuroMPI 2018, Algorithm 2",
    cost=_two_step_cost,
    staged=True,
)
def two_step(r: Index, here: Side, there: Side, stage: Stage) -> Program:
    """As `segmented`, but the larger group collects in two stages.

    First each team puts its block together, then the teams pass blocks to each other.
    """
    exchange = segmented(r, here, there, stage)
    yield next(exchange)
    if is_larger(here, there):
        yield from _inside_team(r, here, there)
        yield from _across(r, here, there)
    else:
        yield from exchange
