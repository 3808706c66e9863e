"""A first tour: an ocean and an atmosphere, two groups of processes, swap their fields.

`python -m isthmus.bench.demo` is `isthmus demo`, also under mpiexec.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..collectives.records import schedule
from ..cost.placement import MACHINE
from ..launch.mpiexec import own_rank
from ..predict.case import Case as Predicted
from ..predict.predict import LIBRARY, default
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
#: tells what is measured and which part of all is done
Tell = Callable[[str, float], None]
SECONDS = 1.0
#: groups, and times faster for each field, on a machine of 16 cores: the medians of
#: docs/results/demo-mpich.txt and demo-openmpi.txt, which a test compares
USUAL_GROUPS = (4, 4)
ON_16_CORES = {
    "MPICH": (1.39, 0.57, 4.66, 1.39, 4.81, 2.66),
    "Open MPI": (0.70, 0.55, 3.57, 2.71, 3.81, 3.01),
}
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

    def __init__(self, console: Console, groups: tuple[int, int], steps: Tell) -> None:
        self.console, self.groups, self.steps = console, groups, steps
        self.outcomes: list[Outcome] = []
        self.library = ""
        #: of processes that share cores, what they would show with a core each
        self.on_16_cores: tuple[float, ...] = ()

    @property
    def takes_turns(self) -> bool:
        """Whether more processes than cores were started here."""
        return own_rank() is None and sum(self.groups) > (os.cpu_count() or 1)

    def about(self, software: Software) -> None:
        """What is going on, and the head of the table."""
        self.library = software.library
        if self.takes_turns and self.groups == USUAL_GROUPS:
            names = (name for name in ON_16_CORES if self.library.startswith(name))
            self.on_16_cores = ON_16_CORES.get(next(names, ""), ())
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
        columns += [Column("ratio", 7)]
        columns += [Column("16 cores", 8)] * bool(self.on_16_cores)
        self.table = Table(self.console, columns)

    def progress(self, label: str, part: float) -> None:
        """How far all fields together are."""
        self.steps(label, (len(self.outcomes) + part) / (2 * len(GRIDS)))

    def outcome(self, found: Outcome) -> None:
        """A row of the table."""
        times = [show_time(found.seconds(c)) for c in (NATIVE, OURS)]
        size = show_bytes(sum(found.case.a))
        ratio = show_ratio(found.ratio(OURS))
        elsewhere = self.on_16_cores[len(self.outcomes) :][:1]
        more = [f"{x:.2f}×" for x in elsewhere]
        self.outcomes.append(found)
        self.table.row([found.case.label, size, *times, ratio, *more])

    def shared_cores(self) -> Iterator[str]:
        """What to know where processes share cores; nothing, where each has its own."""
        if not self.takes_turns:
            return
        cores = os.cpu_count() or 1
        yield (
            f"{sum(self.groups)} processes take turns on {cores} cores here: these "
            "times say more about the turns than about the calls."
        )
        if self.on_16_cores:
            yield (
                "16 cores: the ratio that isthmus demo showed where each process had a "
                "core of its own (docs/results.md)."
            )
        largest = job(self.groups).cases[-2]
        blocks = largest.a[0], largest.b[0]
        p, q = self.groups
        yield (
            f"On {p} + {q} hosts with a link each, simulated: "
            f"{gain_on_hosts(self.groups, blocks):.1f}× for the largest field in even "
            f"strips (isthmus predict allgather --groups {p},{q} "
            f"--bytes {':'.join(map(str, dict.fromkeys(blocks)))})."
        )


def gain_on_hosts(groups: tuple[int, int], blocks: tuple[int, int]) -> float:
    """How many times faster than what MPI libraries do, where every process has a link
    of its own: simulated."""
    case = Predicted("inter_allgather", groups, blocks)
    names = LIBRARY, default(case, MACHINE) or LIBRARY
    native, ours = (MACHINE.simulate(case.schedule(name)).time for name in names)
    return native / ours


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
        speed.SpeedRow(
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
