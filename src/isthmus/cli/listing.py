"""`isthmus list`: what there is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..schedules.registry import Algorithm, algorithms, collectives as names
from .options import Json

Words = Annotated[
    list[str] | None,
    typer.Argument(help="show only rows with all of these words"),
]


def _found(words: Sequence[str]) -> dict[str, list[Algorithm]]:
    """The algorithms of each collective in whose rows are all the words."""

    def fits(collective: str, entry: Algorithm) -> bool:
        row = f"{collective} {entry.name} {entry.idea} {entry.paper}".casefold()
        return all(word.casefold() in row for word in words)

    rows = {c: [x for x in algorithms(c) if fits(c, x)] for c in names()}
    return {c: entries for c, entries in rows.items() if entries}


def _table(found: dict[str, list[Algorithm]]) -> Table:
    """Collectives that have the same algorithms share them."""
    table = Table(box=None, pad_edge=False)
    table.add_column("algorithm", no_wrap=True)
    table.add_column("idea, and where it is from")
    for entries, shared in groupby(found, found.__getitem__):
        table.add_row()
        for collective in shared:
            table.add_row(f"[bold]{collective}[/]")
        for entry in entries:
            name = entry.name + "+…" * entry.staged
            table.add_row(f"  {name}", f"{entry.idea}\n[dim]{entry.paper}[/]")
    return table


def list_(words: Words = None, as_json: Json = False) -> None:
    """List the algorithms of every collective, with idea and paper.

    With words, only the algorithms whose row has all of them.
    """
    found = _found(words or ())
    if as_json:
        rows = [
            {
                "collective": collective,
                "algorithm": entry.name,
                "idea": entry.idea,
                "paper": entry.paper,
                "staged": entry.staged,
            }
            for collective, entries in found.items()
            for entry in entries
        ]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    if not found:
        raise ValueError(f"no algorithm has to do with {' '.join(words or ())!r}")
    console = Console()
    console.print(_table(found))
    if any(entry.staged for entries in found.values() for entry in entries):
        console.print(
            "\n+…: ends with an allgatherv, which may be named: segmented+ring",
            highlight=False,
        )
