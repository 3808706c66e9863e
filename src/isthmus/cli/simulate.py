"""A schedule, a machine and a timeline for all commands that simulate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from .. import schedule as schedule_for
from ..cost.machine import Machine as MachineModel
from ..cost.placement import MACHINE, placed
from ..cost.timeline import Timeline
from ..schedules.names import WHERE, mpi_name, number_of_groups
from ..schedules.schedule import Schedule
from ..units import show_bytes
from .options import integers
from .sizes import SizeOptions, resolve

#: the default machine in words
DEFAULT_MACHINE_WORDS = "2 µs and 12 GB/s"
#: characters of a title that fit over a picture
LONGEST_TITLE_CHARACTERS = 96
#: default sizes are so much larger for a timeline, where few bytes are start-ups only
TIMELINE_FACTOR = 1024

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


def schedule_of(
    collective: str, algorithm: str, size_options: SizeOptions, factor: int
) -> Schedule:
    """The schedule of an algorithm; default sizes are multiplied by a factor."""
    return schedules_of(collective, [algorithm], size_options, factor)[0]


def schedules_of(
    collective: str, names: Sequence[str], size_options: SizeOptions, factor: int
) -> list[Schedule]:
    """The schedules of several algorithms for equal sizes."""
    record_name, sizes = resolve(collective, names, size_options, factor)
    nodes, per_node = size_options.get("nodes"), size_options.get("per_node")
    schedules: list[Schedule] = []
    for name in names:
        schedule = schedule_for(record_name, name, **sizes)
        if node_list := _nodes_of_ranks(schedule.n, nodes, per_node):
            schedule = schedule_for(record_name, name, nodes=node_list, **sizes)
        schedules.append(schedule)
    return schedules


def _nodes_of_ranks(n: int, nodes: str | None, per_node: int | None) -> list[int]:
    """The node of each of n ranks; an empty list without options for nodes."""
    if nodes is not None and per_node is not None:
        raise ValueError("--nodes and --per-node say the same: give one of them")
    if per_node is not None:
        return [r // per_node for r in range(n)]
    nodes_of_ranks = integers(nodes, "--nodes") if nodes is not None else []
    if nodes_of_ranks and len(nodes_of_ranks) != n:
        raise ValueError(f"--nodes {nodes}: must be the nodes of {n} ranks")
    return nodes_of_ranks


def groups(schedule: Schedule) -> tuple[int, ...]:
    """The sizes of a schedule's groups."""
    return tuple(map(len, schedule.groups))


def machine(name: str | None) -> MachineModel:
    """The machine of a name or file, or the tuned machine."""
    if name is None:
        return MACHINE
    if name == "tuned":
        from .tune import current_file

        path = current_file()
        if path is None:
            raise ValueError("nothing is tuned here; isthmus tune does it")
        name = str(path)
    from ..cost.machines import load

    return load(name)


def title(schedule: Schedule, machine: str | None) -> str:
    """The title of a picture: collective, groups, blocks, machine."""
    sizes = groups(schedule)
    ranks = " + ".join(map(str, sizes))
    # a redistribution has one name, whether inside one group or between two
    where = WHERE[max(number_of_groups(schedule.collective), min(len(sizes), 3))]
    machine_words = (
        f"on {Path(machine).stem}" if machine else f"on {DEFAULT_MACHINE_WORDS}"
    )
    collective = f"{mpi_name(schedule.collective)} {where}"
    head = f"{collective}, {schedule.algorithm}: {ranks} ranks"
    subject = ", ".join(filter(None, (head, blocks(schedule))))
    whole_title = f"{subject}; {machine_words}"
    return (
        whole_title
        if len(whole_title) < LONGEST_TITLE_CHARACTERS
        else f"{subject}\n{machine_words}"
    )


def blocks(schedule: Schedule) -> str:
    """The sizes of blocks, or of the vector, of a schedule; an element is a byte."""
    sizes = [schedule.sizes[x] for x in ("ka", "kb", "k", "m") if x in schedule.sizes]
    if not sizes:
        return ""
    noun = "vectors" if "m" in schedule.sizes else "blocks"
    return f"{noun} of {' and '.join(map(show_bytes, dict.fromkeys(sizes)))}"


def timeline(schedule: Schedule, name: str | None) -> Timeline:
    """The timeline of all ranks on a machine, with every message."""
    return schedule.simulate(placed(machine(name), schedule), record=True)
