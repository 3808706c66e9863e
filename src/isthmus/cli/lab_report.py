"""`isthmus lab report`: all named sets on a lab of 32 hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..bench import sets
from ..bench.job import contenders
from ..bench.place import place
from ..bench.report import write
from .files import check_folder
from .lab_options import RATE, Rate
from .measured import Launches, Shown
from .terminal import ended_in_order


def report(
    folder: Annotated[
        Path, typer.Option("-o", "--output", help="where the report goes")
    ] = Path("results"),
    rate: Rate = RATE,
    scale: Annotated[float, typer.Option(help="sizes times this")] = 1.0,
    launches: Launches = 3,
    seconds: Annotated[float, typer.Option(help="for each case in a launch")] = 2.0,
) -> None:
    """Put up a lab, run all named sets at their smallest sizes, write a report.

    On two cores it took 11 minutes with MPICH and 18 with Open MPI. What is done is
    written set by set.
    """
    check_folder(folder)
    records = {}
    with ended_in_order(), place(sets.PROCESSES, rate, None) as where:
        for name in sets.PAPERS:
            some = contenders(sets.algorithms(name), False, copy=False)
            how = sets.How(some, seconds)
            records[name] = shown = Shown(where, name, table=True)
            shown.run(sets.named(name, how, scale, smallest=True), launches)
            shown.console.print()
            shown.arrange(sets.kinds(name))
            path = write(folder, records)
    print(path)
