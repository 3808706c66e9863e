"""The sum of a group at its leader, rank 0, and data from the leader to all ranks.

The collectives of MPI libraries between groups are made of these parts.
"""

from __future__ import annotations

from ...schedules.ir import Copy, Index, Program, Recv, Round, Send, Span, Spans
from ...schedules.layout import Blocks, Shares, Side
from ...schedules.program import lay, masked, renumber, then
from .. import bcast, reduce
from .folding import Folded, fold, fold_cost
from .halving import gathering, halving, reverse
from .patterns import log2


def tree_sum(p: int, r: Index, total: int) -> Program:
    """The sum at the beginning of rank 0's "tmp", up a tree, in rank order.

    ceil(log2 p) rounds of all data; one round for a single rank.
    """
    places = {"recv": ("tmp", 0), "tmp": ("tmp", total)}
    return lay(reduce.binomial(p, r, total, 0), places)


tree_cost = bcast.binomial_cost


def tree_rounds(p: int) -> int:
    """The number of rounds of `tree_sum`, local rounds too."""
    return max(log2(p), 1)


def halves(p: int, r: Index, total: int) -> Program:
    """Reduce into pieces: acting ranks (see `folding`) end with a piece each, in "tmp".

    log2 p rounds, in which all data travel once; once more, to fold a group that is no
    power of two. Scratch for two vectors, then for three.
    """
    folded = Folded(p)
    n, v = folded.act, folded.number(r)
    pieces = Shares(n, total, "tmp")
    places = {"recv": ("tmp", pieces.offset(reverse(v, n))), "tmp": ("tmp", total)}
    if folded.pairs:
        first, vector_start = fold(r, folded, total)
        yield first
        places |= {"send": ("tmp", vector_start), "tmp": ("tmp", 2 * total)}
    parts = lay(halving(n, v, pieces), places)
    yield from masked(renumber(parts, folded.rank), folded.acts(r))


def halves_sum(p: int, r: Index, total: int) -> Program:
    """The sum at the beginning of rank 0's "tmp", for long vectors.

    Reduce into pieces, and gather the pieces in as many rounds (Rabenseifner 2004).
    """
    folded = Folded(p)
    back = gathering(folded.act, folded.number(r), Shares(folded.act, total, "tmp"))
    return then(
        halves(p, r, total), masked(renumber(back, folded.rank), folded.acts(r))
    )


def halves_cost(p: int, total: float, alpha: float, beta: float) -> float:
    """The time until rank 0 has the whole sum."""
    n = Folded(p).act
    halves = 2 * (log2(n) * alpha + (1 - 1 / n) * total * beta)
    return fold_cost(p, total, alpha, beta) + halves


def piece_rounds(p: int) -> int:
    """The number of rounds of `halves`, the local round too."""
    folded = Folded(p)
    return folded.bits + 1 + (folded.pairs > 0)


def halves_rounds(p: int) -> int:
    """The number of rounds of `halves_sum`."""
    return piece_rounds(p) + Folded(p).bits


def hand_over(
    r: Index, there: Side, sent: Spans | None, received: Spans | None
) -> Round:
    """The round in which leaders send their group's sum and receive the remote group's.

    None stands for a direction without a message.
    """
    first = r == 0
    return Round(
        (
            *(() if received is None else (Recv(there.base, received, first),)),
            *(() if sent is None else (Send(there.base, sent, first),)),
        )
    )


def scatter(r: Index, here: Side, blocks: Blocks) -> Round:
    """The leader sends every rank a block, rank after rank."""
    own, other_ranks = Span("recv", 0, blocks.size(r)), range(1, here.n)
    return Round(
        (
            Recv(here.base, (own,), r > 0),
            *(Send(here.base + i, blocks[i], r == 0) for i in other_ranks),
        ),
        (Copy(blocks[r][0], own, r == 0),),
    )
