"""Allgather and Allgatherv among several groups.

Every rank gets the blocks of all groups but its own, in the order of groups and ranks.
Each function says what rank x of group i does. `sides` are the groups in one numbering,
with the blocks that their ranks contribute. M_i is the total of group i, M that of all:
a rank of group i receives M - M_i, so no algorithm takes less time than the group with
the least total needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from ..schedules.ir import Copy, Index, Program, Recv, Round, Send, Span, Spans
from ..schedules.layout import Blocks, Shares, Side, Uneven, clip, cut, lesser, pick
from ..schedules.program import fused, lay, pad, place, shift
from ..schedules.registry import Stage, algorithm
from .allgatherv_blocked_ring import sizes
from .inter_allgatherv import balanced as between_two
from .parts.block_overlap import receives, sends
from .parts.patterns import STARTUP_ELEMENTS

Sides = tuple[Side, ...]
#: the time of a stage
Cost = Callable[..., float]


def offset(sides: Sides, i: int, j: int) -> int:
    """The first element of group j's blocks in the result of a rank of group i."""
    return sum(side.blocks.total for side in sides[:j]) - (
        sides[i].blocks.total if i < j else 0
    )


def _others(i: int, g: int) -> Iterator[tuple[int, int]]:
    """For each turn of a circle of groups, the target and the source of group i."""
    for t in range(1, g):
        yield (i + t) % g, (i - t) % g


# -- whole blocks


def turns(ps: Sequence[int]) -> int:
    """The turns in which all ranks of groups of sizes `ps` meet all of other groups.

    Of two groups these are as many as the larger one has ranks.
    """
    g = len(ps)
    return sum(max(max(ps[i], ps[i - t]) for i in range(g)) for t in range(1, g))


def _direct_cost(
    ps: Sequence[int], ks: Sequence[float], alpha: float, beta: float, stage: Cost
) -> float:
    """An upper bound of the time of `direct`."""
    return turns(ps) * (alpha + max(ks) * beta)


@algorithm("multi_allgatherv", paper="folklore", cost=_direct_cost)
def direct(i: int, x: Index, sides: Sides, stage: Stage) -> Program:
    """Everyone sends its block to everyone of the other groups.

    One round; in a turn for each group further on, ranks meet as in a rotated exchange.
    Every element leaves its rank once for every rank of the other groups.
    """
    here = sides[i]
    comm: list[Recv | Send] = []
    for j, k in _others(i, len(sides)):
        target, source = sides[j], sides[k]
        theirs = source.blocks.within("recv")
        for u in range(most := max(source.n, here.n)):
            y = (x - u) % most
            (block,) = theirs[y]
            at = Span("recv", block.start + offset(sides, i, k), block.size)
            comm.append(Recv(source.base + y, (at,), y < source.n))
        for u in range(most := max(target.n, here.n)):
            y = (x + u) % most
            comm.append(Send(target.base + y, here.own(x), y < target.n))
    yield Round(tuple(comm))


# -- one allgather of everything


@algorithm(
    "multi_allgatherv",
    paper="folklore",
    cost=lambda ps, ks, alpha, beta, stage: stage(sum(ps), max(ks), alpha, beta),
    staged=True,
)
def merged(i: int, x: Index, sides: Sides, stage: Stage) -> Program:
    """One allgatherv over all groups; what comes from the own group is thrown away.

    M moves to everyone: with g groups of the same size, g/(g - 1) times the bound.
    """
    here = sides[i]
    low = sum(side.blocks.total for side in sides[:i])
    high = low + here.blocks.total
    everything = Uneven(np.concatenate([sizes(side.blocks) for side in sides]))

    def where(span: Span) -> Spans:
        """The parts of a span before the own group's blocks, in them, and behind."""
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
    yield from place(stage(n, here.base + x, everything), where)


# -- shares of the other groups' data, then an allgather inside each group


def _balanced_cost(
    ps: Sequence[int], ks: Sequence[float], alpha: float, beta: float, stage: Cost
) -> float:
    """For groups of one size, and blocks of one size."""
    p, g, k = max(ps), len(ps), max(ks)
    return (g - 1) * (alpha + k * beta) + stage(p, (g - 1) * k, alpha, beta)


@algorithm(
    "multi_allgatherv",
    paper="isthmus, after Kang, Träff et al., Algorithm 2",
    cost=_balanced_cost,
    staged=True,
)
def balanced(i: int, x: Index, sides: Sides, stage: Stage) -> Program:
    """Each gets a near-equal share of what each other group has; groups collect them.

    In turn t a group sends to the t-th group after it. g - 1 rounds and those of the
    stage. Every element enters a rank once; but it leaves its first rank g - 1 times.
    """
    here, g = sides[i], len(sides)
    for j, k in _others(i, g):
        target, source = sides[j], sides[k]
        share = Shares(here.n, source.blocks.total)
        (mine,) = share[x]
        at = Span("recv", mine.start + offset(sides, i, k), mine.size)
        shares = Shares(target.n, here.blocks.total)
        yield Round(
            (
                *receives(x, source.blocks, share, source.number, at),
                *sends(x, here.blocks, shares, target.number, here.own(x)[0]),
            )
        )
    stages = (
        lay(
            stage(here.n, x, Shares(here.n, sides[k].blocks.total)),
            {"recv": ("recv", offset(sides, i, k))},
        )
        for k in range(g)
        if k != i
    )
    yield from shift(fused(*stages), here.base)


# -- two groups at a time


def _partner(i: int, g: int, t: int) -> int:
    """The partner of group i in turn t, if in each turn every group meets one other.

    Of an odd number of groups, one meets nobody in each turn: its partner is g.
    """
    n = g + g % 2
    if i == n - 1:
        return t * (n // 2) % (n - 1)
    other = (t - i) % (n - 1)
    return n - 1 if other == i else other


def _pairs_cost(
    ps: Sequence[int], ks: Sequence[float], alpha: float, beta: float, stage: Cost
) -> float:
    """For groups of one size, and blocks of one size."""
    p, g, k = max(ps), len(ps), max(ks)
    turns = g - 1 + g % 2 if g > 1 else 0
    return turns * (alpha + k * beta + stage(p, k, alpha, beta))


@algorithm(
    "multi_allgatherv",
    paper="Kang, Träff et al., Algorithm 2, for every two groups",
    cost=_pairs_cost,
    staged=True,
)
def pairs(i: int, x: Index, sides: Sides, stage: Stage) -> Program:
    """Every two groups exchange what they have, as with intercommunicators.

    In each turn every group meets one other, by `balanced`. A turn lasts as long as
    the two groups need that have most to tell each other.
    """
    g = len(sides)
    for t in range(g - 1 + g % 2 if g > 1 else 0):
        meetings = [(k, _partner(k, g, t)) for k in range(g)]
        rounds = max(
            sum(
                1
                for _ in stage(sides[k].n, 0, Shares(sides[k].n, sides[j].blocks.total))
            )
            for k, j in meetings
            if j < g
        )
        j = meetings[i][1]
        turn: Program = iter(())
        if j < g:
            at = {"recv": ("recv", offset(sides, i, j))}
            turn = lay(between_two(x, sides[i], sides[j], stage), at)
        yield from pad(turn, 1 + rounds)


# -- pieces that follow each other from group to group


@dataclass(frozen=True)
class PieceLine:
    """The pieces of a group's blocks, in the order in which they leave the group.

    The first piece of each rank comes first, then the second of each, and so on.
    """

    #: the ranks in the order in which pieces of other groups pass through them: the one
    #: with the largest block is the last
    order: np.ndarray
    #: the place in that order of the rank that a piece is from
    seat: np.ndarray
    #: the beginning of a piece in its rank's block, and among the blocks of the group
    begin: np.ndarray
    start: np.ndarray
    size: np.ndarray


def _line(blocks: Blocks, size: int) -> PieceLine:
    counts = sizes(blocks)
    order = np.argsort(counts, kind="stable")
    sorted_counts = counts[order]
    n = _pieces(sorted_counts, size)
    seat = np.repeat(np.arange(len(order)), n)
    number = np.arange(len(seat)) - (np.cumsum(n) - n)[seat]
    leave = np.lexsort((seat, number))
    seat, number = seat[leave], number[leave]
    whole, parts = sorted_counts[seat], n[seat]
    begin = cut(whole, parts, number)
    start = blocks.offset(order[seat]) + begin
    return PieceLine(order, seat, begin, start, cut(whole, parts, number + 1) - begin)


def _pieces(counts: np.ndarray, size: int) -> np.ndarray:
    """The number of pieces of each block, at least one, none longer than `size`."""
    piece_counts: np.ndarray = np.maximum(-(-counts // size), 1)
    return piece_counts


def ring_rounds(counts: Sequence[np.ndarray], size: int) -> int:
    """The rounds of a ring of groups with blocks in pieces of a size.

    Each own piece of a rank counts one round more, as the rank sends the piece beside
    those that it passes on.
    """
    piece_counts = [_pieces(k, size) for k in counts]
    all_pieces = sum(int(n.sum()) for n in piece_counts)
    return max(
        all_pieces - int(n.sum()) + len(n) - 1 + int(n.max()) for n in piece_counts
    )


def best_size(counts: Sequence[np.ndarray], startup: float) -> int:
    """The size of pieces for which a ring of groups takes the least time."""
    largest_block, least_time, fastest_size = max(int(k.max()) for k in counts), inf, 1
    size = max(largest_block, 1)
    while True:
        time = ring_rounds(counts, size) * (startup + size)
        if time < least_time:
            least_time, fastest_size = time, size
        if size == 1 or time > 4 * least_time:
            return fastest_size
        size = max(size * 3 // 4, 1)


def _ring_cost(
    ps: Sequence[int], ks: Sequence[float], alpha: float, beta: float, stage: Cost
) -> float:
    """An upper bound of the time of `ring`."""
    counts = [np.full(p, int(k)) for p, k in zip(ps, ks, strict=True)]
    size = best_size(counts, STARTUP_ELEMENTS)
    return ring_rounds(counts, size) * (alpha + size * beta) if len(ps) > 1 else 0.0


@algorithm("multi_allgatherv", paper="isthmus", cost=_ring_cost, own_counts=True)
def ring(
    i: int,
    x: Index,
    sides: Sides,
    stage: Stage,
    size: int = 0,
    startup: float = STARTUP_ELEMENTS,
) -> Program:
    """Pieces of blocks follow each other round a ring of groups, and skip their own.

    A piece goes from its rank to the first of the next group, and then from rank to
    rank through all other groups. Every element enters every rank once that needs it;
    a rank sends what it passes on, and its own block once. With pieces that are short
    enough the time comes near the largest of that, for all sizes of groups and blocks.
    """
    g, here = len(sides), sides[i]
    if g == 1:
        return
    left, right = sides[i - 1], sides[(i + 1) % g]
    size = size or best_size([sizes(side.blocks) for side in sides], startup)
    lines = [_line(side.blocks, size) for side in sides]
    mine, before, after = lines[i], lines[i - 1], lines[(i + 1) % g]
    #: all pieces in the order in which they come to the first rank of this group
    others = [(i - d) % g for d in range(1, g)]
    start = np.concatenate([lines[j].start + offset(sides, i, j) for j in others])
    length = np.concatenate([lines[j].size for j in others])
    n, own, p = len(start), len(mine.seat), here.n
    frm = np.full(n, left.base + before.order[-1])
    frm[: len(before.seat)] = left.base + before.order[before.seat]
    #: those that the last rank passes on: all but the next group's
    passed = n - len(after.seat)
    seat = np.argsort(mine.order)[x]
    above = here.base + mine.order[clip(seat - 1, 0, p - 1)]
    below = here.base + mine.order[clip(seat + 1, 0, p - 1)]
    first = right.base + after.order[0]

    def piece(m: Index) -> Spans:
        at = clip(m, 0, n - 1)
        return (Span("recv", start[at], length[at]),)

    for t in range(max(n + p - 1, own + passed)):
        m, end = t - seat, t - own
        source = pick(seat > 0, above, frm[min(t, n - 1)])
        comm: list[Recv | Send] = [
            Recv(source, piece(m), (m >= 0) & (m < n)),
            Send(below, piece(m - 1), (m >= 1) & (m <= n) & (seat < p - 1)),
            Send(first, piece(end), (0 <= end < passed) & (seat == p - 1)),
        ]
        if t < own:
            part = Span("send", mine.begin[t], mine.size[t])
            comm.append(Send(first, (part,), seat == mine.seat[t]))
        yield Round(tuple(comm))
