"""`isthmus draw`: a schedule as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..draw.gantt import gantt
from ..draw.schedule import figure
from . import simulate as sim


def save(picture: Any, path: Path) -> Path:
    """Write a figure; the kind of file follows from its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path, dpi=140)
    return path


def draw(
    collective: sim.Collective,
    algorithm: sim.Name,
    p: sim.P = None,
    q: sim.Q = None,
    ka: sim.Ka = None,
    kb: sim.Kb = None,
    a: sim.A = None,
    b: sim.B = None,
    counts: sim.Counts = None,
    times: Annotated[
        bool, typer.Option("--gantt", help="when each rank does what on a machine")
    ] = False,
    machine: sim.Machine = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="a .png, .svg or .pdf file")
    ] = None,
) -> None:
    """Draw what every rank holds after every step of a schedule.

    Or, with --gantt, who sends, receives and idles when; an element is a byte then.
    """
    if machine is not None and not times:
        raise ValueError("--machine goes with --gantt: the steps take no time")
    given = {"p": p, "q": q, "ka": ka, "kb": kb, "a": a, "b": b, "counts": counts}
    made = sim.made(collective, algorithm, given, sim.LARGER if times else 1)
    kind = "-gantt" * times
    path = output or Path(f"{collective}-{algorithm.replace('+', '-')}{kind}.png")
    if times:
        line, name = sim.timeline(made, machine), f"{collective}, {algorithm}"
        print(save(gantt(line, sim.groups(made), name), path))
    else:
        print(save(figure(made), path))
