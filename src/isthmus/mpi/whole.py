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


def entries(c: InterContext, base: int, blocks: Iterable[Block]) -> list[Any]:
    """What Alltoallw takes for all ranks of both groups: of the other one these blocks,
    nothing of the own."""
    nothing = [(0, 0, MPI.BYTE)] * c.here
    there = [memory.entry(*block) for block in blocks]
    found = [*there, *nothing] if c.mine else [*nothing, *there]
    return [memory.buffer(base), *map(list, zip(*found, strict=True))]


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
