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
from .options import RATE, Hosts, Named, Rate
from .terminal import Steps, ended_in_order

SIMULATED = {
    "kang2019": kang2019_report.reproduce,
    "moody2011": moody2011_report.reproduce,
    "traff2008": traff2008_report.reproduce,
}
PAPERS = (*sorted((*SIMULATED, "silva1999")),)


def reproduce(
    paper: Annotated[
        str, typer.Argument(metavar="PAPER", help=f"one of: {', '.join(PAPERS)}")
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FOLDER", help="folder of the report"),
    ] = None,
    lab: Hosts = None,
    rate: Rate = RATE,
    lab_name: Named = None,
) -> None:
    """Reproduce a paper's figures and tables.

    They are simulated, but for those of silva1999, which are measured. That takes
    minutes to an hour; interrupted, what was simulated is kept in the folder, and the
    same command goes on where it was.
    """
    if paper not in PAPERS:
        raise ValueError(unknown("paper", paper, PAPERS))
    on_lab = lab is not None or lab_name is not None
    if on_lab and paper in SIMULATED:
        raise ValueError(f"{paper} is simulated: it needs no lab")
    folder = output or Path(paper)
    check_folder(folder)
    words = "simulations" if paper in SIMULATED else "measurements"
    state = {"done": 0, "of": 0}
    try:
        with ended_in_order(), Steps(Console(), many=True) as steps:

            def progress(done: int, of: int, part: float) -> None:
                state.update(done=done, of=of)
                steps(f"{done} of {of} {words}", part)

            if paper in SIMULATED:
                report = SIMULATED[paper](folder, progress)
            else:
                report = _measured(folder, progress, (lab, rate, lab_name))
    except (KeyboardInterrupt, SystemExit):
        if (folder / RESULTS_FILE).exists():
            print(
                f"isthmus: {state['done']} of {state['of']} {words} are kept in "
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
    """Silva and Silva's, on a lab or here."""
    with place(*lab) as at:
        library, found = silva1999.measure(progress, at.start)
    make_folder(folder)
    where = at.words or "one machine, shared memory"
    return silva1999_report.reproduce(folder, library, where, found)
