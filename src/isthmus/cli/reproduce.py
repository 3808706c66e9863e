"""`isthmus reproduce`: a paper's figures and tables, from nothing but the code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..reproduce import kang2019_report, moody2011_report, traff2008_report
from .files import check_folder
from .terminal import Steps

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
    """Reproduce the figures and tables of a paper by simulation."""
    if paper not in PAPERS:
        raise ValueError(f"no paper {paper!r}; known: {', '.join(PAPERS)}")
    folder = output or Path(paper)
    check_folder(folder)
    console = Console()
    with Steps(console, many=True) as steps:
        report = PAPERS[paper](
            folder,
            lambda done, of: steps(f"{done} of {of} simulations", done / (of or 1)),
        )
    print(report)
