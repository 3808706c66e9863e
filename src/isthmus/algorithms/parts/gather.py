"""Gathering blocks at rank 0, as a building block."""

from __future__ import annotations

from dataclasses import replace

from ...schedules.ir import Copy, Index, Mask, Program, Recv, Round, Send, Spans
from ...schedules.layout import Blocks, Side
from ...schedules.program import shift
from .patterns import tree


def alone(p: int, r: Index) -> Mask:
    """Whether r is a leaf of a binomial tree."""
    return (r % 2 == 1) | (r == p - 1)


def up(p: int, r: Index, blocks: Blocks, own: Spans) -> Program:
    """Subtrees of consecutive ranks hand up their blocks, in rank order.

    A leaf of the tree sends `own` from its first place, since nothing arrives at a
    leaf.
    """
    leaf = alone(p, r)
    for step, below, above in tree(p, r):
        yield Round(
            (
                Recv(r + step, blocks.range(r + step, r + 2 * step), above),
                Send(r - step, blocks.range(r, r + step), below & (leaf ^ True)),
                Send(r - step, own, below & leaf),
            )
        )


def binomial(r: Index, here: Side) -> Program:
    """Subtrees of consecutive ranks hand up their blocks, in rank order, in "tmp".

    ceil(log2 p) rounds; rank 0 receives every other block once.
    """
    blocks, own = replace(here.blocks, buf="tmp"), here.own(r)
    parent = (r == 0) | (alone(here.n, r) ^ True)
    yield Round(then=(Copy(own[0], blocks[r][0], parent),))
    yield from shift(up(here.n, r, blocks, own), here.base)


def linear(r: Index, here: Side) -> Program:
    """Everyone sends a block to rank 0, which receives all in rank order, in "tmp"."""
    blocks = replace(here.blocks, buf="tmp")
    yield Round(then=(Copy(here.own(r)[0], blocks[r][0], r == 0),))
    other_ranks = range(1, here.n)
    yield Round(
        (
            *(Recv(here.base + i, blocks[i], r == 0) for i in other_ranks),
            Send(here.base, here.own(r), r > 0),
        )
    )


def ring(r: Index, here: Side) -> Program:
    """Blocks go from rank to rank towards rank 0, one in a round, in "tmp".

    p - 1 rounds; rank 0 receives every other block once, as in a ring.
    """
    n, blocks, own = here.n, replace(here.blocks, buf="tmp"), here.own(r)
    yield Round(then=(Copy(own[0], blocks[r][0], r == 0),))
    for t in range(n - 1):
        arriving, departing = r + 1 + t, r + t
        yield Round(
            (
                Recv(here.base + r + 1, blocks[arriving], arriving < n),
                Send(
                    here.base + r - 1,
                    own if t == 0 else blocks[departing],
                    (r > 0) & (departing < n),
                ),
            )
        )
