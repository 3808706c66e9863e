"""Exchanges in which all messages leave at once: one request of the MPI library."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mpi4py import MPI

from . import memory
from .buffers import Message
from .context_inter import InterContext

#: count, displacement and type
Block = tuple[int, int, MPI.Datatype]
NO_BLOCK: Block = (0, 0, MPI.BYTE)


def entries(c: InterContext, base: int, blocks: Iterable[Block]) -> list[Any]:
    """What Alltoallw takes for all ranks of both groups: of the other one these blocks,
    nothing of the own."""
    here = [NO_BLOCK] * c.here
    there = [memory.entry(*block) for block in blocks]
    found = [*there, *here] if c.mine else [*here, *there]
    return [memory.buffer(base), *map(list, zip(*found, strict=True))]


def nothing(c: InterContext) -> tuple[list[Any], list[Any]]:
    """What it takes of a rank that sends and receives nothing."""
    none = entries(c, 0, [NO_BLOCK] * c.there)
    return none, none


def swap(
    c: InterContext, send: Sequence[Message], recv: Sequence[Message]
) -> tuple[list[Any], list[Any]]:
    """A block to and from each of the other group, in the user's own types."""

    def side(data: Sequence[Message]) -> list[Any]:
        blocks = (
            (n, at, x.datatype)
            for x in data
            for n, at in zip(x.counts, x.displs, strict=True)
        )
        return entries(c, data[0].base, blocks)

    return side(send), side(recv)
