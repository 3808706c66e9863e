"""Gathering a group's blocks at its rank 0, as a building block."""

from __future__ import annotations

from dataclasses import replace

from ..ir import Copy, Index, Program, Recv, Round, Send
from ..layout import Side
from .patterns import log2, tree


def binomial(r: Index, here: Side) -> Program:
    """Subtrees of consecutive ranks hand their blocks up, in rank order, in "tmp".

    ceil(log2 p) rounds; rank 0 receives every other block once.
    """
    blocks = replace(here.blocks, buf="tmp")
    yield Round(then=(Copy(here.own(r)[0], blocks[r][0]),))
    for step, below, above in tree(here.n, r):
        yield Round(
            (
                Recv(here.base + r + step, blocks.range(r + step, r + 2 * step), above),
                Send(here.base + r - step, blocks.range(r, r + step), below),
            )
        )


def linear(r: Index, here: Side) -> Program:
    """Everyone sends its block to rank 0, which takes them in rank order, in "tmp"."""
    blocks = replace(here.blocks, buf="tmp")
    yield Round(then=(Copy(here.own(r)[0], blocks[r][0], r == 0),))
    others = range(1, here.n)
    yield Round(
        (
            *(Recv(here.base + i, blocks[i], r == 0) for i in others),
            Send(here.base, here.own(r), r > 0),
        )
    )


def cost(p: int, k: float, alpha: float, beta: float) -> float:
    """The time until rank 0 has all, for p a power of two."""
    return log2(p) * alpha + (p - 1) * k * beta
