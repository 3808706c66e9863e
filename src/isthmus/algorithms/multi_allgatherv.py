"""Allgather and Allgatherv among several groups.

Every rank gets the blocks of all groups but its own, in the order of groups and ranks.
Each function is the program of rank x of group i. `sides` are the groups in one
numbering, with the blocks that their ranks contribute. M_i is the total of group i, M
the total of all: a rank of group i receives M - M_i, so no algorithm takes less time
than the group with the least total needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from ..schedules.ir import Index, Program, Recv, Round, Send, Span, Spans
from ..schedules.layout import Blocks, Shares, Side, clip, cut, pick
from ..schedules.program import fused, lay, pad, shift
from ..schedules.registry import Stage, algorithm
from .allgatherv_blocked_ring import sizes
from .inter_allgatherv import balanced as between_two, without_local_blocks
from .parts.block_overlap import receives, sends
from .parts.patterns import STARTUP_ELEMENTS
from .parts.piece_size import pieces

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
    """The turns in which all ranks of groups of sizes `ps` meet all remote ranks.

    Of two groups the number is the size of the larger group.
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
    for target_group, source_group in _others(i, len(sides)):
        target, source = sides[target_group], sides[source_group]
        remote_blocks = source.blocks.within("recv")
        for u in range(turns_with_source := max(source.n, here.n)):
            y = (x - u) % turns_with_source
            (block,) = remote_blocks[y]
            destination = Span(
                "recv", block.start + offset(sides, i, source_group), block.size
            )
            comm.append(Recv(source.base + y, (destination,), y < source.n))
        for u in range(turns_with_target := max(target.n, here.n)):
            y = (x + u) % turns_with_target
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
    """One allgatherv over all groups, which discards the blocks of the local group.

    M moves to everyone: with g groups of equal size, g/(g - 1) times the bound.
    """
    return without_local_blocks(i, x, sides, stage)


# -- shares of the other groups' data, then an allgather inside each group


def _balanced_cost(
    ps: Sequence[int], ks: Sequence[float], alpha: float, beta: float, stage: Cost
) -> float:
    """The time for groups of equal size, and blocks of equal size."""
    p, g, k = max(ps), len(ps), max(ks)
    return (g - 1) * (alpha + k * beta) + stage(p, (g - 1) * k, alpha, beta)


@algorithm(
    "multi_allgatherv",
    paper="isthmus, after Kang, Träff et al., Algorithm 2",
    cost=_balanced_cost,
    staged=True,
)
def balanced(i: int, x: Index, sides: Sides, stage: Stage) -> Program:
    """Each gets a near-equal share of each remote group's data; groups collect.

    In turn t a group sends to the t-th group after it. g - 1 rounds and those of the
    stage. Every element enters a rank once, but leaves its first rank g - 1 times.
    """
    here, g = sides[i], len(sides)
    for target_group, source_group in _others(i, g):
        target, source = sides[target_group], sides[source_group]
        share = Shares(here.n, source.blocks.total)
        (own_share,) = share[x]
        destination = Span(
            "recv", own_share.start + offset(sides, i, source_group), own_share.size
        )
        shares = Shares(target.n, here.blocks.total)
        yield Round(
            (
                *receives(x, source.blocks, share, source.number, destination),
                *sends(x, here.blocks, shares, target.number, here.own(x)[0]),
            )
        )
    stages = (
        lay(
            stage(here.n, x, Shares(here.n, sides[source_group].blocks.total)),
            {"recv": ("recv", offset(sides, i, source_group))},
        )
        for source_group in range(g)
        if source_group != i
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
    partner = (t - i) % (n - 1)
    return n - 1 if partner == i else partner


def _pairs_cost(
    ps: Sequence[int], ks: Sequence[float], alpha: float, beta: float, stage: Cost
) -> float:
    """The time for groups of equal size, and blocks of equal size."""
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
    """Every two groups exchange their data, as with intercommunicators.

    In each turn every group meets one other group, by `balanced`. A turn lasts as long
    as the two groups with the most data need.
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
            destination = {"recv": ("recv", offset(sides, i, j))}
            turn = lay(between_two(x, sides[i], sides[j], stage), destination)
        yield from pad(turn, 1 + rounds)


# -- pieces that follow each other from group to group


@dataclass(frozen=True)
class PieceLine:
    """The pieces of a group's blocks, in the order of their departure from the group.

    The first piece of each rank comes first, then the second of each, and so on.
    """

    #: the ranks in the order in which pieces of remote groups pass through them: the
    #: rank with the largest block is the last
    order: np.ndarray
    #: for each piece, the place of its rank in this order
    seat: np.ndarray
    #: the first element of each piece in its rank's block, and in the group's blocks
    begin: np.ndarray
    start: np.ndarray
    size: np.ndarray


def _line(blocks: Blocks, size: int) -> PieceLine:
    counts = sizes(blocks)
    order = np.argsort(counts, kind="stable")
    sorted_counts = counts[order]
    n = pieces(sorted_counts, size)
    seat = np.repeat(np.arange(len(order)), n)
    number = np.arange(len(seat)) - (np.cumsum(n) - n)[seat]
    departure_order = np.lexsort((seat, number))
    seat, number = seat[departure_order], number[departure_order]
    block_size, parts = sorted_counts[seat], n[seat]
    begin = cut(block_size, parts, number)
    start = blocks.offset(order[seat]) + begin
    size_of_piece = cut(block_size, parts, number + 1) - begin
    return PieceLine(
        order=order, seat=seat, begin=begin, start=start, size=size_of_piece
    )


def ring_rounds(counts: Sequence[np.ndarray], size: int) -> int:
    """The rounds of a ring of groups with blocks in pieces of a size.

    Each own piece of a rank counts one round more, since the rank sends the piece
    beside the pieces that it passes on.
    """
    piece_counts = [pieces(k, size) for k in counts]
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

    A piece goes from its rank to the first rank of the next group, and then from rank
    to rank through all other groups. Every element enters every rank once, except ranks
    of its own group; a rank passes on pieces, and sends its own block once. With short
    enough pieces the time comes near the largest volume of a rank, for all sizes of
    groups and blocks.
    """
    g, here = len(sides), sides[i]
    if g == 1:
        return
    left, right = sides[i - 1], sides[(i + 1) % g]
    size = size or best_size([sizes(side.blocks) for side in sides], startup)
    lines = [_line(side.blocks, size) for side in sides]
    own_line, left_line, right_line = lines[i], lines[i - 1], lines[(i + 1) % g]
    # all pieces in the order of their arrival at the first rank of this group
    remote_groups = [(i - d) % g for d in range(1, g)]
    starts = np.concatenate(
        [lines[j].start + offset(sides, i, j) for j in remote_groups]
    )
    lengths = np.concatenate([lines[j].size for j in remote_groups])
    n, own_pieces, p = len(starts), len(own_line.seat), here.n
    sources = np.full(n, left.base + left_line.order[-1])
    sources[: len(left_line.seat)] = left.base + left_line.order[left_line.seat]
    # the last rank passes on all pieces but the next group's
    passed_on = n - len(right_line.seat)
    seat = np.argsort(own_line.order)[x]
    predecessor = here.base + own_line.order[clip(seat - 1, 0, p - 1)]
    successor = here.base + own_line.order[clip(seat + 1, 0, p - 1)]
    right_entry = right.base + right_line.order[0]

    def piece(arriving: Index) -> Spans:
        at = clip(arriving, 0, n - 1)
        return (Span("recv", starts[at], lengths[at]),)

    for t in range(max(n + p - 1, own_pieces + passed_on)):
        arriving, departing = t - seat, t - own_pieces
        source = pick(seat > 0, predecessor, sources[min(t, n - 1)])
        comm: list[Recv | Send] = [
            Recv(source, piece(arriving), (arriving >= 0) & (arriving < n)),
            Send(
                successor,
                piece(arriving - 1),
                (arriving >= 1) & (arriving <= n) & (seat < p - 1),
            ),
            Send(
                right_entry,
                piece(departing),
                (0 <= departing < passed_on) & (seat == p - 1),
            ),
        ]
        if t < own_pieces:
            part = Span("send", own_line.begin[t], own_line.size[t])
            comm.append(Send(right_entry, (part,), seat == own_line.seat[t]))
        yield Round(tuple(comm))
