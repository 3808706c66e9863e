"""Which algorithm, where nobody says: only from values that every rank agrees on.

The model is one of rounds: a round costs a start, each of its messages a little, each
byte its share. The constants are rough guesses for one shared-memory node, not fitted
to measurements; they only decide between algorithms, so their ratios matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

from .ir import Index, Program
from .layout import Blocks
from .registry import Stage, stage

ROUND = 8e-6
MESSAGE = 1e-6
BYTE = 2e-10

#: beyond this many peers, the same block would cross the same wire too often
PEERS = 16
#: from this many bytes a rank, neighbours beat few rounds
PIECE = 1 << 17


def stage_for(n: int, nbytes: int) -> str:
    """The intragroup allgather for n ranks that gather nbytes."""
    if n <= 2 or nbytes >= n * PIECE:
        return "ring"
    return "bruck" if n & (n - 1) else "recursive_doubling"


def stage_by_size(unit: int) -> Stage:
    """The stage that fits a group and what it gathers, in units of `unit` bytes."""

    def program(n: int, r: Index, blocks: Blocks) -> Program:
        return stage(stage_for(n, blocks.total * unit))(n, r, blocks)

    return program


def _direct(p: int, q: int, a: int, b: int, largest: int) -> float:
    """Everyone sends its block to everyone, and receives the other group's total."""
    peers = max(p, q)
    return ROUND + peers * MESSAGE + max(a, b, peers * largest) * BYTE


def _balanced(p: int, q: int, a: int, b: int, largest: int) -> float:
    """An exchange of shares, then an allgather in each group."""
    few, many = sorted((p, q))
    rounds = 1 + max(
        n - 1 if stage_for(n, nbytes) == "ring" else (n - 1).bit_length()
        for n, nbytes in ((p, b), (q, a))
    )
    messages = ceil(many / few) + rounds
    return rounds * ROUND + messages * MESSAGE + (max(a, b) + largest) * BYTE


def inter_allgatherv(p: int, q: int, a: int, b: int, largest: int, v: bool) -> str:
    """For groups of p and q that send a and b bytes, in blocks up to `largest`."""
    costs = _direct(p, q, a, b, largest), _balanced(p, q, a, b, largest)
    if max(p, q) <= PEERS and costs[0] <= costs[1]:
        return "direct"
    few, many = sorted((p, q))
    return "balanced" if v or many % few else "segmented"


@dataclass(frozen=True)
class Machine:
    """What a message costs: alpha seconds and beta a byte."""

    alpha: float
    beta: float

    @property
    def startup(self) -> float:
        """The bytes that pass in the time of a start-up."""
        return self.alpha / self.beta


@dataclass(frozen=True)
class Choice:
    """An algorithm, and why."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}, {self.why}"


def allgatherv(group: Any, machine: Callable[[], Machine]) -> Choice:
    return Choice("blocked_ring", "for now")


def bcast(p: int, nbytes: int, machine: Callable[[], Machine]) -> Choice:
    return Choice("circulant", "for now")
