"""Options that several commands have, and their values as people write them."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from ..launch.mpiexec import own_rank
from ..units import show_bytes

#: of a link of a lab, where nothing else is asked for
RATE = "50mbit"
#: processes that a command starts by itself, at most: so many a processor, or so many
PER_PROCESSOR, LEAST = 16, 64

Hosts = Annotated[
    int | None,
    typer.Option(
        "--lab", metavar="N", help="measure on a lab of N hosts, made for this"
    ),
]
Named = Annotated[
    str | None,
    typer.Option("--lab-name", metavar="NAME", help="measure on this running lab"),
]
Rate = Annotated[
    str,
    typer.Option(
        metavar="RATE",
        help="rate of a link of the lab, each way: 50mbit, 1gbit, 800kbit",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Launches = Annotated[
    int,
    typer.Option(metavar="N", help="times to relaunch all processes", min=1),
]
Seconds = Annotated[
    float,
    typer.Option(
        metavar="SECONDS", help="about how long per case and launch", min=0.01
    ),
]


#: what is called otherwise now, of the command that runs
_notes: list[str] = []


def note(words: str) -> None:
    """Keep for the end of the command what something is called now."""
    _notes.append(words)


def say_notes(wanted: bool) -> None:
    """Say what the command noted, if it ended well: an error is one line."""
    if wanted and not own_rank():
        for words in _notes:
            print(f"isthmus: note: {words}", file=sys.stderr)
    _notes.clear()


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


def check_memory(case: Any) -> None:
    """Refuse an isthmus.bench.job.BenchCase for whose buffers there is no memory."""
    from ..bench.operations import buffer_bytes

    room = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    need = buffer_bytes(case.op, case.a, case.b)
    if own_rank() is None and need > room:
        raise ValueError(
            f"{case.label}: the buffers of {len(case.a) + len(case.b)} processes take "
            f"{show_bytes(need)}; this machine has {show_bytes(room)}"
        )


def one_or_two_groups(text: str) -> tuple[int, ...]:
    """The sizes of one or two groups."""
    found = integers(text, "--groups")
    if len(found) > 2 or min(found) < 1:
        raise ValueError(
            f"--groups {text}: must be the sizes of one or two groups, as in 8 or 4,4"
        )
    return tuple(found)
