"""`isthmus reproduce`: a paper's figures and tables, from nothing but the code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

from ..reproduce import kang2019_report, moody2011_report, traff2008_report
from .files import check_folder

PAPERS = {
    "kang2019": kang2019_report.reproduce,
    "moody2011": moody2011_report.reproduce,
    "traff2008": traff2008_report.reproduce,
}


def reproduce(
    paper: Annotated[str, typer.Argument(help=f"one of: {', '.join(PAPERS)}")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="folder for the report")
    ] = None,
) -> None:
    """Make a paper's figures and tables anew, by simulation."""
    if paper not in PAPERS:
        raise ValueError(f"no paper {paper!r}; known: {', '.join(PAPERS)}")
    folder = output or Path(paper)
    check_folder(folder)
    console = Console()
    columns = "simulating", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(paper, total=None)
        report = PAPERS[paper](
            folder,
            lambda done, of: bar.update(task, completed=done, total=of),
        )
    console.print(f"report: {report}")
