"""`isthmus bound`: how far from optimal is every algorithm of a small case?"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ..bound.demands import problem
from ..bound.distances import AlgorithmDistance, Bounds, bounds, rows
from ..bound.steps import LeastSteps, schedule_lines
from ..collectives.records import COLLECTIVES
from ..schedules.names import described
from . import simulate as sim
from .options import Json
from .sizes import NODE_OPTIONS, SizeOptions, resolve, sized

Ports = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=1,
        help="messages that a process sends, and receives, at a time",
    ),
]
Seconds = Annotated[
    float,
    typer.Option(
        metavar="SECONDS", min=0.1, help="time for each of three programs, at the most"
    ),
]


def _ratio(time: float, minimum: float | None) -> str:
    return f"{time / minimum:.2f}×" if minimum else "–"


def _number(time: float) -> str:
    return f"{time:.2f}".rstrip("0").rstrip(".")


def _table(case_bounds: Bounds, distances: list[AlgorithmDistance]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("algorithm", no_wrap=True)
    for name in ("transfer", "×bound", "whole", "×bound", "start-ups", "×bound"):
        table.add_column(name, justify="right", no_wrap=True)
    for distance in sorted(
        distances, key=lambda distance: (distance.transfer, distance.startups)
    ):
        table.add_row(
            distance.name,
            _number(distance.transfer),
            _ratio(distance.transfer, case_bounds.transfer),
            _number(distance.whole),
            _ratio(distance.whole, case_bounds.whole.steps),
            _number(distance.startups),
            _ratio(distance.startups, case_bounds.startups.steps),
        )
    return table


def _fewest_words(fewest: LeastSteps) -> str:
    return str(fewest.steps) if fewest.exact else f"at least {fewest.steps}"


def _bounds_line(case_bounds: Bounds) -> str:
    transfer = "not found"
    if case_bounds.transfer is not None:
        transfer = _number(case_bounds.transfer)
    return (
        f"bound: transfer {transfer} elements; {_fewest_words(case_bounds.whole)} if "
        f"elements stay whole; start-ups {_fewest_words(case_bounds.startups)}"
    )


def _names(record_name: str, sizes: dict[str, Any]) -> list[str]:
    """The ranks as named in pictures: a0, a1, b0, …"""
    ranks = COLLECTIVES[record_name].ranks(sizes)
    if len(ranks) == 1:
        return [str(i) for i in range(ranks[0])]
    return [f"{'abcdefghijkl'[g]}{i}" for g, n in enumerate(ranks) for i in range(n)]


def _schedules(case_bounds: Bounds, names: list[str], backwards: bool) -> list[str]:
    """The lines of the schedules that reach the bounds, step by step."""
    lines = []
    for property_words, steps in (
        ("with whole elements", case_bounds.whole),
        ("with the fewest start-ups", case_bounds.startups),
    ):
        if steps.moves is None:
            reason = "an algorithm takes as few" if steps.exact else "not found"
            lines += ["", f"A schedule {property_words}: {reason}."]
            continue
        lines += [
            "",
            f"A schedule {property_words}:",
            *schedule_lines(steps, names.__getitem__),
        ]
    if backwards:
        lines += ["", "This is the broadcast; backwards, with sums, the reduction."]
    return lines


@sized
def bound(
    *,
    collective: sim.Collective,
    size_options: SizeOptions,
    ports: Ports = 1,
    seconds: Seconds = 15.0,
    show: Annotated[
        bool, typer.Option("--show", help="print the schedules that were found")
    ] = False,
    as_json: Json = False,
) -> None:
    """Find what no algorithm can beat in a small case, and how far each is.

    For up to a dozen processes. Transfer: the elements' time through the busiest port,
    if start-ups are free and data can be cut at will: a linear program. Whole: the time
    if no element can be cut, step by step: a mixed-integer program, as for the
    start-ups of messages of any length. Algorithms send one message at a time.
    """
    if any(size_options[name] is not None for name in NODE_OPTIONS):
        raise ValueError("a bound is for processes that share no node")
    record_name, sizes = resolve(collective, [], size_options, factor=1)
    demands = problem(record_name, **sizes)
    distances = list(rows(record_name, sizes))
    case_bounds = bounds(record_name, sizes, distances, ports, seconds)
    if as_json:
        print(
            json.dumps(
                {**asdict(case_bounds), "algorithms": list(map(asdict, distances))}
            )
        )
        return
    console = Console()
    title = ", ".join(f"{name} = {size}" for name, size in sizes.items())
    ports_words = f", {ports} ports" if ports > 1 else ""
    console.print(
        f"{described(record_name)}: {title}{ports_words}", style="bold", highlight=False
    )
    console.print(_table(case_bounds, distances), highlight=False)
    console.print(_bounds_line(case_bounds), highlight=False)
    if show:
        for line in _schedules(
            case_bounds, _names(record_name, sizes), demands.reversed
        ):
            console.print(line, highlight=False, markup=False)
