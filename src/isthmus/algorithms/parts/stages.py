"""The intragroup allgather that ends an algorithm between groups, by default."""

from __future__ import annotations

from ...schedules.ir import Index, Program
from ...schedules.layout import Blocks
from ...schedules.registry import Stage, stage

#: bytes a rank from which on a ring takes less time than few rounds
RING_BYTES_PER_RANK = 1 << 17


def stage_for(n: int, nbytes: int, ring: int = RING_BYTES_PER_RANK) -> str:
    """The intragroup allgather for n ranks that gather nbytes.

    From `ring` bytes a rank on, by neighbours, since start-ups matter no more.
    """
    if n <= 2 or nbytes >= n * ring:
        return "ring"
    return "bruck" if n & (n - 1) else "recursive_doubling"


def stage_by_size(unit: int, ring: int = RING_BYTES_PER_RANK) -> Stage:
    """The stage for a group and a total of data, counted in units of `unit` bytes."""

    def program(n: int, r: Index, blocks: Blocks) -> Program:
        return stage(stage_for(n, blocks.total * unit, ring))(n, r, blocks)

    return program
