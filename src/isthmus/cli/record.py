"""`isthmus record`: a real run, message by message, beside a simulated run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..bench import job as jobs, timelines
from ..bench.job import BenchCase, planned
from ..bench.place import place
from ..cost.recorded import timeline
from ..cost.timeline import Timeline
from ..draw.gantt import gantts
from ..explore.page import DEFAULT_MACHINE_NAME, write
from ..export import chrome
from ..units import show_bytes, show_time
from . import simulate as sim
from .files import check_file, check_picture, save
from .measured import results_of
from .options import (
    DEFAULT_LAB_RATE,
    Hosts,
    Named,
    Rate,
    check_memory,
    check_processes,
    one_or_two_groups,
)
from .sizes import GROUPS_HELP, bytes_of_groups_with_commas
from .terminal import ProgressDisplay, ended_in_order

#: time without a message after which processes of our own are ended
SILENCE_LIMIT_SECONDS = 120.0


def case_of(
    op: str, groups: tuple[int, ...], sizes: str, distribution: str | None
) -> BenchCase:
    """A case in which all blocks of a group are equally long."""
    return jobs.of_groups(
        op, groups, bytes_of_groups_with_commas(sizes, len(groups)), distribution
    )


def simulated(case: BenchCase, algorithm: str, machine: str) -> Timeline:
    """The timeline of a case as simulated on a machine."""
    model = sim.machine(machine)
    return planned(case, algorithm, model).simulate(model, record=True)


def write_page(
    path: Path,
    case: BenchCase,
    algorithm: str,
    machine: str | None,
    recorded: dict[str, Timeline],
) -> None:
    """Write a page to explore the recorded run, beside the simulated run."""
    model = sim.machine(machine)
    models = {Path(machine).stem if machine else DEFAULT_MACHINE_NAME: model}
    write(path, [planned(case, algorithm, model)], models, recorded)


def _note(recorded: Timeline, simulated: Timeline) -> str:
    """A note where the recorded and the simulated run differ in messages."""
    recorded_count = int(recorded.messages.sum())
    simulated_count = int(simulated.messages.sum())
    if recorded_count == simulated_count:
        return ""
    return (
        f"\nnote: {recorded_count} messages were recorded, {simulated_count} "
        "simulated: the real call cuts its blocks, or chooses its stage, by what it "
        "knows of this machine"
    )


def record(
    algorithm: Annotated[
        str,
        typer.Argument(metavar="ALGORITHM", help="such as ring or segmented+ring"),
    ],
    groups: Annotated[str, typer.Option(metavar="N,N", help=GROUPS_HELP)] = "8",
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
    rate: Rate = DEFAULT_LAB_RATE,
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

    With --machine, a simulated run on that machine is drawn below, on one scale. An
    .html file is a page to step through, as from isthmus explore. The command starts
    the processes, here or on a lab, or runs under your own mpiexec.
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
    job = timelines.RecordingJob(case, algorithm, runs)
    with (
        ended_in_order(),
        place(lab, rate, lab_name) as run_place,
        ProgressDisplay(Console(stderr=True), has_many_steps=True) as progress,
    ):
        recorded_runs: list[timelines.RecordedRuns] = results_of(
            timelines.measure,
            job,
            sum(sizes),
            progress,
            run_place.start,
            SILENCE_LIMIT_SECONDS,
        )
    if not recorded_runs:
        return
    library = recorded_runs[0].library
    timelines_of_runs = [timeline(logs) for logs in recorded_runs[0].logs]
    if not timelines_of_runs:
        raise ValueError(
            f"{algorithm}: a call of the MPI library's own, or in memory that all "
            "share, shows nothing"
        )
    by_time = sorted(timelines_of_runs, key=lambda run: run.time)
    median_run = by_time[len(by_time) // 2]
    if path.suffix == ".json":
        chrome.write(path, median_run, sizes)
    elif path.suffix == ".html":
        write_page(path, case, algorithm, machine, {library: median_run})
    else:
        sizes_of_blocks = dict.fromkeys(bytes_of_groups_with_commas(bytes_, len(sizes)))
        block_words = map(show_bytes, sizes_of_blocks)
        heading = f"{algorithm}, blocks of {' and '.join(block_words)}"
        pictures: dict[str, Timeline] = {f"recorded: {heading}, {library}": median_run}
        if simulation is not None:
            machine_name = Path(machine or "").stem
            pictures[f"simulated: {heading}, on {machine_name}"] = simulation
        save(gantts(pictures, sizes), path)
    words = ", ".join(show_time(run.time) for run in timelines_of_runs)
    if simulation is not None:
        words += f"; simulated: {show_time(simulation.time)}"
        words += _note(median_run, simulation)
    print(f"{words}\n{path}")
