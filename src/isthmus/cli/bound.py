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
from ..bound.steps import Fewest, shown
from ..collectives.records import COLLECTIVES
from ..schedules.names import described
from . import simulate as sim
from .options import Json
from .sizes import PLACES, Given, resolve, sized

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


def _far(time: float, least: float | None) -> str:
    return f"{time / least:.2f}×" if least else "–"


def _number(time: float) -> str:
    return f"{time:.2f}".rstrip("0").rstrip(".")


def _table(found: Bounds, known: list[AlgorithmDistance]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("algorithm", no_wrap=True)
    for name in ("transfer", "×bound", "whole", "×bound", "start-ups", "×bound"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in sorted(known, key=lambda row: (row.transfer, row.startups)):
        table.add_row(
            row.name,
            _number(row.transfer),
            _far(row.transfer, found.transfer),
            _number(row.whole),
            _far(row.whole, found.whole.steps),
            _number(row.startups),
            _far(row.startups, found.startups.steps),
        )
    return table


def _least(found: Fewest) -> str:
    return str(found.steps) if found.exact else f"at least {found.steps}"


def _words(found: Bounds) -> str:
    least = "not found" if found.transfer is None else _number(found.transfer)
    return (
        f"bound: transfer {least} elements; {_least(found.whole)} if elements stay "
        f"whole; start-ups {_least(found.startups)}"
    )


def _names(form: str, sizes: dict[str, Any]) -> list[str]:
    """The ranks as pictures name them: a0, a1, b0, …"""
    ranks = COLLECTIVES[form].ranks(sizes)
    if len(ranks) == 1:
        return [str(i) for i in range(ranks[0])]
    return [f"{'abcdefghijkl'[g]}{i}" for g, n in enumerate(ranks) for i in range(n)]


def _schedules(found: Bounds, names: list[str], backwards: bool) -> list[str]:
    """What the programs found, step by step."""
    lines = []
    for words, steps in (
        ("with whole elements", found.whole),
        ("with the fewest start-ups", found.startups),
    ):
        if steps.moves is None:
            why = "an algorithm takes as few" if steps.exact else "not found"
            lines += ["", f"A schedule {words}: {why}."]
            continue
        lines += ["", f"A schedule {words}:", *shown(steps, names.__getitem__)]
    if backwards:
        lines += ["", "This is the broadcast; backwards, with sums, the reduction."]
    return lines


@sized
def bound(
    *,
    collective: sim.Collective,
    given: Given,
    ports: Ports = 1,
    seconds: Seconds = 15.0,
    show: Annotated[
        bool, typer.Option("--show", help="print the schedules that were found")
    ] = False,
    as_json: Json = False,
) -> None:
    """Find what no algorithm can beat in a small case, and how far each is.

    For up to a dozen processes. Transfer: the elements' time through the busiest port,
    where start-ups are free and data can be cut at will: a linear program. Whole: the
    same where an element cannot be cut, step by step: a mixed-integer program, as for
    the start-ups of messages of any length. Algorithms send one message at a time.
    """
    if any(given[name] is not None for name in PLACES):
        raise ValueError("a bound is for processes that share no node")
    form, sizes = resolve(collective, [], given, times=1)
    asked = problem(form, **sizes)
    known = list(rows(form, sizes))
    found = bounds(form, sizes, known, ports, seconds)
    if as_json:
        print(json.dumps({**asdict(found), "algorithms": list(map(asdict, known))}))
        return
    console = Console()
    title = ", ".join(f"{name} = {size}" for name, size in sizes.items())
    many = f", {ports} ports" if ports > 1 else ""
    console.print(f"{described(form)}: {title}{many}", style="bold", highlight=False)
    console.print(_table(found, known), highlight=False)
    console.print(_words(found), highlight=False)
    if show:
        for line in _schedules(found, _names(form, sizes), asked.reversed):
            console.print(line, highlight=False, markup=False)
