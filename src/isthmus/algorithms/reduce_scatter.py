"""Reduce_scatter inside a group; also building blocks.

Everyone contributes all of "send"; rank r ends with block r of the sum in "recv".
"""

from __future__ import annotations

from collections.abc import Iterator

from ..schedules.ir import (
    Comm,
    Copy,
    Index,
    Local,
    Mask,
    Program,
    Recv,
    Reduce,
    Round,
    Send,
    Span,
)
from ..schedules.layout import Blocks, lesser, pick
from ..schedules.registry import algorithm
from .parts.patterns import doubling_cost, turns_cost


def in_order(
    r: Index, i: Index, n: int, size: Index, source: Index, when: Mask
) -> tuple[tuple[Comm, ...], tuple[Local, ...]]:
    """Receive from rank i of n, where ranks come in falling order from r on.

    After rank 0 comes the last rank. The sum of ranks up to r grows downwards in "tmp",
    the sum of ranks above r in "recv", so that the operator need not commute; with no
    ranks above, the whole sum grows in "recv". Scratch for two blocks.
    """
    low, incoming, high = _buffers(size)
    first = pick(i > r, n - 1, lesser(r, n - 1))
    below = (i <= r) & has_above(r, n)
    begins, goes_on = when & (i == first), when & (i != first)
    return (
        Recv(source, (low,), begins & below),
        Recv(source, (high,), begins & (below ^ True)),
        Recv(source, (incoming,), goes_on),
    ), (
        Reduce(incoming, low, goes_on & below),
        Reduce(incoming, high, goes_on & (below ^ True)),
    )


def has_above(r: Index, n: int) -> Mask:
    """Whether r is not the last of n ranks."""
    return r < n - 1


def _buffers(size: Index) -> tuple[Span, Span, Span]:
    """The sum of ranks up to r, the arriving message, the sum of ranks above r."""
    return Span("tmp", 0, size), Span("tmp", size, size), Span("recv", 0, size)


def both_parts(r: Index, n: int, size: Index) -> Round:
    """The round that combines the two sums left by `in_order`."""
    low, _, high = _buffers(size)
    return Round(then=(Reduce(low, high, has_above(r, n)),))


def pairwise_cost(p: int, n: float, alpha: float, beta: float) -> float:
    """The time of p - 1 rounds, each of a p-th of the data."""
    return turns_cost(p, n / p, alpha, beta)


@algorithm("reduce_scatter", paper="folklore", cost=pairwise_cost)
def pairwise(p: int, r: Index, blocks: Blocks) -> Program:
    """Everyone sends each rank a block, and combines arriving blocks in rank order.

    p - 1 rounds of a block, for any operator; every element travels once. Scratch for
    two blocks.
    """
    size = blocks.size(r)
    own_block, is_not_last = Span("send", blocks.offset(r), size), has_above(r, p)
    low, _, high = _buffers(size)
    yield Round(
        then=(
            Copy(own_block, low, is_not_last),
            Copy(own_block, high, is_not_last ^ True),
        )
    )
    sent = blocks.within("send")
    for t in range(1, p):
        target, source = (r + t) % p, (r - t) % p
        comm, steps = in_order(r, source, p, size, source, True)
        yield Round((*comm, Send(target, sent[target])), steps)
    yield both_parts(r, p, size)


@algorithm("reduce_scatter", paper="folklore", cost=pairwise_cost, commutative=True)
def rotated(p: int, r: Index, blocks: Blocks) -> Program:
    """Everyone sends each rank a block, and combines a block while the next arrives.

    p - 1 rounds of a block, combined in any order; every element travels once. Scratch
    for two blocks.
    """
    size = blocks.size(r)
    total, sent = Span("recv", 0, size), blocks.within("send")
    step: Copy | Reduce = Copy(sent[r][0], total)
    for t in range(1, p):
        incoming = Span("tmp", t % 2 * size, size)
        target = (r + t) % p
        yield Round(
            (Recv((r - t) % p, (incoming,)), Send(target, sent[target])), (step,)
        )
        step = Reduce(incoming, total)
    yield Round(then=(step,))


def _windows(p: int) -> Iterator[tuple[int, int]]:
    """The rounds of Bruck's allgather: blocks in hand, and arriving blocks."""
    have = 1
    while have < p:
        n = min(have, p - have)
        yield have, n
        have += n


def bruck_cost(p: int, n: float, alpha: float, beta: float) -> float:
    """The least time: the fewest rounds, and every element sent once."""
    return doubling_cost(p, n / p, alpha, beta)


@algorithm(
    "reduce_scatter",
    paper="Träff 2024, on circulant graphs; Bruck et al. 1997 backwards",
    cost=bruck_cost,
    commutative=True,
)
def bruck(p: int, r: Index, blocks: Blocks) -> Program:
    """Bruck's allgather backwards: hand over half of the blocks, combine the rest.

    ceil(log2 p) rounds; everyone sends every block but the own one once, combined in
    any order. Scratch for all data, and for arriving blocks.
    """
    sent, grown = blocks.within("send"), blocks.within("tmp")
    rounds = list(_windows(p))
    blocks_in_scratch = rounds[-1][0] if rounds else 1
    pairs = zip(
        sent.window(r, blocks_in_scratch),
        grown.window(r, blocks_in_scratch),
        strict=True,
    )
    yield Round(then=tuple(Copy(x, y) for x, y in pairs))
    source = sent
    for blocks_had, n in reversed(rounds):
        own = grown.window(r, n)
        incoming, at = [], blocks.total
        for x in own:
            incoming.append(Span("tmp", at, x.size))
            at = at + x.size
        yield Round(
            (
                Recv((r - blocks_had) % p, tuple(incoming)),
                Send((r + blocks_had) % p, source.window(r + blocks_had, n)),
            ),
            tuple(Reduce(x, y) for x, y in zip(incoming, own, strict=True)),
        )
        source = grown
    yield Round(then=(Copy(grown[r][0], Span("recv", 0, blocks.size(r))),))
