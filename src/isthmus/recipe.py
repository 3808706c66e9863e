"""From the bytes each rank contributes to one rank's rounds: values in, values out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from . import choose
from .collectives import inter_program
from .ir import Round
from .layout import Even, Found, Side, Uneven
from .registry import Algorithm, resolve
from .schedule import trim


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes that each rank of both groups contributes.

    A group of n is (n, bytes of each), or its counts as the bytes of an int64 array.
    """

    a: tuple[int, int] | bytes
    b: tuple[int, int] | bytes

    @property
    def collective(self) -> str:
        """The name of the collective in the registry."""
        return "inter_allgather" if isinstance(self.a, tuple) else "inter_allgatherv"

    @property
    def blocks(self) -> tuple[Found, Found]:
        """The blocks of each group, in bytes."""
        return _blocks(self.a), _blocks(self.b)


def _blocks(group: tuple[int, int] | bytes) -> Found:
    if isinstance(group, tuple):
        return Even(*group)
    return Uneven(np.frombuffer(group, np.int64))


def _counts(blocks: Found) -> np.ndarray:
    return np.atleast_1d(blocks.each if isinstance(blocks, Even) else blocks.counts)


def grain(blocks: Found) -> int:
    """The unit in bytes in which blocks are cut, so that no basic element is split.

    Every basic type's size is a power of two that divides the size of all its blocks.
    """
    bits = int(np.bitwise_or.reduce(_counts(blocks)))
    return min(bits & -bits or 64, 64)


def _in_grains(blocks: Found) -> Found:
    unit = grain(blocks)
    if isinstance(blocks, Even):
        return Even(blocks.n, blocks.each // unit)
    return Uneven(_counts(blocks) // unit)


@lru_cache(maxsize=256)
def settle(name: str, sizes: Sizes) -> str:
    """The algorithm asked for; for "auto", the one that fits the sizes."""
    if name != "auto":
        return name
    a, b = sizes.blocks
    largest = int(max(_counts(a).max(), _counts(b).max()))
    irregular = isinstance(sizes.a, bytes)
    return choose.inter_allgatherv(a.n, b.n, a.total, b.total, largest, irregular)


@dataclass(frozen=True, slots=True)
class Recipe:
    """One rank's rounds, and the bytes of an element of each group's data."""

    entry: Algorithm
    rounds: tuple[Round, ...]
    units: tuple[int, int]


@lru_cache(maxsize=32)
def recipe(name: str, sizes: Sizes, number: int) -> Recipe:
    """What rank `number` does."""
    entry, stage = resolve(sizes.collective, settle(name, sizes))
    a, b = sizes.blocks
    units = grain(a), grain(b)
    sides = Side(0, _in_grains(a)), Side(a.n, _in_grains(b))
    received = units[number < a.n]
    stage = stage or choose.stage_by_size(received)
    return Recipe(entry, tuple(trim(inter_program(entry, sides, number, stage))), units)
