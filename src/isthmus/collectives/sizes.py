"""Sizes as callers give them, checked."""

from __future__ import annotations

from collections.abc import Sequence

from ..schedules.layout import Blocks, Uneven


def checked(name: str, n: int, least: int) -> int:
    """A number that must not be below the least."""
    if n < least:
        raise ValueError(f"{name} = {n}: must be at least {least}")
    return n


def uneven(name: str, counts: Sequence[int]) -> Uneven:
    """The blocks of a group, of the given counts."""
    if len(counts) == 0:
        raise ValueError(f"{name} is empty: a group has at least one rank")
    checked(f"a count in {name}", min(counts), 0)
    return Uneven(counts)


def counts_of(blocks: Blocks) -> list[int]:
    """The number of elements of each block."""
    return [int(blocks.size(i)) for i in range(blocks.n)]
