"""What commands that simulate have in common: a schedule, a machine, a timeline."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import schedule
from ..choose.tuning import is_tuning, read
from ..collectives.schedule import COLLECTIVES
from ..cost.placement import MACHINE, placed
from ..cost.timeline import Timeline
from ..predict.tuned import Tuned
from ..schedules.schedule import Model, Schedule
from .options import integers

#: so many times as much for a timeline, where few bytes are start-ups only
LARGER = 1000

Collective = Annotated[str, typer.Argument(help="collective, as in isthmus list")]
Name = Annotated[str, typer.Argument(help="algorithm, such as segmented+ring")]
PerNode = Annotated[
    int | None, typer.Option(min=1, help="ranks per node, filled in order")
]
#: what was given of sizes, by their names
Given = dict[str, Any]


def _int(words: str) -> Any:
    return Annotated[int | None, typer.Option(help=words)]


def _text(words: str) -> Any:
    return Annotated[str | None, typer.Option(help=words)]


#: all sizes that a schedule may take, and where its ranks are
SIZES = {
    "p": _int("ranks of group A, or of the one group"),
    "q": _int("ranks of group B"),
    "ka": _int("elements of each rank of A"),
    "kb": _int("elements of each rank of B"),
    "a": _text("counts of A, as in 3,0,5"),
    "b": _text("counts of B"),
    "counts": _text("counts of one group"),
    "ab": _text("elements from each rank of A to each of B, as in 3,0;1,2"),
    "ba": _text("elements from each rank of B to each of A"),
    "table": _text("elements from each rank to each, as in 3,0;1,2"),
    "groups": _text("counts of several groups, as in 3,0;4,1;2"),
    "sizes": _text("ranks of several groups"),
    "m": _int("elements of a vector"),
    "k": _int("elements of each block"),
    "root": _int("rank of the root"),
    "nodes": _text("the node of each rank, as in 0,0,1,1"),
    "per_node": PerNode,
}


def sized(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each size, in the place of its `given`."""

    def run(**values: Any) -> None:
        given = {name: values.pop(name) for name in SIZES}
        command(given=given, **values)

    taken: list[Parameter] = []
    for x in signature(command, eval_str=True).parameters.values():
        options = (
            x.replace(name=name, annotation=option, default=None)
            for name, option in SIZES.items()
        )
        taken += options if x.name == "given" else [x]
    run.__doc__ = command.__doc__
    run.__annotations__ = {x.name: x.annotation for x in taken}
    run.__signature__ = Signature(taken)  # type: ignore[attr-defined]
    return run


Machine = Annotated[
    str | None,
    typer.Option(
        help="a machine's name, a TOML file, or tuned: as isthmus tune measured it "
        "here [default: 2 µs and 12 GB/s]"
    ),
]


def made(collective: str, algorithm: str, given: Given, times: int) -> Schedule:
    """The schedule of these sizes; the default ones are so many times as large."""
    sizes = {
        name: counts_in(name, value) if isinstance(value, str) else value
        for name, value in given.items()
        if value is not None and name not in ("nodes", "per_node")
    }
    known = COLLECTIVES[collective].example if collective in COLLECTIVES else {}
    odd = [f"--{name}" for name in sizes if known and name not in known]
    if odd:
        takes = ", ".join(f"--{name}" for name in known)
        raise ValueError(f"{collective} takes {takes}; not {', '.join(odd)}")
    filled = {name: _larger(name, size, times) for name, size in known.items()}
    filled |= sizes
    flat = schedule(collective, algorithm, **filled)
    if where := _placed(flat.n, given.get("nodes"), given.get("per_node")):
        return schedule(collective, algorithm, nodes=where, **filled)
    return flat


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


def counts_in(name: str, text: str) -> list[int] | list[list[int]]:
    """Counts between commas; rows of a table, and groups, between semicolons."""
    if name in ("ab", "ba", "table", "groups"):
        rows = [integers(row, f"--{name}") for row in text.split(";")]
        if name != "groups" and len({len(row) for row in rows}) > 1:
            raise ValueError(
                f"--{name} {text}: rows must be of one length, as in 3,0;1,2"
            )
        return rows
    return integers(text, f"--{name}")


def _larger(name: str, size: Any, times: int) -> Any:
    """A default size, but for the ranks, so many times as large."""
    if name in ("p", "q", "root", "sizes"):
        return size
    if isinstance(size, list):
        return [_larger(name, n, times) for n in size]
    return times * size


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
    """What is simulated: the collective, its sizes in bytes, the machine."""
    sizes = ", ".join(f"{name} = {size}" for name, size in made.sizes.items())
    where = f"on {Path(machine).stem}" if machine else "2 µs and 12 GB/s"
    head = f"{made.collective}, {made.algorithm}"
    full = f"{head}: {sizes} bytes; {where}"
    return full if len(full) < 85 else f"{head}; {where}"


def timeline(made: Schedule, name: str | None) -> Timeline:
    """When each rank does what, with every message."""
    return made.simulate(placed(machine(name), made), record=True)
