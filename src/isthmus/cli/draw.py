"""`isthmus draw`: a schedule as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..cost.placement import nodes as nodes_of
from ..draw.circle import figure as on_circle
from ..draw.gantt import gantt
from ..draw.schedule import figure
from . import simulate as sim
from .files import check_picture


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
    ab: sim.Ab = None,
    ba: sim.Ba = None,
    table: sim.Table = None,
    m: sim.M = None,
    k: sim.K = None,
    root: sim.Root = None,
    nodes: sim.Nodes = None,
    per_node: sim.PerNode = None,
    times: Annotated[
        bool, typer.Option("--gantt", help="when each rank does what on a machine")
    ] = False,
    circle: Annotated[
        int | None, typer.Option(help="a broadcast of so many parts, ranks on a circle")
    ] = None,
    machine: sim.Machine = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="a .png, .svg or .pdf file")
    ] = None,
) -> None:
    """Draw what every rank holds after every step of a schedule.

    With --nodes or --per-node, nodes are boxes around their ranks. Or, with --gantt,
    who sends, receives and idles when; an element is a byte then. Or, with --circle,
    which part of a broadcast goes where.
    """
    if machine is not None and not times:
        raise ValueError("--machine goes with --gantt: the steps take no time")
    given = {"p": p, "q": q, "ka": ka, "kb": kb, "a": a, "b": b, "counts": counts}
    given |= {"ab": ab, "ba": ba, "table": table, "m": m, "k": k, "root": root}
    if circle is not None and (times or collective != "bcast"):
        raise ValueError("--circle shows the parts of a bcast, and no times")
    larger = sim.LARGER if times else 1
    made = sim.made(collective, algorithm, given, larger, nodes, per_node)
    kind = "-gantt" * times + "-circle" * (circle is not None)
    path = output or Path(f"{collective}-{algorithm.replace('+', '-')}{kind}.png")
    check_picture(path)
    if times:
        line, name = sim.timeline(made, machine), f"{collective}, {algorithm}"
        picture = gantt(line, sim.groups(made), name, nodes_of(made))
        print(save(picture, path))
    elif circle is not None:
        print(save(on_circle(made, circle), path))
    else:
        print(save(figure(made), path))
