"""GOAL, the language of LogGOPSim: every rank's steps, and the order between steps.

A step of a round requires all steps of the rank's previous round. A `Reduce` is a
`calc` after the messages of the round; a `Copy` is left out, since copies take no time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TextIO

from ..schedules.ir import Comm, Library, Recv, Reduce, Round
from ..schedules.schedule import Schedule


def _message(c: Comm, unit: int) -> str:
    if isinstance(c, Library):
        raise ValueError("the stage 'library' is not messages: it cannot be exported")
    size = unit * sum(s.size for s in c.data)
    if isinstance(c, Recv):
        return f"recv {size}b from {c.frm} tag 0"
    return f"send {size}b to {c.to} tag 0"


def _stages(rounds: Iterable[Round], unit: int, gamma: int) -> Iterator[list[str]]:
    """The steps of a rank, in stages; each stage waits for the stage before."""
    for r in rounds:
        yield [_message(c, unit) for c in r.comm]
        reduced = (s.dst.size for s in r.then if isinstance(s, Reduce))
        yield [f"calc {gamma * unit * size}" for size in reduced]


def _rank(rounds: Iterable[Round], unit: int, gamma: int) -> Iterator[str]:
    labels_before = range(0)
    for stage in _stages(rounds, unit, gamma):
        if not stage:
            continue
        labels = range(labels_before.stop, labels_before.stop + len(stage))
        for i, step in zip(labels, stage, strict=True):
            yield f"l{i}: {step}\n"
        for i in labels:
            yield from (f"l{i} requires l{j}\n" for j in labels_before)
        labels_before = labels


def goal_lines(schedule: Schedule, unit: int = 1, gamma: int = 0) -> Iterator[str]:
    """The lines of a schedule in GOAL, with a single rank in memory at a time.

    `unit` is the bytes of an element, `gamma` the nanoseconds to reduce a byte.
    """
    yield f"num_ranks {schedule.n}\n"
    for r in range(schedule.n):
        yield f"\nrank {r} {{\n"
        yield from _rank(schedule.rank(r), unit, gamma)
        yield "}\n"


def goal(schedule: Schedule, unit: int = 1, gamma: int = 0) -> str:
    """The GOAL text of a schedule."""
    return "".join(goal_lines(schedule, unit, gamma))


def write_goal(schedule: Schedule, file: TextIO, unit: int = 1, gamma: int = 0) -> None:
    """Write a schedule as GOAL text, with a single rank in memory at a time."""
    file.writelines(goal_lines(schedule, unit, gamma))
