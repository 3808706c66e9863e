"""`isthmus reproduce`: a paper's figures and tables, from nothing but the code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..bench import silva1999
from ..bench.place import place
from ..reproduce import (
    kang2019_report,
    moody2011_report,
    output as reports,
    silva1999_report,
    traff2008_report,
)
from ..reproduce.unfinished import RESULTS_FILE
from ..spelling import unknown
from .files import check_folder, make_folder
from .options import DEFAULT_LAB_RATE, Hosts, Named, Rate
from .terminal import ProgressDisplay, ended_in_order

REPORTS_BY_PAPER = {
    "kang2019": kang2019_report.reproduce,
    "moody2011": moody2011_report.reproduce,
    "traff2008": traff2008_report.reproduce,
}
PAPERS = (*sorted((*REPORTS_BY_PAPER, "silva1999")),)


def reproduce(
    paper: Annotated[
        str, typer.Argument(metavar="PAPER", help=f"one of: {', '.join(PAPERS)}")
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FOLDER", help="folder of the report"),
    ] = None,
    lab: Hosts = None,
    rate: Rate = DEFAULT_LAB_RATE,
    lab_name: Named = None,
) -> None:
    """Reproduce a paper's figures and tables.

    The figures of silva1999 are measured, all others simulated, in minutes to an hour.
    An interrupted command keeps its simulations in the folder, and the same command
    goes on from there.
    """
    if paper not in PAPERS:
        raise ValueError(unknown("paper", paper, PAPERS))
    on_lab = lab is not None or lab_name is not None
    if on_lab and paper in REPORTS_BY_PAPER:
        raise ValueError(f"{paper} is simulated: it needs no lab")
    folder = output or Path(paper)
    check_folder(folder)
    words = "simulations" if paper in REPORTS_BY_PAPER else "measurements"
    done_cases = all_cases = 0
    try:
        with (
            ended_in_order(),
            ProgressDisplay(Console(), has_many_steps=True) as display,
        ):

            def progress(done: int, total: int, part: float) -> None:
                nonlocal done_cases, all_cases
                done_cases, all_cases = done, total
                display(f"{done} of {total} {words}", part)

            if paper in REPORTS_BY_PAPER:
                report = REPORTS_BY_PAPER[paper](folder, progress)
            else:
                report = _measured(folder, progress, (lab, rate, lab_name))
    except (KeyboardInterrupt, SystemExit):
        if (folder / RESULTS_FILE).exists():
            print(
                f"isthmus: {done_cases} of {all_cases} {words} are kept in "
                f"{folder / RESULTS_FILE}; the same command goes on from there",
                file=sys.stderr,
            )
        raise
    print(report)


def _measured(
    folder: Path,
    progress: reports.Progress,
    lab: tuple[int | None, str, str | None],
) -> Path:
    """Write the report of silva1999, measured on a lab or here."""
    with place(*lab) as measurement_place:
        library, times = silva1999.measure(progress, measurement_place.start)
    make_folder(folder)
    place_words = measurement_place.words or "one machine, shared memory"
    return silva1999_report.reproduce(folder, library, place_words, times)
