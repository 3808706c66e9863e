"""`isthmus demo`: the first thing to run."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..bench import demo as tour, worker
from ..launch.mpiexec import own_rank
from .files import check_folder, make_folder, save
from .options import check_processes, one_or_two_groups
from .terminal import ProgressDisplay, busy, ended_in_order

SILENCE_LIMIT_SECONDS = 120.0
NO_PICTURES = 'pictures need: pip install "isthmus[plot]"'


def _groups(text: str | None, ranks: int | None) -> tuple[int, int]:
    """The sizes of two groups as asked for, or halves of all processes."""
    if text is not None:
        sizes = one_or_two_groups(text)
        if len(sizes) != 2:
            raise ValueError(f"--groups {text}: the tour has two groups, as in 4,4")
        if ranks not in (None, sum(sizes)):
            raise ValueError(f"--groups {text} are {sum(sizes)} processes, not {ranks}")
        return sizes[0], sizes[1]
    if ranks is None and own_rank() is not None:
        from ..bench.stand import world_size

        ranks = world_size()
    ranks = 8 if ranks is None else ranks
    if ranks < 2:
        raise ValueError(f"--ranks {ranks}: two groups need at least 2 processes")
    return ranks - ranks // 2, ranks // 2


def demo(
    ranks: Annotated[
        int | None,
        typer.Option(metavar="N", help="processes [default: 8]"),
    ] = None,
    groups: Annotated[
        str | None, typer.Option(metavar="N,N", help="ranks of each group, as in 6,2")
    ] = None,
    folder: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FOLDER", help="folder of the pictures"),
    ] = Path("isthmus-demo"),
) -> None:
    """Let two groups of processes swap a coupled field.

    An ocean and an atmosphere exchange their fields, with the MPI library's own call
    and with isthmus. The command starts the processes, or runs under your own mpiexec.
    """
    has_matplotlib = find_spec("matplotlib") is not None
    if has_matplotlib:
        check_folder(folder)
    sizes = _groups(groups, ranks)
    check_processes(sum(sizes))
    console = Console()
    with ended_in_order(), ProgressDisplay(console, has_many_steps=True) as progress:
        tour_display = tour.Tour(console, sizes, progress)
        worker.run(tour.job(sizes), tour_display, SILENCE_LIMIT_SECONDS)
    if own_rank():
        return
    console.print("\nEvery byte was checked and right.")
    for words in tour_display.shared_cores():
        console.print(words, highlight=False)
    console.print()
    with busy(console, "drawing"):
        if not has_matplotlib:
            console.print(NO_PICTURES, highlight=False, markup=False)
        if has_matplotlib:
            make_folder(folder)
        for words, figure, path in (
            tour.pictures(tour_display, folder) if has_matplotlib else ()
        ):
            console.print(
                f"{words:<44} {save(figure, path)}", highlight=False, soft_wrap=True
            )
    if own_rank() is None:
        command = f"mpiexec -n {sum(sizes)} python -m isthmus.bench.demo"
        command += f" --groups {groups}" * (groups is not None)
        console.print(
            f"{'under your own mpiexec':<44} {command}", highlight=False, soft_wrap=True
        )
