"""`isthmus draw`: a schedule as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..cost.placement import nodes as nodes_of
from ..draw.circle import figure as on_circle
from ..draw.gantt import gantt
from ..draw.schedule import figure
from ..redistribution import picture
from ..redistribution.schedule import schedule
from . import simulate as sim
from .files import check_picture
from .layouts import HELP, layout
from .parse import integers


def save(picture: Any, path: Path) -> Path:
    """Write a figure; the kind of file follows from its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path, dpi=140)
    return path


def _redistribution(
    ends: tuple[str, str],
    extents: list[int],
    inside: bool,
    machine: str | None,
    times: bool,
    output: Path | None,
) -> None:
    """Draw both layouts and who sends what to whom; or when, on a machine."""
    pairs = zip(ends, ("--source", "--target"), strict=True)
    source, target = (layout(text, extents, option) for text, option in pairs)
    ranks = max(source.ranks, target.ranks) if inside else None
    path = output or Path(f"redistribution{'-gantt' * times}.png")
    check_picture(path)
    if times:
        made = schedule(source, target, ranks)
        line, groups = made.simulate(sim.machine(machine), True), sim.groups(made)
        print(save(gantt(line, groups, f"{ends[0]} to {ends[1]}", ()), path))
    else:
        print(save(picture.draw(source, target, ranks), path))


def draw(
    collective: sim.Collective,
    algorithm: sim.Name = "",
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
    source: Annotated[
        str | None, typer.Option(help=f"of a redistribution: {HELP}")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="of a redistribution: how it will lie")
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option(help="of the array that is redistributed [default: 24,24]"),
    ] = None,
    inside: Annotated[
        bool, typer.Option("--inside", help="a redistribution inside one group")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="a .png, .svg or .pdf file")
    ] = None,
) -> None:
    """Draw what every rank holds after every step of a schedule.

    With --nodes or --per-node, nodes are boxes around their ranks. Or, with --gantt,
    who sends, receives and idles when; an element is a byte then. Or, with --circle,
    which part of a broadcast goes where.

    A redistribution has layouts and no algorithm: --source, --target and --shape.
    """
    if machine is not None and not times:
        raise ValueError("--machine goes with --gantt: the steps take no time")
    if collective == "redistribution":
        ends = source or "blocks:4x2", target or "blocks:3x3"
        extents = integers(shape or ("2400,2400" if times else "24,24"), "--shape")
        _redistribution(ends, extents, inside, machine, times, output)
        return
    if source or target or inside:
        raise ValueError("--source, --target and --inside are of a redistribution")
    if not algorithm:
        raise ValueError(f"which algorithm? isthmus list {collective} names them")
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
