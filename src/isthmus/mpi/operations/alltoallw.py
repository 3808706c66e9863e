"""Exchanges in which all messages leave at once: one request of the MPI library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mpi4py import MPI

from ..context.context_inter import InterContext
from ..memory import memory
from ..memory.buffers import Message

#: count, displacement and type
Block = tuple[int, int, MPI.Datatype]
NO_BLOCK: Block = (0, 0, MPI.BYTE)
#: an address, and a block for each rank that lies so far from there
Side = tuple[int, Sequence[Block]]


def alltoallw(send: Side, recv: Side) -> tuple[list[Any], list[Any]]:
    """What Alltoallw takes.

    Open MPI takes two buffers of one address for MPI.IN_PLACE, wherever in them the
    blocks lie; so the addresses differ.
    """
    base, blocks = recv
    if base == send[0]:
        away = memory.ASIDE
        recv = base + away, [(n, displ - away, kind) for n, displ, kind in blocks]
    return _entries(*send), _entries(*recv)


def _entries(base: int, blocks: Sequence[Block]) -> list[Any]:
    found = [memory.entry(*block) for block in blocks]
    return [memory.buffer(base), *map(list, zip(*found, strict=True))]


def of_both(c: InterContext, blocks: Sequence[Block]) -> list[Block]:
    """A block for each rank of both groups: these for the other, none for the own."""
    own = [NO_BLOCK] * c.here
    return [*blocks, *own] if c.mine else [*own, *blocks]


def nothing(n: int) -> Side:
    """No block for any of n ranks."""
    return 0, [NO_BLOCK] * n


def swap(
    c: InterContext, send: Sequence[Message], recv: Sequence[Message]
) -> tuple[list[Any], list[Any]]:
    """A block to and from each of the other group, in the user's own types."""

    def side(data: Sequence[Message]) -> Side:
        blocks = [
            (n, at, x.datatype)
            for x in data
            for n, at in zip(x.counts, x.displs, strict=True)
        ]
        return data[0].base, of_both(c, blocks)

    return alltoallw(side(send), side(recv))
