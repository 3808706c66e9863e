"""Measuring what messages cost, in place under the user's mpiexec, or in processes of
our own."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..choose.estimate import Machine
from ..choose.tuning import Origin, Tuning
from ..lab.mpiexec import own_rank
from . import crossovers
from .compare import compare
from .launch import Here, Start, launch
from .outcome import Outcome, read_outcome
from .units import show_bytes

#: seconds without a word after which processes of our own are ended
LIMIT = 600.0
#: the share of the whole that messages take, roughly
MESSAGES = 0.1


@dataclass(frozen=True)
class Measured:
    """What came out: the tuning, and the cases that it was refined by."""

    tuning: Tuning
    outcomes: tuple[Outcome, ...]

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))


def read_found(data: dict[str, Any]) -> Measured:
    """What was written."""
    tuning, parts = data["tuning"], ("inside", "between")
    known = {name: Machine(**tuning[name]) for name in parts if tuning[name]}
    outcomes = tuple(map(read_outcome, data["outcomes"]))
    return Measured(Tuning(Origin(**tuning["origin"]), **known), outcomes)


class Display:
    """What is told while it goes on, in the one process that shows it."""

    def step(self, words: str, part: float) -> None:
        """So much of the whole is done."""

    def found(self, found: Measured) -> None:
        """It is over."""


def measure(seconds: float, display: Display) -> None:
    """Measure on all ranks of the world; rank 0 displays."""
    from ..mpi.costs.links import measured
    from ..mpi.costs.tuning import using
    from ..mpi.measure.measure import Stand, world

    comm = world()
    display = display if comm.rank == 0 else Display()
    display.step("messages", 0.0)
    tuning = measured(comm)
    todo = crossovers.todo(comm.size, tuning.widest, seconds)
    total = sum(len(job.cases) for job in todo)
    outcomes: list[Outcome] = []
    with using(tuning):
        for job in todo:
            stand = Stand(job.groups)
            for case in job.cases:
                part = MESSAGES + (1 - MESSAGES) * len(outcomes) / total
                display.step(f"{crossovers.kind(case)}, {show_bytes(case.each)}", part)
                outcomes.append(compare(stand, case, job))
            stand.free()
    comm.Free()
    display.found(Measured(crossovers.conclude(tuning, outcomes), tuple(outcomes)))


def run(n: int, seconds: float, display: Display, start: Start = Here) -> None:
    """Measure here if mpiexec started this process, else in n processes of our own."""
    if own_rank() is not None:
        _in_place(seconds, display)
        return
    text = json.dumps(seconds)
    with closing(launch("isthmus.bench.tune", n, text, LIMIT, start)) as lines:
        for line in lines:
            _tell(display, json.loads(line))


def _in_place(seconds: float, display: Display) -> None:
    from ..mpi.measure.measure import abort

    try:
        measure(seconds, display)
    except BaseException as error:
        abort(error)


def _tell(display: Display, data: dict[str, Any]) -> None:
    """Pass on what rank 0 wrote."""
    if "words" in data:
        display.step(data["words"], data["part"])
    else:
        display.found(read_found(data))


class _Writer(Display):
    """Writes what happens for the parent process, in single writes."""

    def __init__(self, path: str) -> None:
        self.path = path

    def _write(self, line: str) -> None:
        with open(self.path, "ab", buffering=0) as results:
            results.write(line.encode() + b"\n")

    def step(self, words: str, part: float) -> None:
        self._write(json.dumps({"words": words, "part": part}))

    def found(self, found: Measured) -> None:
        self._write(found.to_json())


if __name__ == "__main__":
    measure(json.loads(Path(sys.argv[1]).read_text("utf-8")), _Writer(sys.argv[2]))
