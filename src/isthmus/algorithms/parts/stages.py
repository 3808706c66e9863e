"""The intragroup allgather that ends an algorithm between groups, by default."""

from __future__ import annotations

from ...schedules.ir import Index, Program
from ...schedules.layout import Blocks
from ...schedules.registry import Stage, stage

#: bytes a rank from which on neighbours pass on what they have
RING = 1 << 17


def stage_for(n: int, nbytes: int, ring: int = RING) -> str:
    """The intragroup allgather for n ranks that gather nbytes; of `ring` bytes a rank
    and more, by neighbours."""
    if n <= 2 or nbytes >= n * ring:
        return "ring"
    return "bruck" if n & (n - 1) else "recursive_doubling"


def stage_by_size(unit: int, ring: int = RING) -> Stage:
    """The stage that fits a group and what it gathers, in units of `unit` bytes."""

    def program(n: int, r: Index, blocks: Blocks) -> Program:
        return stage(stage_for(n, blocks.total * unit, ring))(n, r, blocks)

    return program
