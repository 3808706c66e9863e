"""Bcast inside a group, from any root, of a buffer in "recv"; also building blocks."""

from __future__ import annotations

from ..schedules.ir import Index, Program, Recv, Round, Send
from ..schedules.layout import Blocks, Shares
from ..schedules.program import backwards, renumber, then
from ..schedules.registry import algorithm
from .allgatherv import ring
from .parts.circulant import cuts, rounds
from .parts.gather import up
from .parts.patterns import STARTUP_ELEMENTS, log2, startup_in, tree


def binomial_cost(p: int, total: float, alpha: float, beta: float) -> float:
    """The time of all data at every level of the tree."""
    return log2(p) * (alpha + total * beta)


@algorithm("bcast", paper="folklore", cost=binomial_cost)
def binomial(p: int, r: Index, total: int, root: int) -> Program:
    """Every rank that has all data sends them on, in a binomial tree.

    ceil(log2 p) rounds of all data: for short messages.
    """
    whole = Shares(1, total)[0]
    for step, below, above in reversed(list(tree(p, (r - root) % p))):
        yield Round(
            (
                Recv((r - step) % p, whole, below),
                Send((r + step) % p, whole, above),
            )
        )


def segments(p: int) -> int:
    """The number of segments with which filling the chain adds an eighth."""
    return max(8 * (p - 1), 1)


def chain_cost(p: int, total: float, alpha: float, beta: float) -> float:
    """The time until the last rank has all segments."""
    n = segments(p)
    return (n + p - 2) * (alpha + total / n * beta) if p > 1 else 0.0


@algorithm("bcast", paper="folklore", cost=chain_cost)
def chain(p: int, r: Index, total: int, root: int, n: int = 0) -> Program:
    """Segments flow down the chain of ranks: close to one transfer of all data.

    n + p - 2 rounds of an n-th; n is 8 (p - 1) by default.
    """
    n = n or min(segments(p), max(total, 1))
    pieces = Shares(n, total)
    v = (r - root) % p
    for t in range(n + p - 2):
        yield Round(
            (
                Recv((r - 1) % p, pieces[t - v + 1], v > 0),
                Send((r + 1) % p, pieces[t - v], v < p - 1),
            )
        )


def scatter(p: int, r: Index, pieces: Blocks) -> Program:
    """Halve the data in hand down a tree, until everyone has the rank's own piece."""
    return backwards(up(p, r, pieces, pieces[r]), swap=False)


def scatter_allgather_cost(p: int, total: float, alpha: float, beta: float) -> float:
    """The time until all ranks have all data, for p a power of two."""
    startups = log2(p) + p - 1
    return startups * alpha + 2 * (1 - 1 / p) * total * beta


@algorithm(
    "bcast",
    paper="van de Geijn; Thakur, Rabenseifner, Gropp 2005",
    cost=scatter_allgather_cost,
)
def scatter_allgather(p: int, r: Index, total: int, root: int) -> Program:
    """Scatter, then a ring: all data travel twice, as in MPICH for long messages.

    ceil(log2 p) + p - 1 rounds.
    """
    pieces, v = Shares(p, total), (r - root) % p
    program = then(scatter(p, v, pieces), ring(p, v, pieces))
    return renumber(program, lambda vertex: (vertex + root) % p)


def fastest(filling: int, total: int, startup: float) -> int:
    """The number n of parts for which n + `filling` rounds of an n-th are fastest."""
    return min(cuts(filling * total, startup), max(total, 1))


def parts(p: int, total: int, startup: float = STARTUP_ELEMENTS) -> int:
    """The number of parts for which n - 1 + log p rounds of an n-th are fastest."""
    return fastest(log2(p) - 1, total, startup)


def circulant_cost(
    p: int,
    total: float,
    alpha: float,
    beta: float,
    n: int = 0,
    startup: float | None = None,
) -> float:
    """The time of a round for each part, and log p - 1 to fill the pipeline.

    The number of parts is `n`, or the best for `startup`, or else for alpha and beta.
    """
    n = n or parts(p, int(total), startup or startup_in(alpha, beta))
    return (n - 1 + log2(p)) * (alpha + total / n * beta) if p > 1 else 0.0


@algorithm("bcast", paper="Träff 2025, circulant graphs", cost=circulant_cost)
def circulant(
    p: int,
    r: Index,
    total: int,
    root: int,
    n: int = 0,
    startup: float = STARTUP_ELEMENTS,
) -> Program:
    """In n parts on a circulant graph: as few rounds as n parts can take.

    n - 1 + ceil(log2 p) rounds; everyone receives every part once.
    """
    n = n or parts(p, total, startup)
    pieces = Shares(n, total)
    v = (r - root) % p
    for skip, part_at in rounds(p, n):
        target_vertex = (v + skip) % p
        yield Round(
            (
                Recv((r - skip) % p, pieces[part_at(v)], v > 0),
                Send((r + skip) % p, pieces[part_at(target_vertex)], target_vertex > 0),
            )
        )
