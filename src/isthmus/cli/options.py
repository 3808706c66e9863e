"""Options that several commands have, and their values as people write them."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ..lab.mpiexec import own_rank
from ..redistribution.layouts import Layout, Replicate, Shard

#: of a link of a lab, where nothing else is asked for
RATE = "50mbit"
#: processes that a command starts by itself, at most: so many a processor, or so many
PER_PROCESSOR, LEAST = 16, 64
#: a layout
HELP = "as in blocks:4x2, cyclic:2x3:8x8 (grid, block) or sharded:2x4:S0,R"

Hosts = Annotated[
    int | None,
    typer.Option("--lab", help="measure on a lab of N hosts, made for this"),
]
Named = Annotated[
    str | None, typer.Option("--lab-name", help="measure on this running lab")
]
Rate = Annotated[
    str,
    typer.Option(help="rate of a link of the lab, each way: 50mbit, 1gbit, 800kbit"),
]
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Launches = Annotated[
    int, typer.Option(help="number of times to relaunch all processes", min=1)
]
Seconds = Annotated[
    float, typer.Option(help="about how long per case and launch", min=0.01)
]
Source = Annotated[
    str | None, typer.Option(help=f"layout before a redistribution: {HELP}")
]
Target = Annotated[
    str | None,
    typer.Option(help="layout after it [default of both: blocks:4x2 and blocks:3x3]"),
]
Shape = Annotated[
    str | None,
    typer.Option(
        help="shape of the redistributed array [default: 24,24; with times, 2400,2400]"
    ),
]
Inside = Annotated[
    bool, typer.Option("--inside", help="a redistribution inside one group")
]


def integers(text: str, option: str) -> list[int]:
    """Whole numbers between commas."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} {text}: must be numbers as in 3,0,5") from None


def groups(text: str) -> tuple[int, int]:
    """The sizes of two groups."""
    found = integers(text, "--groups")
    if len(found) != 2 or min(found) < 1:
        raise ValueError(f"--groups {text}: must be the sizes of two groups, as in 4,4")
    return found[0], found[1]


def check_processes(n: int) -> None:
    """Refuse to start more processes than this machine can bear."""
    most = max(LEAST, PER_PROCESSOR * (os.cpu_count() or 1))
    if own_rank() is None and n > most:
        raise ValueError(
            f"{n} processes: isthmus starts up to {most} on this machine by itself; "
            "for more, start it under your own mpiexec"
        )


def one_or_two_groups(text: str) -> tuple[int, ...]:
    """The sizes of one or two groups."""
    found = integers(text, "--groups")
    if len(found) > 2 or min(found) < 1:
        raise ValueError(
            f"--groups {text}: must be the sizes of one or two groups, as in 8 or 4,4"
        )
    return tuple(found)


def both(
    source: str | None, target: str | None, shape: list[int], inside: bool
) -> tuple[Layout, Layout, int | None]:
    """Both layouts of a redistribution, and the size of the group if it is one."""
    before = layout(source or "blocks:4x2", shape, "--source")
    after = layout(target or "blocks:3x3", shape, "--target")
    if (source is None) != (target is None):
        missing = "--source" if source is None else "--target"
        raise ValueError(f"a redistribution has two layouts: give {missing} too")
    return before, after, max(before.ranks, after.ranks) if inside else None


def layout(text: str, shape: list[int], option: str) -> Layout:
    """A layout of a global array of that shape."""
    kind, *more = text.split(":")
    if (kind, len(more)) in (("blocks", 1), ("cyclic", 2)):
        return getattr(Layout, kind)(shape, *(_grid(x, option) for x in more))  # type: ignore[no-any-return]
    if (kind, len(more)) == ("sharded", 2):
        placements = [_placement(x, option) for x in more[1].split(",")]
        return Layout.sharded(shape, _grid(more[0], option), placements)
    raise ValueError(f"{option} {text}: must be a layout, {HELP}")


def _grid(text: str, option: str) -> list[int]:
    return integers(text.replace("x", ","), option)


def _placement(text: str, option: str) -> Shard | Replicate:
    if text == "R":
        return Replicate()
    if not text.startswith("S"):
        raise ValueError(f"{option}: {text} is no placement: S and an axis, or R")
    return Shard(*integers(text[1:], option))
