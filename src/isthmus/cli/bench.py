"""`isthmus bench`: the user's machine, the user's sizes."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from .. import schedule
from ..bench import job as jobs, worker
from ..bench.job import Job, Outcome
from ..bench.table import Comparison
from ..bench.units import read_bytes
from . import parse
from .terminal import busy


class Shown(worker.Display):
    """Prints results as they come, and keeps them."""

    def __init__(self, job: Job) -> None:
        self.job, self.console = job, Console()
        self.library, self.outcomes = "", list[Outcome]()

    def about(self, library: str) -> None:
        """Say what is being compared, and begin the table."""
        self.library = library
        where = "inside" if len(self.job.groups) == 1 else "between"
        ranks = " and ".join(map(str, self.job.groups))
        op = self.job.cases[0].op.capitalize()
        self.console.print(f"{op} {where} {ranks} processes, {library}")
        said = "ratio: how many times faster than native; copy: the limit of one host"
        self.console.print(f"{said}\n", style="dim")
        self.comparison = Comparison(self.console, self.job.contenders)

    def outcome(self, found: Outcome) -> None:
        """Print a row."""
        self.outcomes.append(found)
        self.comparison.add(found)


def _try(name: str, groups: tuple[int, ...]) -> None:
    """Refuse an algorithm that does not work for groups of these sizes."""
    if len(groups) == 1:
        schedule("allgatherv", name, counts=[1] * groups[0]).rank(0)
        return
    p, q = groups
    made = schedule("inter_allgather", name, p=p, q=q, ka=1, kb=1)
    for rank in (0, p):
        made.rank(rank)


def _algorithms(text: str, groups: tuple[int, ...], persistent: bool) -> list[str]:
    """The names, once it is clear that each works for groups of these sizes."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in ("auto", "native"):
            _try(name, groups)
        if persistent and name.endswith("+library"):
            raise ValueError(f"{name!r} has no persistent form")
    return names


def _write(path: Path, shown: Shown) -> None:
    """Everything there is to know about the measurement."""
    about: dict[str, Any] = {"library": shown.library, "job": asdict(shown.job)}
    about["outcomes"] = [asdict(found) for found in shown.outcomes]
    path.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def bench(
    groups: Annotated[
        str, typer.Option(help="processes of each group, or of one")
    ] = "4,4",
    bytes_: Annotated[
        str, typer.Option("--bytes", help="that each process contributes")
    ] = "8,4KiB,64KiB,1MiB",
    op: Annotated[str, typer.Option(help="allgather or allgatherv")] = "allgather",
    distribution: Annotated[
        str | None,
        typer.Option(help="of the contributions to allgatherv, as in spike,half"),
    ] = None,
    algorithms: Annotated[
        str, typer.Option(help="those to compare, as isthmus list names them")
    ] = "auto",
    persistent: Annotated[
        bool, typer.Option("--persistent", help="also the persistent form of each")
    ] = False,
    seconds: Annotated[float, typer.Option(help="for each size, about")] = 2.0,
    seed: Annotated[int, typer.Option(help="of the order of repetitions")] = 0,
    output: Annotated[
        Path | None, typer.Option("--json", help="write all results to this file")
    ] = None,
) -> None:
    """Compare isthmus with the MPI library's own collectives.

    The contenders take turns in random order; a time is the median over repetitions
    of the slowest rank's; every byte received is checked. With allgatherv,
    contributions grow with the rank, or follow a distribution; --bytes is their
    average. With one group, as in --groups 8, the collective inside it.

    Runs the processes itself, or in those of your own mpiexec:

        mpiexec -n 8 python -m isthmus.bench --groups 4,4
    """
    sizes = parse.one_or_two_groups(groups)
    kinds = distribution.split(",") if distribution else [None]
    cases = tuple(
        jobs.case(op, sizes, read_bytes(n), kind)
        for kind in kinds
        for n in bytes_.split(",")
    )
    names = _algorithms(algorithms, sizes, persistent)
    contenders = jobs.contenders(names, persistent)
    shown = Shown(Job(sizes, cases, contenders, seconds, seed))
    with busy(shown.console, f"measuring with {sum(sizes)} processes"):
        worker.run(shown.job, shown)
    if output is not None and shown.outcomes:
        _write(output, shown)
