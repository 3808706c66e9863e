"""`isthmus explore`: a page to step through schedules in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..explore.page import DEFAULT_MACHINE_NAME, write
from ..export import chrome
from ..redistribution.order import WHOLE_MESSAGE_BYTES
from ..redistribution.schedule import schedule as redistribution_schedule
from . import simulate as sim
from .files import check_file
from .layouts import Inside, Shape, Source, Target, layout_pair
from .options import integers
from .sizes import SizeOptions, sized
from .terminal import busy


@sized
def explore(
    *,
    collective: sim.Collective,
    algorithms: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ALGORITHM…", help="such as segmented+ring; several to compare"
        ),
    ] = None,
    size_options: SizeOptions,
    machine: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="a machine's name, a TOML file, or tuned; may be repeated, to choose "
            "in the page [default: 2 µs and 12 GB/s]",
        ),
    ] = None,
    recorded: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="a .json file of isthmus record, to be shown beside it; may be "
            "repeated",
        ),
    ] = None,
    source: Source = None,
    target: Target = None,
    shape: Shape = None,
    inside: Inside = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="an .html file"),
    ] = None,
) -> None:
    """Write a page to step through a schedule in a browser.

    The page is one file and needs no network. It shows each message, the contents of
    every buffer and where each block came from, beside the timeline of a machine. An
    element is one byte. Up to 64 ranks are shown with their buffers, up to 1024 as a
    matrix.
    """
    if collective == "redistribution":
        if algorithms:
            raise ValueError("a redistribution has layouts, and no algorithm to choose")
        extents = integers(shape or "2400,2400", "--shape")
        schedules = [
            redistribution_schedule(
                *layout_pair(source, target, extents, inside), least=WHOLE_MESSAGE_BYTES
            )
        ]
    else:
        if source or target or shape or inside:
            raise ValueError("--source, --target, … are of a redistribution")
        if not algorithms:
            raise ValueError(f"which algorithm? isthmus list {collective} names them")
        schedules = []
    algorithm_suffix = "".join(f"-{name}" for name in (algorithms or [])[:1]).replace(
        "+", "-"
    )
    path = output or Path(f"{collective}{algorithm_suffix}.html")
    check_file(path, (".html", ".htm"))
    if algorithms:
        schedules += sim.schedules_of(
            collective, algorithms, size_options, sim.TIMELINE_FACTOR
        )
    machines = {name: sim.machine(name) for name in machine or ()}
    runs = {file.stem: chrome.read(file) for file in recorded or ()}
    with busy(Console(stderr=True), f"writing a page of {schedules[0].n} ranks"):
        write(
            path, schedules, machines or {DEFAULT_MACHINE_NAME: sim.machine(None)}, runs
        )
    print(path)
