"""Options that several commands have, and values as people write them."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from ..launch.mpiexec import own_rank
from ..units import show_bytes

#: the default rate of a link of a lab
DEFAULT_LAB_RATE = "50mbit"
#: processes that a command starts at most: for each processor, and on any machine
MAX_PROCESSES_PER_PROCESSOR, MAX_PROCESSES_ANYWHERE = 16, 64

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


#: the new names of options of the command that runs
_notes: list[str] = []


def note(words: str) -> None:
    """Keep a note on the new name of an option for the end of the command."""
    _notes.append(words)


def say_notes(has_succeeded: bool) -> None:
    """Print the notes of a command; none after an error, since errors are one line."""
    if has_succeeded and not own_rank():
        for words in _notes:
            print(f"isthmus: note: {words}", file=sys.stderr)
    _notes.clear()


def integers(text: str, option: str) -> list[int]:
    """Whole numbers between commas."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} {text}: must be numbers as in 3,0,5") from None


def check_processes(n: int) -> None:
    """Refuse to start more processes than the machine can bear."""
    max_processes = max(
        MAX_PROCESSES_ANYWHERE, MAX_PROCESSES_PER_PROCESSOR * (os.cpu_count() or 1)
    )
    if own_rank() is None and n > max_processes:
        raise ValueError(
            f"{n} processes: isthmus starts up to {max_processes} on this machine by "
            "itself; for more, start it under your own mpiexec"
        )


def check_memory(case: Any) -> None:
    """Refuse a case of a benchmark whose buffers do not fit into memory."""
    from ..bench.operations import buffer_bytes

    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    needed_bytes = buffer_bytes(case.op, case.a, case.b)
    if own_rank() is None and needed_bytes > memory_bytes:
        raise ValueError(
            f"{case.label}: the buffers of {len(case.a) + len(case.b)} processes take "
            f"{show_bytes(needed_bytes)}; this machine has {show_bytes(memory_bytes)}"
        )


def one_or_two_groups(text: str) -> tuple[int, ...]:
    """The sizes of one or two groups, read from an option."""
    sizes = integers(text, "--groups")
    if len(sizes) > 2 or min(sizes) < 1:
        raise ValueError(
            f"--groups {text}: must be the sizes of one or two groups, as in 8 or 4,4"
        )
    return tuple(sizes)
