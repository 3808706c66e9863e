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
from ..redistribution.schedule import schedule as redistribution_schedule
from ..schedules.registry import resolve
from . import simulate as sim
from .files import check_picture, save
from .layouts import Inside, Shape, Source, Target, layout_pair
from .options import integers
from .sizes import SizeOptions, sized
from .terminal import busy

#: with more ranks, nobody could tell the colours apart
READABLE_RANKS = 24


def _check_ranks(n: int, has_timeline: bool, max_ranks: int = READABLE_RANKS) -> None:
    """Refuse more ranks than a picture can show readably."""
    max_ranks = MAX_PAGE_RANKS if has_timeline else max_ranks
    if n > max_ranks:
        hint = f"; --gantt and isthmus explore show {MAX_PAGE_RANKS}"
        words = f"{n} ranks: a picture shows up to {max_ranks}"
        raise ValueError(words + hint * (not has_timeline))


def _in_parts(
    algorithm: str, size_options: SizeOptions, parts: int
) -> tuple[str, SizeOptions]:
    """A broadcast algorithm cut into parts, and size options to match.

    Where no size is asked for, each part is one byte, so that the parts divide the
    data.
    """
    entry, _ = resolve("bcast", algorithm)
    name = algorithm
    if "n" in entry.options and "(" not in algorithm:
        name = f"{algorithm}(n={parts})"
    has_size = size_options["bytes"] is not None or size_options["m"] is not None
    return name, size_options if has_size else size_options | {"bytes": str(parts)}


def _redistribution(
    ends: tuple[Layout, Layout, int | None],
    machine: str | None,
    has_timeline: bool,
    output: Path | None,
) -> None:
    """Draw the layouts and messages of a redistribution, or a timeline of its run."""
    path = output or Path(f"redistribution{'-gantt' * has_timeline}.png")
    check_picture(path)
    before, after, inside = ends
    _check_ranks(
        inside or before.ranks + after.ranks, has_timeline, MAX_RANKS_IN_DETAIL
    )
    with busy(Console(stderr=True), "drawing"):
        if has_timeline:
            schedule = redistribution_schedule(*ends, least=WHOLE_MESSAGE_BYTES)
            timeline = schedule.simulate(sim.machine(machine), record=True)
            title = sim.title(schedule, machine)
            save(gantt(timeline, sim.groups(schedule), title, ()), path)
        else:
            save(picture.draw(*ends), path)
    print(path)


@sized
def draw(
    *,
    collective: sim.Collective,
    algorithm: sim.Name = "",
    size_options: SizeOptions,
    has_timeline: Annotated[
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

    With --nodes or --per-node, nodes are boxes around their ranks. With --gantt, the
    picture shows when each rank sends, receives and idles; an element is then one byte.
    With --circle, it shows where each part of a broadcast goes.

    A redistribution has no algorithm but layouts: --source, --target and --shape.
    """
    if machine is not None and not has_timeline:
        raise ValueError("--machine goes with --gantt: the steps take no time")
    if collective == "redistribution":
        extents = integers(
            shape or ("2400,2400" if has_timeline else "24,24"), "--shape"
        )
        ends = layout_pair(source, target, extents, inside)
        _redistribution(ends, machine, has_timeline, output)
        return
    if source or target or inside:
        raise ValueError("--source, --target and --inside are of a redistribution")
    if not algorithm:
        raise ValueError(f"which algorithm? isthmus list {collective} names them")
    if circle is not None and (has_timeline or collective != "bcast"):
        raise ValueError("--circle shows the parts of a bcast, and no times")
    size_factor = sim.TIMELINE_FACTOR if has_timeline else 1
    name = algorithm
    if circle is not None:
        name, size_options = _in_parts(algorithm, size_options, circle)
    schedule = sim.schedule_of(collective, name, size_options, size_factor)
    kind = "-gantt" * has_timeline + "-circle" * (circle is not None)
    path = output or Path(f"{collective}-{algorithm.replace('+', '-')}{kind}.png")
    check_picture(path)
    _check_ranks(schedule.n, has_timeline)
    with busy(Console(stderr=True), f"drawing {schedule.n} ranks"):
        if has_timeline:
            timeline = sim.timeline(schedule, machine)
            title = sim.title(schedule, machine)
            save(gantt(timeline, sim.groups(schedule), title, nodes_of(schedule)), path)
        elif circle is not None:
            save(on_circle(schedule, circle), path)
        else:
            save(figure(schedule), path)
    print(path)
