"""`isthmus lab report`: all named sets on a lab of 32 hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..bench import sets
from ..bench.job import BenchJob, contenders
from ..bench.place import place
from ..bench.report import write
from .files import check_folder, make_folder
from .measured import LiveRecord
from .options import DEFAULT_LAB_RATE, Launches, Rate, Seconds
from .terminal import ended_in_order


def report(
    folder: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FOLDER", help="folder of the report"),
    ] = Path("results"),
    rate: Rate = DEFAULT_LAB_RATE,
    scale: Annotated[
        float, typer.Option(metavar="X", help="multiply the sizes by this")
    ] = 1.0,
    launches: Launches = 3,
    seconds: Seconds = 2.0,
) -> None:
    """Run the named sets of the papers on a lab and write a report.

    The lab has 32 hosts; each set runs at its smallest sizes. On two cores, `--launches
    2 --seconds 1` took 9 minutes with MPICH and 15 with Open MPI. The report grows set
    by set.
    """
    check_folder(folder)
    records, path = {}, folder
    with ended_in_order(), place(sets.LAB_PROCESSES, rate, None) as lab_place:
        make_folder(folder)
        for name in sets.PAPER_SETS:
            paper_contenders = contenders(
                sets.algorithms(name), persistent=False, copy=False
            )
            base_job = BenchJob(
                groups=(), cases=(), contenders=paper_contenders, seconds=seconds
            )
            records[name] = record = LiveRecord(lab_place, name, table=True)
            record.run(sets.named(name, base_job, scale, smallest=True), launches)
            record.console.print()
            record.arrange(sets.kinds(name))
            path = write(folder, records)
    print(path)
