"""Reduce from the leaves of a group to a root outside the group.

The root is vertex 0 of p and contributes nothing; the leaves are vertices 1 to p - 1.
The leaves contribute "send", and the result is the root's "recv".
"""

from __future__ import annotations

from ..schedules.ir import Copy, Index, Program, Recv, Reduce, Round, Send, Span
from ..schedules.layout import Leaves, Mapped, Shares, pick
from ..schedules.program import lay, masked, pad, renumber, shift
from ..schedules.registry import algorithm
from . import bcast, inter_bcast, reduce, reduce_scatter as scattering
from .parts import gather, leaders
from .parts.folding import Folded
from .parts.halving import gathering
from .parts.patterns import STARTUP_ELEMENTS, log2, outer, turns_cost
from .parts.reduce_mirrored import mirrored


@algorithm("inter_reduce", paper="folklore", cost=bcast.binomial_cost)
def binomial(p: int, v: Index, m: int) -> Program:
    """A tree with the root itself on top: subtrees of leaves hand up their results.

    ceil(log2 p) rounds of all data, in rank order. Scratch for two messages.
    """
    return reduce.ordered(p, v, m, gives=v > 0)


def halving_cost(p: int, m: float, alpha: float, beta: float) -> float:
    """The time to halve down to a piece and gather the pieces, p - 1 a power of two."""
    q = p - 1
    return (2 * log2(q) + 1) * alpha + (2 - 1 / q) * m * beta


@algorithm("inter_reduce", paper="after Rabenseifner 2004", cost=halving_cost)
def halving(p: int, v: Index, m: int) -> Program:
    """The leaves halve what they combine, and the root itself gathers the pieces.

    1 + 2 log2(p - 1) rounds, for p - 1 a power of two; all data travel twice, in rank
    order. Else one round more, of all data. Scratch as for `leaders.halves`.
    """
    folded = Folded(p - 1)

    def vertex(i: Index) -> Index:
        """The vertex that gathers as number i: the root in place of the first leaf."""
        return pick(i == 0, 0, folded.rank(i) + 1)

    if outer(v):
        yield from pad(iter(()), leaders.piece_rounds(p - 1))
        pieces = Shares(folded.act, m)
        yield Round((Recv(1, pieces[0]),))
        yield from renumber(gathering(folded.act, 0, pieces), vertex)
        return
    r, pieces = v - 1, Shares(folded.act, m, "tmp")
    yield from shift(leaders.halves(p - 1, r, m), 1)
    yield Round((Send(0, pieces[0], r == 0),))
    back = renumber(gathering(folded.act, folded.number(r), pieces), vertex)
    yield from masked(back, folded.acts(r) & (r > 0))


def reduce_scatter_cost(p: int, m: float, alpha: float, beta: float) -> float:
    """The time of a piece from every leaf in turn, and of a tree of all pieces."""
    q = p - 1
    return (q - 1 + log2(p)) * alpha + (2 - 1 / q) * m * beta


@algorithm("inter_reduce", paper="folklore", cost=reduce_scatter_cost)
def reduce_scatter(p: int, v: Index, m: int) -> Program:
    """Every leaf combines a piece, and a tree with the root on top gathers the pieces.

    p - 2 + ceil(log2 p) rounds; all data travel twice, in rank order. Scratch for three
    pieces, and for the pieces of a subtree.
    """
    pieces, top = Shares(p - 1, m), outer(v)
    own = Span("tmp", 2 * pieces.size(0), pieces.size(v - 1))
    parts = scattering.pairwise(p - 1, v - 1, pieces)
    combined = shift(lay(parts, {"recv": (own.buf, own.start)}), 1)
    yield from pad(iter(()) if top else combined, p)
    leaves = Leaves(pieces)
    first_element = 0 if top else leaves.offset(v) - 3 * pieces.size(0)
    subtree = Mapped(
        p, lambda i: leaves.offset(i) - first_element, "recv" if top else "tmp"
    )
    yield Round(then=(Copy(own, subtree[v][0], gather.alone(p, v) ^ True),))
    yield from gather.up(p, v, subtree, (own,))


@algorithm("inter_reduce", paper="folklore", cost=inter_bcast.chain_cost)
def chain(
    p: int, v: Index, m: int, n: int = 0, startup: float = STARTUP_ELEMENTS
) -> Program:
    """Segments flow up the chain of the leaves to the root, and every leaf adds a part.

    n + p - 2 rounds of an n-th, in rank order. Scratch for all data.
    """
    n = n or inter_bcast.links(p, m, startup)
    forth = bcast.chain(p, v, m, 0, n)
    return mirrored(forth, Shares(n, m), v == 0, v > 0)


@algorithm(
    "inter_reduce",
    paper="Träff 2025, circulant graphs",
    cost=bcast.circulant_cost,
    commutative=True,
)
def circulant(
    p: int, v: Index, m: int, n: int = 0, startup: float = STARTUP_ELEMENTS
) -> Program:
    """The broadcast on a circulant graph of root and leaves, backwards: as few rounds.

    n - 1 + ceil(log2 p) rounds; every leaf sends every part once, combined in any
    order. Scratch for all data and a part, at the root for a part.
    """
    n = n or bcast.parts(p, m, startup)
    forth, pieces = bcast.circulant(p, v, m, 0, n), Shares(n, m)
    return mirrored(forth, pieces, v == 0, v > 0, int(pieces.size(0)))


@algorithm("inter_reduce", paper="Open MPI, nonblocking", cost=turns_cost)
def linear(p: int, v: Index, m: int) -> Program:
    """The root receives the vector of every leaf, the last leaf's first, and combines.

    p - 1 rounds of all data, in rank order. Scratch for a message at the root.
    """
    own, result, arrived = (Span(buf, 0, m) for buf in ("send", "recv", "tmp"))
    for i in reversed(range(1, p)):
        if not outer(v):
            yield Round((Send(0, (own,), v == i),))
        elif i == p - 1:
            yield Round((Recv(i, (result,)),))
        else:
            yield Round((Recv(i, (arrived,)),), (Reduce(arrived, result),))
