"""`isthmus draw`: a schedule as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..cost.placement import nodes as nodes_of
from ..draw.circle import figure as on_circle
from ..draw.gantt import gantt
from ..draw.schedule import figure
from ..explore.run import MAX_PAGE_RANKS, MAX_RANKS_IN_DETAIL
from ..redistribution import picture
from ..redistribution.layouts import Layout
from ..redistribution.order import WHOLE_MESSAGE_BYTES
from ..redistribution.schedule import schedule
from ..schedules.registry import resolve
from . import simulate as sim
from .files import check_picture, save
from .layouts import Inside, Shape, Source, Target, both
from .options import integers
from .sizes import Given, sized
from .terminal import busy

#: of more ranks, nobody could tell the colours apart
READABLE = 24


def _check_ranks(n: int, times: bool, most: int = READABLE) -> None:
    """Refuse what would take long and nobody could read."""
    most = MAX_PAGE_RANKS if times else most
    if n > most:
        more = "" if times else f"; --gantt and isthmus explore show {MAX_PAGE_RANKS}"
        raise ValueError(f"{n} ranks: a picture shows up to {most}{more}")


def _in_parts(algorithm: str, given: Given, parts: int) -> tuple[str, Given]:
    """A broadcast in so many parts: the algorithm's own, of data that they divide."""
    entry, _ = resolve("bcast", algorithm)
    name = algorithm
    if "n" in entry.options and "(" not in algorithm:
        name = f"{algorithm}(n={parts})"
    asked = given["bytes"] is not None or given["m"] is not None
    return name, given if asked else given | {"bytes": str(parts)}


def _redistribution(
    ends: tuple[Layout, Layout, int | None],
    machine: str | None,
    times: bool,
    output: Path | None,
) -> None:
    """Draw both layouts and who sends what to whom; or when, on a machine."""
    path = output or Path(f"redistribution{'-gantt' * times}.png")
    check_picture(path)
    before, after, inside = ends
    _check_ranks(inside or before.ranks + after.ranks, times, MAX_RANKS_IN_DETAIL)
    with busy(Console(stderr=True), "drawing"):
        if times:
            made = schedule(*ends, least=WHOLE_MESSAGE_BYTES)
            line, groups = made.simulate(sim.machine(machine), True), sim.groups(made)
            save(gantt(line, groups, sim.title(made, machine), ()), path)
        else:
            save(picture.draw(*ends), path)
    print(path)


@sized
def draw(
    *,
    collective: sim.Collective,
    algorithm: sim.Name = "",
    given: Given,
    times: Annotated[
        bool, typer.Option("--gantt", help="draw when each rank does what on a machine")
    ] = False,
    circle: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="draw a broadcast of N parts, ranks on a circle"
        ),
    ] = None,
    machine: sim.Machine = None,
    source: Source = None,
    target: Target = None,
    shape: Shape = None,
    inside: Inside = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="a .png, .svg or .pdf file"
        ),
    ] = None,
) -> None:
    """Draw what every rank holds after every step of a schedule.

    With --nodes or --per-node, nodes are boxes around their ranks. With --gantt, it
    draws who sends, receives and idles when; an element is then one byte. With
    --circle, it draws which part of a broadcast goes where.

    A redistribution has no algorithm but layouts: --source, --target and --shape.
    """
    if machine is not None and not times:
        raise ValueError("--machine goes with --gantt: the steps take no time")
    if collective == "redistribution":
        extents = integers(shape or ("2400,2400" if times else "24,24"), "--shape")
        ends = both(source, target, extents, inside)
        _redistribution(ends, machine, times, output)
        return
    if source or target or inside:
        raise ValueError("--source, --target and --inside are of a redistribution")
    if not algorithm:
        raise ValueError(f"which algorithm? isthmus list {collective} names them")
    if circle is not None and (times or collective != "bcast"):
        raise ValueError("--circle shows the parts of a bcast, and no times")
    larger = sim.LARGER if times else 1
    name = algorithm
    if circle is not None:
        name, given = _in_parts(algorithm, given, circle)
    made = sim.made(collective, name, given, larger)
    kind = "-gantt" * times + "-circle" * (circle is not None)
    path = output or Path(f"{collective}-{algorithm.replace('+', '-')}{kind}.png")
    check_picture(path)
    _check_ranks(made.n, times)
    with busy(Console(stderr=True), f"drawing {made.n} ranks"):
        if times:
            line, words = sim.timeline(made, machine), sim.title(made, machine)
            save(gantt(line, sim.groups(made), words, nodes_of(made)), path)
        elif circle is not None:
            save(on_circle(made, circle), path)
        else:
            save(figure(made), path)
    print(path)
