"""`isthmus trace`: a simulated schedule for a trace viewer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..cost.placement import nodes as nodes_of
from ..export import chrome
from . import simulate as sim
from .files import check_file
from .sizes import Given, sized
from .terminal import busy

#: more messages than this no viewer opens
MOST = 1_000_000


@sized
def trace(
    *,
    collective: sim.Collective,
    algorithm: sim.Name,
    given: Given,
    machine: sim.Machine = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="a .json file"),
    ] = None,
) -> None:
    """Write a simulated run as a trace for Perfetto or Chrome.

    It shows when each rank sends and receives on a machine; open it at
    ui.perfetto.dev. An element is one byte.
    """
    made = sim.made(collective, algorithm, given, sim.LARGER)
    path = output or Path(f"{collective}-{algorithm.replace('+', '-')}.json")
    check_file(path, (".json",))
    with busy(Console(stderr=True), f"simulating {made.n} ranks"):
        line = sim.timeline(made, machine)
        if (n := int(line.messages.sum())) > MOST:
            raise ValueError(f"{n} messages: a trace has at most {MOST}")
        chrome.write(path, line, sim.groups(made), nodes_of(made))
    print(path)
