"""Exchanges in which all messages leave at once: one request of the MPI library."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mpi4py import MPI

from . import memory
from .buffers import Message
from .context_inter import InterContext


def entries(
    c: InterContext, message: Message, blocks: Iterable[tuple[int, int]]
) -> list[Any]:
    """What Alltoallw takes for all ranks of both groups: of the other one these blocks,
    by count and displacement; nothing of the own."""
    nothing = [(0, 0, MPI.BYTE)] * c.here
    there = [memory.entry(n, at, message.datatype) for n, at in blocks]
    found = [*there, *nothing] if c.mine else [*nothing, *there]
    return [memory.buffer(message.base), *map(list, zip(*found, strict=True))]


def swap(c: InterContext, send: Message, recv: Message) -> tuple[list[Any], list[Any]]:
    """A block to and from each of the other group, in the user's own types."""

    def side(x: Message) -> list[Any]:
        return entries(c, x, zip(x.counts, x.displs, strict=True))

    return side(send), side(recv)
