"""A first tour: an ocean and an atmosphere, two groups of processes, swap their fields.

The cases are from coupled models, at usual grids, so that a first run of isthmus shows
a user what to expect in a coupled model.

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
from ..predict.predict import LIBRARY_ALGORITHM, default
from ..schedules.registry import algorithms
from ..units import show_bytes, show_time
from . import field, worker
from .environment import Software
from .job import AUTO, NATIVE, BenchJob, contenders
from .outcome import Outcome
from .table import Column, PrintedTable, show_ratio

if TYPE_CHECKING:
    from rich.console import Console

#: names of grids, and their numbers of latitudes
GRIDS = (("7.5°", 24), ("1°", 180), ("1/4°", 720))
#: shows the field that is measured, and the part of the tour that is done
ShowProgress = Callable[[str, float], None]
SECONDS_FOR_A_FIELD = 1.0
#: groups, and the ratio to native for each field, on a machine of 16 cores: the medians
#: of docs/results/demo-mpich.txt and demo-openmpi.txt, which a test compares
DEFAULT_GROUPS = (4, 4)
RATIOS_ON_16_CORES = {
    "MPICH": (1.39, 0.57, 4.66, 1.39, 4.81, 2.66),
    "Open MPI": (0.70, 0.55, 3.57, 2.71, 3.81, 3.01),
}
#: with more processes, nobody could read the picture of an exchange
MAX_DRAWN_PROCESSES = 24


def job(groups: tuple[int, int]) -> BenchJob:
    """The job of the tour: fields of each grid, in even and in uneven strips."""
    cases = tuple(
        strips(rows, groups, f"{name} grid, {word} strips")
        for name, rows in GRIDS
        for word, strips in (("even", field.even), ("uneven", field.uneven))
    )
    both = contenders(["auto"], False)
    return BenchJob(groups, cases, both, SECONDS_FOR_A_FIELD, content="field")


class Tour(worker.Display):
    """The display of a tour: prints a table row by row, and keeps the outcomes."""

    def __init__(
        self, console: Console, groups: tuple[int, int], steps: ShowProgress
    ) -> None:
        self.console, self.groups, self.steps = console, groups, steps
        self.outcomes: list[Outcome] = []
        self.library = ""
        #: where processes share cores: the ratios that a core for each would show
        self.usual_ratios: tuple[float, ...] = ()

    @property
    def takes_turns(self) -> bool:
        """Whether isthmus started more processes than cores on this host."""
        return own_rank() is None and sum(self.groups) > (os.cpu_count() or 1)

    def about(self, software: Software) -> None:
        """Print the groups, the MPI library, and the head of the table."""
        self.library = software.library
        if self.takes_turns and self.groups == DEFAULT_GROUPS:
            names = (
                name for name in RATIOS_ON_16_CORES if self.library.startswith(name)
            )
            self.usual_ratios = RATIOS_ON_16_CORES.get(next(names, ""), ())
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
        columns += [Column("16 cores", 8)] * bool(self.usual_ratios)
        self.table = PrintedTable(self.console, columns)

    def progress(self, label: str, part: float) -> None:
        """Show the part of all fields that is done."""
        self.steps(label, (len(self.outcomes) + part) / (2 * len(GRIDS)))

    def outcome(self, outcome: Outcome) -> None:
        """Print a row of the table."""
        times = [show_time(outcome.seconds(c)) for c in (NATIVE, AUTO)]
        size = show_bytes(sum(outcome.case.a))
        ratio = show_ratio(outcome.ratio(AUTO))
        usual = [f"{x:.2f}×" for x in self.usual_ratios[len(self.outcomes) :][:1]]
        self.outcomes.append(outcome)
        self.table.row([outcome.case.label, size, *times, ratio, *usual])

    def shared_cores(self) -> Iterator[str]:
        """Sentences on the times of processes that share cores.

        No sentences where each process has a core of its own.
        """
        if not self.takes_turns:
            return
        cores = os.cpu_count() or 1
        yield (
            f"{sum(self.groups)} processes take turns on {cores} cores here: these "
            "times say more about the turns than about the calls."
        )
        if self.usual_ratios:
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
    """How many times faster than MPI libraries isthmus is, simulated, where every
    process has a link of its own."""
    case = Predicted("inter_allgather", groups, blocks)
    names = LIBRARY_ALGORITHM, default(case, MACHINE) or LIBRARY_ALGORITHM
    native, ours = (MACHINE.simulate(case.schedule(name)).time for name in names)
    return native / ours


def drawable(taken: str) -> bool:
    """Whether the algorithm of a call has a picture.

    The MPI library's own call has no schedule to draw.
    """
    names = {entry.name for entry in algorithms("inter_allgather")}
    return taken.partition("+")[0].partition("(")[0] in names


def pictures(tour: Tour, folder: Path) -> Iterator[tuple[str, Any, Path]]:
    """The pictures of a tour: the caption, the figure, and the file of each."""
    from ..draw import schedule as drawn, speed

    last = next(x for x in reversed(tour.outcomes) if x.case.op == "allgather")
    case, name = last.case, last.taken(AUTO)
    p, q = tour.groups
    if p + q <= MAX_DRAWN_PROCESSES and drawable(name):
        ka, kb = (field.rows_of(sizes) // len(sizes) for sizes in (case.a, case.b))
        exchange = schedule("inter_allgather", name, p=p, q=q, ka=ka, kb=kb)
        caption = f"the largest exchange ({name})"
        yield caption, drawn.figure(exchange), folder / "exchange.png"
    pairs = [
        speed.SpeedRow(
            outcome.case.label.replace(", ", "\n"),
            show_time(outcome.seconds(NATIVE)),
            show_time(outcome.seconds(AUTO)),
            outcome.ratio(AUTO),
        )
        for outcome in tour.outcomes
    ]
    title = "An ocean and an atmosphere swap their fields"
    subtitle = (
        f"{p} + {q} processes, {tour.library}; time of one call, each pair to scale"
    )
    yield (
        "native against isthmus",
        speed.figure(title, subtitle, pairs),
        folder / "speed.png",
    )


if __name__ == "__main__":
    from ..cli import main

    main(["demo", *sys.argv[1:]])
