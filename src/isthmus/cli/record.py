"""`isthmus record`: a real run, message by message, beside the simulated one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ..bench import job as jobs, timelines
from ..bench.job import BenchCase, planned
from ..bench.launch import run
from ..bench.outcome import ProgressReport
from ..bench.place import place
from ..cost.recorded import timeline
from ..cost.timeline import Timeline
from ..draw.gantt import gantts
from ..explore.page import DEFAULT_MACHINE_NAME, write
from ..export import chrome
from ..units import show_bytes, show_time
from . import simulate as sim
from .files import check_file, check_picture, save
from .options import (
    RATE,
    Hosts,
    Named,
    Rate,
    check_memory,
    check_processes,
    one_or_two_groups,
)
from .sizes import GROUPS, in_groups
from .terminal import Steps, ended_in_order

#: seconds without a word after which processes of our own are ended
LIMIT = 120.0


def case_of(
    op: str, groups: tuple[int, ...], sizes: str, distribution: str | None
) -> BenchCase:
    """A case in which blocks have one size, or one in each group."""
    return jobs.of_groups(op, groups, in_groups(sizes, len(groups)), distribution)


def simulated(case: BenchCase, algorithm: str, machine: str) -> Timeline:
    """The same on a machine."""
    model = sim.machine(machine)
    return planned(case, algorithm, model).simulate(model, record=True)


def write_page(
    path: Path,
    case: BenchCase,
    algorithm: str,
    machine: str | None,
    recorded: dict[str, Timeline],
) -> None:
    """A page to explore the run in, beside the simulated one."""
    model = sim.machine(machine)
    models = {Path(machine).stem if machine else DEFAULT_MACHINE_NAME: model}
    write(path, [planned(case, algorithm, model)], models, recorded)


def _note(found: Timeline, simulation: Timeline) -> str:
    """What to know if not the same messages were simulated."""
    real, other = int(found.messages.sum()), int(simulation.messages.sum())
    if real == other:
        return ""
    return (
        f"\nnote: {real} messages were recorded, {other} simulated: the real call cuts "
        "its blocks, or chooses its stage, by what it knows of this machine"
    )


def record(
    algorithm: Annotated[
        str,
        typer.Argument(metavar="ALGORITHM", help="such as ring or segmented+ring"),
    ],
    groups: Annotated[str, typer.Option(metavar="N,N", help=GROUPS)] = "8",
    bytes_: Annotated[
        str,
        typer.Option(
            "--bytes",
            metavar="SIZE",
            help="bytes of each rank's block, on average; one for each group, as in "
            "4KiB:1KiB",
        ),
    ] = "256KiB",
    op: Annotated[
        str,
        typer.Option(metavar="COLLECTIVE", help="allgather, allgatherv or bcast"),
    ] = "allgather",
    distribution: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="how block sizes differ, as in spike"),
    ] = None,
    runs: Annotated[
        int,
        typer.Option(metavar="N", help="runs, of which the median one is drawn", min=1),
    ] = 5,
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="simulate on this machine too; tuned: as measured here"
        ),
    ] = None,
    lab: Hosts = None,
    rate: Rate = RATE,
    lab_name: Named = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="a .png, .svg, .pdf, .html page, or .json trace",
        ),
    ] = None,
) -> None:
    """Record a real run message by message, and draw it.

    With --machine, the same schedule as simulated there is drawn below, on one scale.
    As an .html file, it is a page to step through, like those of isthmus explore. It
    starts the processes itself, here or on a lab, or runs in those that your own
    mpiexec started.
    """
    sizes = one_or_two_groups(groups)
    check_processes(sum(sizes))
    case = case_of(op, sizes, bytes_, distribution)
    check_memory(case)
    if algorithm not in ("auto", "native"):
        planned(case, algorithm, sim.machine(None)).rank(0)  # refused before MPI starts
    path = output or Path(f"{op}-{algorithm.replace('+', '-')}-recorded.png")
    (check_file if path.suffix in (".json", ".html") else check_picture)(path)
    simulation = simulated(case, algorithm, machine) if machine is not None else None
    told: list[timelines.RecordedRuns] = []
    job = timelines.RecordingJob(case, algorithm, runs)
    with (
        ended_in_order(),
        place(lab, rate, lab_name) as where,
        Steps(Console(stderr=True), many=True) as steps,
    ):

        def tell(said: Any) -> None:
            if isinstance(said, ProgressReport):
                steps(*said)
            else:
                told.append(said)

        run(timelines.measure, job, sum(sizes), tell, LIMIT, where.start)
    if not told:
        return
    library, lines = told[0].library, [timeline(logs) for logs in told[0].logs]
    if not lines:
        raise ValueError(
            f"{algorithm}: a call of the MPI library's own, or in memory that all "
            "share, shows nothing"
        )
    found = sorted(lines, key=lambda line: line.time)[len(lines) // 2]
    if path.suffix == ".json":
        chrome.write(path, found, sizes)
    elif path.suffix == ".html":
        write_page(path, case, algorithm, machine, {library: found})
    else:
        sizes_of_blocks = dict.fromkeys(in_groups(bytes_, len(sizes)))
        each = map(show_bytes, sizes_of_blocks)
        at = f"{algorithm}, blocks of {' and '.join(each)}"
        shown: dict[str, Timeline] = {f"recorded: {at}, {library}": found}
        if simulation is not None:
            shown[f"simulated: {at}, on {Path(machine or '').stem}"] = simulation
        save(gantts(shown, sizes), path)
    times = ", ".join(show_time(line.time) for line in lines)
    words = ""
    if simulation is not None:
        words = f"; simulated: {show_time(simulation.time)}{_note(found, simulation)}"
    print(f"{times}{words}\n{path}")
