"""A schedule as the steps that LogGOPSim knows: sends, receives, calculations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..schedules.ir import Comm, Library, Reduce, Round, Send
from ..schedules.program import per_rank
from ..schedules.schedule import Schedule

# In the order in which the steps of a round are queued; an arrival is nobody's step.
SEND, RECV, CALC, ARRIVAL = range(4)


@dataclass(slots=True, eq=False)
class Step:
    """A send, a receive or a calculation (its peer: itself, its size: nanoseconds)."""

    kind: int
    rank: int
    peer: int
    size: float
    round: int
    start: float = 0
    end: float = 0


Stages = list[list[list[Step]]]


def _step(c: Comm, rank: int, k: int, unit: int) -> Step:
    if isinstance(c, Library):
        raise ValueError("the stage 'library' has no time: nobody knows what it does")
    kind, peer = (SEND, c.to) if isinstance(c, Send) else (RECV, c.frm)
    return Step(kind, rank, peer, unit * sum(s.size for s in c.data), k)


def _parts(
    r: Round, rank: int, k: int, unit: int, gamma: float
) -> Iterator[list[Step]]:
    """The messages of a round, sends first, then its calculations."""
    messages = [_step(c, rank, k, unit) for c in r.comm]
    yield sorted(messages, key=lambda step: step.kind)
    reduced = (s.dst.size for s in r.then if isinstance(s, Reduce))
    yield [Step(CALC, rank, rank, gamma * unit * n, k) for n in reduced]


def stages(schedule: Schedule, unit: int, gamma: float) -> Stages:
    """The steps of every rank; each stage is free once the one before is done.

    An element is `unit` bytes, and a byte takes gamma to reduce.
    """
    found: Stages = [[] for _ in range(schedule.n)]
    for ranks, program in schedule.lanes():
        for k, r in enumerate(program):
            for rank, mine in zip(ranks, per_rank([r], len(ranks)), strict=True):
                for one in mine:
                    parts = _parts(one, rank, k, unit, gamma)
                    found[rank] += (part for part in parts if part)
    return found
