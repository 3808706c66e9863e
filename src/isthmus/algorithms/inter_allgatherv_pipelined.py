"""Allgather(v) between two groups in parts, each begun while the one before ends.

A process needs the time of its whole block to hand it out, and where its receivers are
many, each of them gets only a little in that time. In `balanced` all wait for it before
they collect: that is the largest block too much. Here every share is cut into parts,
and with the last round of a part the exchange of the next begins. Shorter messages also
keep the links of a network in step.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..schedules.ir import Index, Program, Round, Span, Spans
from ..schedules.layout import Blocks, Shares, Side, cut
from ..schedules.program import beside, late, shift
from ..schedules.registry import Stage, algorithm
from .allgatherv import ring, ring_cost
from .inter_allgatherv import BOTH, KANG, exchange, segmented_cost

#: where nobody says
PARTS = 2


@dataclass(frozen=True)
class Part(Blocks):
    """One of several parts of every share."""

    shares: Shares
    parts: int
    number: int

    @property
    def n(self) -> int:  # type: ignore[override]
        """The number of shares."""
        return self.shares.n

    def _edge(self, i: Index, number: int) -> Index:
        return self.shares.offset(i) + cut(self.shares.size(i), self.parts, number)

    def offset(self, i: Index) -> Index:
        """Where the part of share i begins."""
        return self._edge(i, self.number)

    def size(self, i: Index) -> Index:
        """The number of elements of the part of share i."""
        return self._edge(i, self.number + 1) - self._edge(i, self.number)

    def find(self, x: Index) -> Index:
        """The share that holds element x."""
        return self.shares.find(x)

    def __getitem__(self, i: Index) -> Spans:
        return (Span(self.shares.buf, self.offset(i), self.size(i)),)


@algorithm(
    *BOTH,
    paper=f"isthmus, after {KANG}, Algorithm 2",
    # as if one part came after the other
    cost=lambda p, q, ka, kb, alpha, beta, stage, parts=PARTS: (
        parts * segmented_cost(p, q, ka / parts, kb / parts, alpha, beta, ring_cost)
    ),
)
def pipelined(
    r: Index, here: Side, there: Side, stage: Stage, parts: int = PARTS
) -> Program:
    """Shares are exchanged in parts, the next while one is passed round a ring.

    As `balanced`, but with the last round of the ring that collects a part, the
    exchange of the next begins. On a network that hides all but the first part of an
    exchange.
    """
    mine = Shares(here.n, there.blocks.total)
    theirs = Shares(there.n, here.blocks.total)
    rounds = max(here.n, there.n, 2) - 1

    def swap(part: int) -> Round:
        if part == parts:
            return Round()
        return exchange(
            r, here, there, Part(mine, parts, part), Part(theirs, parts, part)
        )

    yield swap(0)
    for part in range(parts):
        passed = shift(ring(here.n, r, Part(mine, parts, part)), here.base)
        # the rings of both groups end in the same round, with the next exchange
        ends = late(passed, rounds - here.n + 1), late([swap(part + 1)], rounds - 1)
        yield from beside(*ends)
