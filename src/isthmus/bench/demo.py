"""A first tour: an ocean and an atmosphere, two groups of processes, swap their fields.

`python -m isthmus.bench.demo` is `isthmus demo`, also under mpiexec.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..collectives.schedule import schedule
from ..schedules.registry import algorithms
from ..units import show_bytes, show_time
from . import field, worker
from .environment import Software
from .job import NATIVE, Contender, Job, contenders
from .outcome import Outcome
from .table import Column, Table, show_ratio

if TYPE_CHECKING:
    from rich.console import Console

#: names of grids, and how many latitudes they have
GRIDS = (("7.5°", 24), ("1°", 180), ("1/4°", 720))
OURS = Contender("auto")
SECONDS = 1.0
#: with more processes than this, nobody could read the picture of the exchange
DRAWN = 24


def job(groups: tuple[int, int]) -> Job:
    """Fields of several sizes, in strips of one height and of different heights."""
    cases = tuple(
        strips(rows, groups, f"{name} grid, {word} strips")
        for name, rows in GRIDS
        for word, strips in (("even", field.even), ("uneven", field.uneven))
    )
    both = contenders(["auto"], False)
    return Job(groups, cases, both, SECONDS, content="field")


class Tour(worker.Display):
    """Tells what happens, and keeps the results."""

    def __init__(self, console: Console, groups: tuple[int, int]) -> None:
        self.console, self.groups = console, groups
        self.outcomes: list[Outcome] = []
        self.library = ""

    def about(self, software: Software) -> None:
        """What is going on, and the head of the table."""
        self.library = software.library
        p, q = self.groups
        self.console.print(
            f"[bold]{p} ocean[/] and [bold]{q} atmosphere[/] processes, "
            f"{self.library}.\n"
            "Each owns a strip of its model's field; everyone needs all of the "
            "other's.\n",
            highlight=False,
        )
        columns = [Column("field", 25, left=True), Column("size", 9)]
        columns += [Column(name, 8) for name in ("native", "isthmus")]
        self.table = Table(self.console, [*columns, Column("ratio", 7)])

    def outcome(self, found: Outcome) -> None:
        """A row of the table."""
        self.outcomes.append(found)
        times = [show_time(found.seconds(c)) for c in (NATIVE, OURS)]
        size = show_bytes(sum(found.case.a))
        ratio = show_ratio(found.ratio(OURS))
        self.table.row([found.case.label, size, *times, ratio])


def drawable(taken: str) -> bool:
    """Whether what a call took is an algorithm, and not the MPI library's own call."""
    names = {entry.name for entry in algorithms("inter_allgather")}
    return taken.partition("+")[0].partition("(")[0] in names


def pictures(tour: Tour, folder: Path) -> Iterator[tuple[str, Any, Path]]:
    """What there is to draw: a word about it, the figure, where it goes."""
    from ..draw import schedule as drawn, speed

    last = next(x for x in reversed(tour.outcomes) if x.case.op == "allgather")
    case, name = last.case, last.taken(OURS)
    p, q = tour.groups
    if p + q <= DRAWN and drawable(name):
        ka, kb = (field.rows_of(sizes) // len(sizes) for sizes in (case.a, case.b))
        made = schedule("inter_allgather", name, p=p, q=q, ka=ka, kb=kb)
        words = f"the largest exchange ({name})"
        yield words, drawn.figure(made), folder / "exchange.png"
    pairs = [
        speed.Pair(
            found.case.label.replace(", ", "\n"),
            show_time(found.seconds(NATIVE)),
            show_time(found.seconds(OURS)),
            found.ratio(OURS),
        )
        for found in tour.outcomes
    ]
    title = "An ocean and an atmosphere swap their fields"
    under = f"{p} + {q} processes, {tour.library}; time of one call, each pair to scale"
    yield (
        "native against isthmus",
        speed.figure(title, under, pairs),
        folder / "speed.png",
    )


if __name__ == "__main__":
    from ..cli import main

    main(["demo", *sys.argv[1:]])
