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
from .sizes import SizeOptions, sized
from .terminal import busy

#: no viewer opens a trace of more messages
MAX_MESSAGES = 1_000_000


@sized
def trace(
    *,
    collective: sim.Collective,
    algorithm: sim.Name,
    size_options: SizeOptions,
    machine: sim.Machine = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="a .json file"),
    ] = None,
) -> None:
    """Write a simulated run as a trace for Perfetto or Chrome.

    The trace shows when each rank sends and receives on a machine; open it at
    ui.perfetto.dev. An element is one byte.
    """
    schedule = sim.schedule_of(collective, algorithm, size_options, sim.TIMELINE_FACTOR)
    path = output or Path(f"{collective}-{algorithm.replace('+', '-')}.json")
    check_file(path, (".json",))
    with busy(Console(stderr=True), f"simulating {schedule.n} ranks"):
        timeline = sim.timeline(schedule, machine)
        if (message_count := int(timeline.messages.sum())) > MAX_MESSAGES:
            raise ValueError(
                f"{message_count} messages: a trace has at most {MAX_MESSAGES}"
            )
        chrome.write(path, timeline, sim.groups(schedule), nodes_of(schedule))
    print(path)
