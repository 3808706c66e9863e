"""What commands that simulate have in common: a schedule, a machine, a timeline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from .. import schedule
from ..choose.tuning import is_tuning, read
from ..cost.placement import MACHINE, placed
from ..cost.timeline import Timeline
from ..predict.tuned import Tuned
from ..schedules.names import described
from ..schedules.schedule import Model, Schedule
from ..units import show_bytes
from .options import integers
from .sizes import Given, resolve

#: the machine where none is named, in words
USUAL_MACHINE = "2 µs and 12 GB/s"
#: characters of a title that fit over a picture
LONGEST_TITLE = 96
#: so many times as much for a timeline, where few bytes are start-ups only
LARGER = 1024

Collective = Annotated[
    str,
    typer.Argument(
        metavar="COLLECTIVE", help="as in MPI: allgather, bcast, gatherv, …"
    ),
]
Name = Annotated[
    str,
    typer.Argument(
        metavar="ALGORITHM", help="as isthmus list names them, such as segmented+ring"
    ),
]
Machine = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="a machine's name, a TOML file, or tuned: as isthmus tune measured it "
        "here [default: 2 µs and 12 GB/s]",
    ),
]


def made(collective: str, algorithm: str, given: Given, times: int) -> Schedule:
    """The schedule of these sizes; the default ones are so many times as large."""
    return all_made(collective, [algorithm], given, times)[0]


def all_made(
    collective: str, names: Sequence[str], given: Given, times: int
) -> list[Schedule]:
    """The schedules of several algorithms, of the same sizes."""
    form, sizes = resolve(collective, names, given, times)
    schedules: list[Schedule] = []
    for name in names:
        flat = schedule(form, name, **sizes)
        where = _placed(flat.n, given.get("nodes"), given.get("per_node"))
        placed = schedule(form, name, nodes=where, **sizes) if where else flat
        schedules.append(placed)
    return schedules


def _placed(n: int, nodes: str | None, per_node: int | None) -> list[int]:
    """The node of each of n ranks, if anyone says."""
    if nodes is not None and per_node is not None:
        raise ValueError("--nodes and --per-node say the same: give one of them")
    if per_node is not None:
        return [r // per_node for r in range(n)]
    found = integers(nodes, "--nodes") if nodes is not None else []
    if found and len(found) != n:
        raise ValueError(f"--nodes {nodes}: must be the nodes of {n} ranks")
    return found


def groups(made: Schedule) -> tuple[int, ...]:
    """The sizes of a schedule's groups."""
    return tuple(map(len, made.groups))


def machine(name: str | None) -> Model:
    """The machine of that name or file."""
    if name is None:
        return MACHINE
    if name == "tuned":
        from .tune import find

        path = find()
        if path is None:
            raise ValueError("nothing is tuned here; isthmus tune does it")
        return Tuned(read(path))
    if is_tuning(name):
        return Tuned(read(name))
    from ..cost.machines import load

    found: Model = load(name)
    return found


def title(made: Schedule, machine: str | None) -> str:
    """What is simulated: the collective, its groups, its blocks, the machine."""
    ranks = " + ".join(map(str, groups(made)))
    where = f"on {Path(machine).stem}" if machine else f"on {USUAL_MACHINE}"
    head = f"{described(made.collective)}, {made.algorithm}: {ranks} ranks"
    words = ", ".join(filter(None, (head, blocks(made))))
    full = f"{words}; {where}"
    return full if len(full) < LONGEST_TITLE else f"{words}\n{where}"


def blocks(made: Schedule) -> str:
    """The sizes of blocks, or of the vector, of a schedule; an element is a byte."""
    sizes = [made.sizes[x] for x in ("ka", "kb", "k", "m") if x in made.sizes]
    if not sizes:
        return ""
    noun = "vectors" if "m" in made.sizes else "blocks"
    return f"{noun} of {' and '.join(map(show_bytes, dict.fromkeys(sizes)))}"


def timeline(made: Schedule, name: str | None) -> Timeline:
    """When each rank does what, with every message."""
    return made.simulate(placed(machine(name), made), record=True)
