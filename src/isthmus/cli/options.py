"""Options that several commands have, and their values as people write them."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ..lab.mpiexec import own_rank

#: of a link of a lab, where nothing else is asked for
RATE = "50mbit"
#: processes that a command starts by itself, at most: so many a processor, or so many
PER_PROCESSOR, LEAST = 16, 64

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
