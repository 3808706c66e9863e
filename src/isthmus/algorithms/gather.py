"""Gathering a group's blocks at its rank 0, as a building block."""

from __future__ import annotations

from dataclasses import replace

from ..ir import Copy, Index, Program, Recv, Round, Send
from ..layout import Side
from .patterns import tree


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
