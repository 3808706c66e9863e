"""`isthmus export`: a schedule as text for other simulators."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..cost.machine import Machine
from ..export import goal as goal_text, simgrid as simgrid_text
from . import simulate as sim
from .files import check_file, check_folder, make_folder
from .sizes import SizeOptions, sized


@sized
def export(
    *,
    collective: sim.Collective,
    algorithm: sim.Name,
    size_options: SizeOptions,
    goal: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="for LogGOPSim: GOAL, a .goal file"),
    ] = None,
    simgrid: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="for SimGrid: a trace, a platform, the hosts"
        ),
    ] = None,
    machine: sim.Machine = None,
) -> None:
    """Write a schedule for another simulator: LogGOPSim or SimGrid.

    An element is one byte. The costs of LogGOPSim are options of its own; SimGrid's
    platform is the machine, and a machine with nodes is refused.
    """
    if goal is None and simgrid is None:
        raise ValueError("for which simulator? --goal FILE or --simgrid FOLDER")
    schedule = sim.schedule_of(collective, algorithm, size_options, sim.TIMELINE_FACTOR)
    if goal is not None:
        check_file(goal, (".goal",))
        with goal.open("w", encoding="utf-8") as file:
            goal_text.write_goal(schedule, file)
        print(goal)
    if simgrid is not None:
        model = sim.machine(machine)
        if not isinstance(model, Machine) or not model.flat:
            raise ValueError("SimGrid's platform has no nodes: name another --machine")
        texts = {
            "trace.txt": simgrid_text.trace(schedule),
            "platform.xml": simgrid_text.platform(model, schedule.n),
            "hosts.txt": simgrid_text.hosts(schedule.n),
        }
        check_folder(simgrid)
        make_folder(simgrid)
        for name, text in texts.items():
            (simgrid / name).write_text(text, encoding="utf-8")
        # SimGrid reads a trace through a file with the names of its parts.
        (simgrid / "list.txt").write_text("trace.txt\n", encoding="utf-8")
        print(simgrid)
