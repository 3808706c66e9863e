"""Exchanges in which all messages leave at once: one request of the MPI library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mpi4py import MPI

from . import memory
from .buffers import Message
from .context_inter import InterContext

#: count, displacement and type
Block = tuple[int, int, MPI.Datatype]
NO_BLOCK: Block = (0, 0, MPI.BYTE)
#: an address, and a block for each of the other group that lies so far from there
Side = tuple[int, Sequence[Block]]


def alltoallw(c: InterContext, send: Side, recv: Side) -> tuple[list[Any], list[Any]]:
    """What Alltoallw takes for all ranks of both groups: of the other one these blocks,
    nothing of the own.

    Open MPI takes two buffers of one address for MPI.IN_PLACE, wherever in them the
    blocks lie; so the addresses differ.
    """
    base, blocks = recv
    if base == send[0]:
        recv = (
            base + memory.ASIDE,
            [(n, displ - memory.ASIDE, kind) for n, displ, kind in blocks],
        )
    return _entries(c, *send), _entries(c, *recv)


def _entries(c: InterContext, base: int, blocks: Sequence[Block]) -> list[Any]:
    here = [NO_BLOCK] * c.here
    there = [memory.entry(*block) for block in blocks]
    found = [*there, *here] if c.mine else [*here, *there]
    return [memory.buffer(base), *map(list, zip(*found, strict=True))]


def no_blocks(c: InterContext) -> Side:
    """Of a rank that sends or receives nothing."""
    return 0, [NO_BLOCK] * c.there


def nothing(c: InterContext) -> tuple[list[Any], list[Any]]:
    """What it takes of a rank that does neither."""
    return alltoallw(c, no_blocks(c), no_blocks(c))


def swap(
    c: InterContext, send: Sequence[Message], recv: Sequence[Message]
) -> tuple[list[Any], list[Any]]:
    """A block to and from each of the other group, in the user's own types."""

    def side(data: Sequence[Message]) -> Side:
        return data[0].base, [
            (n, at, x.datatype)
            for x in data
            for n, at in zip(x.counts, x.displs, strict=True)
        ]

    return alltoallw(c, side(send), side(recv))
