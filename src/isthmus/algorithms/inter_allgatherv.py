"""Allgather and Allgatherv between two groups.

Each function is the program of rank r of the local group, `here`; the remote group,
`there`, runs the function with both groups exchanged. `here.blocks` are the
contributions of the local group, `there.blocks` those of the remote group, as they lie
in "recv" in the end. First the algorithms of Kang et al., then `pipelined`; `baselines`
has those of libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..schedules.ir import Copy, Index, Program, Recv, Round, Send, Span, Spans
from ..schedules.layout import (
    Blocks,
    Mapped,
    Shares,
    Side,
    Uneven,
    cut,
    lesser,
    pick,
)
from ..schedules.program import delayed, map_spans, merge_rounds, shift
from ..schedules.registry import Stage, algorithm
from . import allgatherv
from .allgatherv_blocked_ring import sizes
from .parts.block_overlap import receives, sends
from .parts.patterns import ring, turns_cost
from .parts.turns import all_partners

INTER_ALLGATHERS = ("inter_allgather", "inter_allgatherv")
KANG = "Kang, Träff et al. 2019"


def larger_first(p: int, q: int, ka: float, kb: float) -> tuple[int, int, float, float]:
    """Sizes with the larger group first."""
    return (p, q, ka, kb) if p >= q else (q, p, kb, ka)


def collect(r: Index, here: Side, pieces: Blocks, stage: Stage) -> Program:
    """The allgather inside the local group that ends an exchange."""
    return shift(stage(here.n, r, pieces), here.base)


def exchange(
    r: Index, here: Side, there: Side, own_shares: Blocks, remote_shares: Blocks
) -> Round:
    """Every rank receives its share of the remote group's data, from one or more ranks.

    `own_shares` is how the local group shares the remote group's data, `remote_shares`
    how the remote group shares the local group's data.
    """

    def number(i: Index) -> Index:
        return there.base + i

    return Round(
        (
            *receives(r, there.blocks, own_shares, number, own_shares[r][0]),
            *sends(r, here.blocks, remote_shares, number, here.own(r)[0]),
        )
    )


def is_larger(here: Side, there: Side) -> bool:
    """Whether the local group takes the part of the larger group.

    Of equal groups the first does, since exactly one of two groups must.
    """
    return (here.n, -here.base) > (there.n, -there.base)


@algorithm(
    *INTER_ALLGATHERS,
    paper="folklore",
    cost=lambda p, q, ka, kb, alpha, beta, stage: (
        max(p, q) * (alpha + max(ka, kb) * beta)
    ),
)
def direct(r: Index, here: Side, there: Side, stage: Stage) -> Program:
    """Everyone sends its block to everyone of the other group.

    One round of q messages; transfer time max(p, q) max(k_A, k_B). One group goes up
    from its own number and the other down, so that partners meet: in each turn a
    process has at most one partner.
    """
    targets = all_partners(r, here, there)
    yield Round(
        (
            *(Recv(there.base + j, there.blocks[j]) for j in targets),
            *(Send(there.base + j, here.own(r)) for j in targets),
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
    """The time of a team's exchanges in turn, and of the collecting."""
    p, q, ka, kb = larger_first(p, q, ka, kb)
    team = -(-p // q)
    exchange = team * (alpha + max(ka, kb / team) * beta)
    return exchange + max(
        stage(p, q * kb / p, alpha, beta), stage(q, p * ka / q, alpha, beta)
    )


@algorithm(
    *INTER_ALLGATHERS, paper=f"{KANG}, Algorithm 1", cost=segmented_cost, staged=True
)
def segmented(r: Index, here: Side, there: Side, stage: Stage) -> Program:
    """A process of the smaller group swaps segments of its block for a team's blocks.

    The larger group is cut into one team for each process of the smaller group. Both
    groups then hold the remote group's data in near-equal pieces in rank order, and
    collect the pieces.
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


@algorithm(
    *INTER_ALLGATHERS, paper=f"{KANG}, Algorithm 2", cost=segmented_cost, staged=True
)
def balanced(r: Index, here: Side, there: Side, stage: Stage) -> Program:
    """Each receives a near-equal share of the remote group's data, whoever it is from.

    Sends and receives keep the paper's order, in which no sender waits for a receiver
    that waits for another sender: the exchange lasts as long as the largest block. Then
    both groups collect their shares.
    """
    # lines 1 to 4 and 6 to 11 or 16 to 21: s_{B,r} and s_{A,i}; the totals k'_A and
    # k'_B are known to all, or asked for, before
    own_shares = Shares(here.n, there.blocks.total)
    remote_shares = Shares(there.n, here.blocks.total)
    # lines 12 to 14 and 22 to 24
    yield exchange(r, here, there, own_shares, remote_shares)
    yield from collect(r, here, own_shares, stage)  # line 25 or 26


@algorithm(
    *INTER_ALLGATHERS,
    paper="folklore",
    cost=lambda p, q, ka, kb, alpha, beta, stage: stage(
        p + q, max(ka, kb), alpha, beta
    ),
    staged=True,
    own_counts=True,
)
def merged(r: Index, here: Side, there: Side, stage: Stage) -> Program:
    """One allgatherv over both groups, which discards the blocks of the local group.

    The sum of both totals moves to everyone: at most twice the lower bound.
    """
    sides = (here, there) if here.base < there.base else (there, here)
    return without_local_blocks(sides.index(here), r, sides, stage)


def without_local_blocks(
    i: int, x: Index, sides: Sequence[Side], stage: Stage
) -> Program:
    """One allgatherv over all groups, as rank x of group i, in whose "recv" the blocks
    of the other groups follow each other."""
    here = sides[i]
    low = sum(side.blocks.total for side in sides[:i])
    high = low + here.blocks.total
    everything = Uneven(np.concatenate([sizes(side.blocks) for side in sides]))

    def without_own(span: Span) -> Spans:
        """The parts of a span before the local group's blocks, in them, and behind."""
        start, end = span.start, span.start + span.size
        first = lesser(end, low) - start
        last = end - pick(start > high, start, high)
        first, last = (pick(n > 0, n, 0) for n in (first, last))
        inside = pick(start > low, start - low, 0)
        behind = pick(start > high, start, high) - here.blocks.total
        return (
            Span("recv", start, first),
            Span("tmp", inside, span.size - first - last),
            Span("recv", behind, last),
        )

    (own,) = here.blocks.within("tmp")[x]
    yield Round(then=(Copy(here.own(x)[0], own),))
    n = sum(side.n for side in sides)
    yield from map_spans(stage(n, here.base + x, everything), without_own)


def _across(r: Index, here: Side, there: Side) -> Program:
    """Pass whole blocks round the ring of teams.

    Member c of a team sends to member c of the next team; a member without a sender,
    where the next team is larger by one, is served by the members in turn.
    """
    teams = Shares(there.n, here.n)
    j = teams.find(r)
    c, n = r - teams.offset(j), teams.size(j)
    left, right = (j - 1) % teams.n, (j + 1) % teams.n
    left_size, right_size = teams.size(left), teams.size(right)
    for t, (received, sent, _) in enumerate(ring(teams.n, j)):
        source = here.base + teams.offset(left) + pick(c < left_size, c, t % left_size)
        target, data = here.base + teams.offset(right), there.blocks[sent]
        yield Round(
            (
                Recv(source, there.blocks[received]),
                Send(target + c, data, c < right_size),
                Send(target + n, data, (n < right_size) & (c == t % n)),
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
    """The time of a team's exchanges, and of the slower group's collecting."""
    p, q, ka, kb = larger_first(p, q, ka, kb)
    team = -(-p // q)
    exchange = team * (alpha + max(ka, kb) * beta)
    across = (q - 1) * (alpha + kb * beta)
    return exchange + max(across, stage(q, team * ka, alpha, beta))


@algorithm(
    *INTER_ALLGATHERS,
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
                *(
                    Recv(there.base + i, there.blocks[i], exists)
                    for i, exists in members
                ),
                *(Send(there.base + i, here.own(r), exists) for i, exists in members),
            )
        )
        pieces = Mapped(here.n, lambda j: there.blocks.offset(teams.offset(j)))
        yield from collect(r, here, pieces, stage)


def _inside_team(r: Index, here: Side, there: Side) -> Program:
    """A ring in each team that puts the team's segments together."""
    teams = Shares(there.n, here.n)
    j = teams.find(r)
    first, n = teams.offset(j), teams.size(j)
    c, k, start = r - first, there.blocks.size(j), there.blocks.offset(j)
    left, right = (here.base + first + (c + d) % n for d in (-1, 1))

    def segment(i: Index) -> Spans:
        return (Span("recv", start + cut(k, n, i), cut(k, n, i + 1) - cut(k, n, i)),)

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
    """The time of exchanges, and of the slower group's collecting, in two stages."""
    p, q, ka, kb = larger_first(p, q, ka, kb)
    team = -(-p // q)
    exchange = team * (alpha + max(ka, kb / team) * beta)
    inside = (team - 1) * (alpha + kb / team * beta)
    across = (q - 1) * (alpha + kb * beta)
    return exchange + max(inside + across, stage(q, team * ka, alpha, beta))


@algorithm(
    *INTER_ALLGATHERS,
    paper="Kang et al., EuroMPI 2018, Algorithm 2",
    cost=_two_step_cost,
    staged=True,
)
def two_step(r: Index, here: Side, there: Side, stage: Stage) -> Program:
    """As `segmented`, but the larger group collects in two stages.

    First each team puts its block together, then the teams pass on whole blocks.
    """
    exchange = segmented(r, here, there, stage)
    yield next(exchange)
    if is_larger(here, there):
        yield from _inside_team(r, here, there)
        yield from _across(r, here, there)
    else:
        yield from exchange


#: parts of every share in `pipelined`, by default
PIPELINE_PARTS = 2


@dataclass(frozen=True)
class Part(Blocks):
    """Part `number` of every share, as blocks."""

    shares: Shares
    parts: int
    number: int

    @property
    def n(self) -> int:  # type: ignore[override]
        """The number of shares."""
        return self.shares.n

    def _edge(self, i: Index, number: int) -> Index:
        return self.shares.offset(i) + cut(self.shares.size(i), self.parts, number)

    def offset(self, i: Index) -> Index:
        """The first element of the part of share i."""
        return self._edge(i, self.number)

    def size(self, i: Index) -> Index:
        """The number of elements of the part of share i."""
        return self._edge(i, self.number + 1) - self._edge(i, self.number)

    def find(self, x: Index) -> Index:
        """The share with element x."""
        return self.shares.find(x)

    def __getitem__(self, i: Index) -> Spans:
        return (Span(self.shares.buf, self.offset(i), self.size(i)),)


@algorithm(
    *INTER_ALLGATHERS,
    paper=f"isthmus, after {KANG}, Algorithm 2",
    # as if parts did not overlap
    cost=lambda p, q, ka, kb, alpha, beta, stage, parts=PIPELINE_PARTS: (
        parts * segmented_cost(p, q, ka / parts, kb / parts, alpha, beta, turns_cost)
    ),
)
def pipelined(
    r: Index, here: Side, there: Side, stage: Stage, parts: int = PIPELINE_PARTS
) -> Program:
    """Shares are exchanged in parts, the next part while one is passed round a ring.

    As `balanced`, but the exchange of the next part begins in the last round of the
    ring that collects a part. A network thereby hides all but the first part of an
    exchange.
    """
    own_shares = Shares(here.n, there.blocks.total)
    remote_shares = Shares(there.n, here.blocks.total)
    rounds = max(here.n, there.n, 2) - 1

    def swap(part: int) -> Round:
        if part == parts:
            return Round()
        return exchange(
            r,
            here,
            there,
            Part(own_shares, parts, part),
            Part(remote_shares, parts, part),
        )

    yield swap(0)
    for part in range(parts):
        ring_of_part = shift(
            allgatherv.ring(here.n, r, Part(own_shares, parts, part)), here.base
        )
        # the rings of both groups end in one round, with the next exchange
        in_step = (
            delayed(ring_of_part, rounds - here.n + 1),
            delayed([swap(part + 1)], rounds - 1),
        )
        yield from merge_rounds(*in_step)
