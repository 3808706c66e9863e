"""`isthmus demo`: the first thing to run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..bench import demo as tour, worker
from ..lab.mpiexec import own_rank
from . import parse
from .draw import save
from .files import check_folder
from .terminal import busy, ended_in_order

LIMIT = 120.0


def _groups(text: str | None, ranks: int | None) -> tuple[int, int]:
    """Two groups as told, or halves of all processes."""
    if text is not None:
        found = parse.groups(text)
        if ranks not in (None, sum(found)):
            raise ValueError(f"--groups {text} are {sum(found)} processes, not {ranks}")
        return found
    if ranks is None and own_rank() is not None:
        from ..mpi.measure.measure import world_size

        ranks = world_size()
    ranks = 8 if ranks is None else ranks
    if ranks < 2:
        raise ValueError(f"{ranks} process: two groups need at least 2")
    return ranks - ranks // 2, ranks // 2


def demo(
    ranks: Annotated[int | None, typer.Option(help="processes [default: 8]")] = None,
    groups: Annotated[str | None, typer.Option(help="of each group, as in 6,2")] = None,
    folder: Annotated[
        Path, typer.Option("-o", "--output", help="where the pictures go")
    ] = Path("isthmus-demo"),
) -> None:
    """Let an ocean and an atmosphere swap fields, natively and with isthmus.

    Starts the processes itself, or runs in those of your own mpiexec:

        mpiexec -n 8 python -m isthmus.bench.demo
    """
    check_folder(folder)
    sizes = _groups(groups, ranks)
    console = Console()
    shown = tour.Tour(console, sizes)
    with ended_in_order(), busy(console, f"measuring with {sum(sizes)} processes"):
        worker.run(tour.job(sizes), shown, LIMIT)
    if own_rank():
        return
    console.print("\nEvery byte was checked and right.\n")
    with busy(console, "drawing"):
        for words, figure, path in tour.pictures(shown, folder):
            console.print(
                f"{words:<44} {save(figure, path)}", highlight=False, soft_wrap=True
            )
    if own_rank() is None:
        command = f"mpiexec -n {sum(sizes)} python -m isthmus.bench.demo"
        command += f" --groups {groups}" * (groups is not None)
        console.print(
            f"{'under your own mpiexec':<44} {command}", highlight=False, soft_wrap=True
        )
