"""What leaders do: the sum of a group at its rank 0, and from there to all, as building
blocks of what MPI libraries do between groups."""

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

    ceil(log2 p) rounds, each of all; one for a single rank.
    """
    where = {"recv": ("tmp", 0), "tmp": ("tmp", total)}
    return lay(reduce.binomial(p, r, total, 0), where)


tree_cost = bcast.binomial_cost


def tree_rounds(p: int) -> int:
    """How many rounds `tree_sum` has, with its local ones."""
    return max(log2(p), 1)


def halves(p: int, r: Index, total: int) -> Program:
    """Reduce into pieces: those that act (see `folding`) end with one each, in its
    place from the beginning of "tmp" on, in rank order.

    log2 p rounds, in which all of it travels once; once more, to fold a group that is
    no power of two. Scratch for two vectors, then for three.
    """
    who = Folded(p)
    n, v = who.act, who.number(r)
    pieces = Shares(n, total, "tmp")
    where = {"recv": ("tmp", pieces.offset(reverse(v, n))), "tmp": ("tmp", total)}
    if who.pairs:
        first, held = fold(r, who, total)
        yield first
        where |= {"send": ("tmp", held), "tmp": ("tmp", 2 * total)}
    parts = lay(halving(n, v, pieces), where)
    yield from masked(renumber(parts, who.rank), who.acts(r))


def halves_sum(p: int, r: Index, total: int) -> Program:
    """The sum where `tree_sum` has it, for long vectors: reduce into pieces, and gather
    them in as many rounds (Rabenseifner 2004)."""
    who = Folded(p)
    back = gathering(who.act, who.number(r), Shares(who.act, total, "tmp"))
    return then(halves(p, r, total), masked(renumber(back, who.rank), who.acts(r)))


def halves_cost(p: int, total: float, alpha: float, beta: float) -> float:
    """The time until rank 0 has all."""
    n = Folded(p).act
    halves = 2 * (log2(n) * alpha + (1 - 1 / n) * total * beta)
    return fold_cost(p, total, alpha, beta) + halves


def piece_rounds(p: int) -> int:
    """How many rounds `halves` has, with its local one."""
    who = Folded(p)
    return who.bits + 1 + (who.pairs > 0)


def halves_rounds(p: int) -> int:
    """How many rounds `halves_sum` has."""
    return piece_rounds(p) + Folded(p).bits


def hand_over(
    r: Index, there: Side, sent: Spans | None, received: Spans | None
) -> Round:
    """What a leader does when the sum of its group, or of the other, changes sides;
    None for nothing."""
    first = r == 0
    return Round(
        (
            *(() if received is None else (Recv(there.base, received, first),)),
            *(() if sent is None else (Send(there.base, sent, first),)),
        )
    )


def scatter(r: Index, here: Side, blocks: Blocks) -> Round:
    """The leader sends everyone its block, one after the other."""
    own, others = Span("recv", 0, blocks.size(r)), range(1, here.n)
    return Round(
        (
            Recv(here.base, (own,), r > 0),
            *(Send(here.base + i, blocks[i], r == 0) for i in others),
        ),
        (Copy(blocks[r][0], own, r == 0),),
    )


def scatter_cost(p: int, total: float, alpha: float, beta: float) -> float:
    """The time of equal blocks."""
    return (p - 1) * (alpha + total / p * beta)
