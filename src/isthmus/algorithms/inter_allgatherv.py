"""Allgather and Allgatherv between two groups.

Each function says what rank r of the group `here` does; the other group, `there`, runs
the same function seen from its side. `here.blocks` are the contributions of the own
group, `there.blocks` those of the other, as they lie in "recv" in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..schedules.ir import Copy, Index, Program, Recv, Round, Send, Span, Spans
from ..schedules.layout import Blocks, Mapped, Shares, Side, Uneven, cut, lesser, pick
from ..schedules.program import place, shift
from ..schedules.registry import Stage, algorithm
from .redistribution import receives, sends
from .turns import all_partners

BOTH = ("inter_allgather", "inter_allgatherv")
KANG = "Kang, Träff et al. 2019"


def larger_first(p: int, q: int, ka: float, kb: float) -> tuple[int, int, float, float]:
    """Sizes with the larger group first."""
    return (p, q, ka, kb) if p >= q else (q, p, kb, ka)


def collect(r: Index, here: Side, pieces: Blocks, stage: Stage) -> Program:
    """The allgather inside the own group that ends an exchange."""
    return shift(stage(here.n, r, pieces), here.base)


def exchange(r: Index, here: Side, there: Side, mine: Blocks, theirs: Blocks) -> Round:
    """Each gets its block of the other group's data, whoever it is from.

    `mine` is how the own group shares the other's data, `theirs` the opposite.
    """

    def number(i: Index) -> Index:
        return there.base + i

    return Round(
        (
            *receives(r, there.blocks, mine, number, mine[r][0]),
            *sends(r, here.blocks, theirs, number, here.own(r)[0]),
        )
    )


def is_larger(here: Side, there: Side) -> bool:
    """Whether the own group is the larger one; of equals, the first."""
    return (here.n, -here.base) > (there.n, -there.base)


@algorithm(
    *BOTH,
    paper="folklore",
    cost=lambda p, q, ka, kb, alpha, beta, stage: (
        max(p, q) * (alpha + max(ka, kb) * beta)
    ),
    whole_blocks=True,
)
def direct(r: Index, here: Side, there: Side, stage: Stage) -> Program:
    """Everyone sends its block to everyone of the other group.

    One round of q messages; transfer time max(p, q) max(k_A, k_B). One group goes up
    from its own number and the other down, so that partners meet: in each turn a
    process has one partner at the most.
    """
    every = all_partners(r, here, there)
    yield Round(
        (
            *(Recv(there.base + j, there.blocks[j]) for j in every),
            *(Send(there.base + j, here.own(r)) for j in every),
        )
    )


def segmented_cost(
    p: int,
    q: int,
    ka: float,
    kb: float,
    alpha: float,
    beta: float,
    stage: Callable[..., float],
) -> float:
    """The exchange of a team, one after the other, then both groups collect."""
    p, q, ka, kb = larger_first(p, q, ka, kb)
    team = -(-p // q)
    exchange = team * (alpha + max(ka, kb / team) * beta)
    return exchange + max(
        stage(p, q * kb / p, alpha, beta), stage(q, p * ka / q, alpha, beta)
    )


@algorithm(*BOTH, paper=f"{KANG}, Algorithm 1", cost=segmented_cost, staged=True)
def segmented(r: Index, here: Side, there: Side, stage: Stage) -> Program:
    """A process of the smaller group swaps segments of its block for a team's blocks.

    The larger group is cut into one team per process of the smaller one. Both groups
    then hold the other's data in near-equal pieces in rank order, and collect them.
    """
    if is_larger(here, there):
        teams = Shares(there.n, here.n)

        def begin(i: Index) -> Index:
            j = teams.find(i)
            member = i - teams.offset(j)
            return there.blocks.offset(j) + cut(
                there.blocks.size(j), teams.size(j), member
            )

        segments = Mapped(here.n, begin)
        partner = there.base + teams.find(r)
        yield Round((Recv(partner, segments[r]), Send(partner, here.own(r))))
        yield from collect(r, here, segments, stage)
    else:
        teams = Shares(here.n, there.n)
        first, n = teams.offset(r), teams.size(r)
        k = here.blocks.size(r)
        comm: list[Recv | Send] = []
        for i in range(int(np.max(n))):
            partner, start = there.base + first + i, cut(k, n, i)
            segment = (Span("send", start, cut(k, n, i + 1) - start),)
            comm += [
                Recv(partner, there.blocks[first + i], i < n),
                Send(partner, segment, i < n),
            ]
        yield Round(tuple(comm))
        pieces = Mapped(here.n, lambda j: there.blocks.offset(teams.offset(j)))
        yield from collect(r, here, pieces, stage)


@algorithm(*BOTH, paper=f"{KANG}, Algorithm 2", cost=segmented_cost, staged=True)
def balanced(r: Index, here: Side, there: Side, stage: Stage) -> Program:
    """Each receives a near-equal share of the other group's data, whoever it is from.

    Sends and receives keep the paper's order, in which no sender waits for a receiver
    that waits for another: the exchange lasts as long as the largest block. Then both
    groups collect their shares.
    """
    # lines 1 to 4 and 6 to 11 or 16 to 21: s_{B,r} and s_{A,i}; the totals k'_A and
    # k'_B are known to all, or asked for, before
    mine = Shares(here.n, there.blocks.total)
    theirs = Shares(there.n, here.blocks.total)
    yield exchange(r, here, there, mine, theirs)  # lines 12 to 14 and 22 to 24
    yield from collect(r, here, mine, stage)  # line 25 or 26


@algorithm(
    *BOTH,
    paper="folklore",
    cost=lambda p, q, ka, kb, alpha, beta, stage: stage(
        p + q, max(ka, kb), alpha, beta
    ),
    staged=True,
    own_counts=True,
    joint=True,
)
def merged(r: Index, here: Side, there: Side, stage: Stage) -> Program:
    """One allgatherv over both groups; what comes from the own group is thrown away.

    The sum of both totals moves to everyone: at most twice the lower bound.
    """
    first, second = (here, there) if here.base < there.base else (there, here)
    border = first.blocks.total
    sizes = [
        np.diff(side.blocks.offset(np.arange(side.n + 1))) for side in (first, second)
    ]
    everything = Uneven(np.concatenate(sizes))

    def where(span: Span) -> Spans:
        """Split at the border between the groups; keep the own group's part aside."""
        end = span.start + span.size
        low = lesser(end, border) - span.start
        low = pick(low > 0, low, 0)
        below = "tmp" if first is here else "recv"
        above = "recv" if first is here else "tmp"
        start = pick(span.start > border, span.start - border, 0)
        return Span(below, span.start, low), Span(above, start, span.size - low)

    own = replace(here.blocks, buf="tmp")[r][0]
    yield Round(then=(Copy(here.own(r)[0], own),))
    program = stage(first.n + second.n, here.base + r, everything)
    yield from place(program, where)
