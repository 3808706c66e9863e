"""`isthmus list`: all algorithms, with idea and paper."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..schedules.names import WHERE, described, mpi_name, number_of_groups
from ..schedules.registry import Algorithm, algorithms, collectives as names
from ..spelling import unknown
from .options import Json

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="WORD…", help="show only rows with all of these words"),
]


def _matching_algorithms(words: Sequence[str]) -> dict[str, list[Algorithm]]:
    """The algorithms of each collective in whose rows are all the words."""

    def fits(collective: str, entry: Algorithm) -> bool:
        heading = f"{collective} {described(collective)}"
        row = f"{heading} {entry.name} {entry.idea} {entry.paper}".casefold()
        return all(word.casefold() in row for word in words)

    by_name = sorted(names(), key=lambda c: (mpi_name(c), number_of_groups(c)))
    rows = {c: [x for x in algorithms(c) if fits(c, x)] for c in by_name}
    return {c: entries for c, entries in rows.items() if entries}


def _print(console: Console, matches: dict[str, list[Algorithm]]) -> None:
    """Print the algorithms, once for all collectives with equal lists."""
    width = max(
        len(_typed_name(entry)) for entries in matches.values() for entry in entries
    )
    for entries, collectives in groupby(matches, matches.__getitem__):
        table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(min_width=width + 2, no_wrap=True)
        table.add_column()
        for collective in collectives:
            console.print(described(collective), style="bold", highlight=False)
        for entry in entries:
            table.add_row(
                f"  {_typed_name(entry)}", f"{entry.idea}\n[dim]{entry.paper}[/]"
            )
        console.print(table)
        console.print()


def _typed_name(entry: Algorithm) -> str:
    """The name of an algorithm as users type it; a stage may follow."""
    return entry.name + "+…" * entry.staged


def _no_match_message(words: Sequence[str]) -> str:
    """The message where no row has all the words: the first word without any row, and a
    known name close to it."""
    for word in words:
        if not _matching_algorithms([word]):
            known_names = {mpi_name(c) for c in names()}
            known_names |= {entry.name for c in names() for entry in algorithms(c)}
            hint = unknown("", word, known_names).partition("; ")[2]
            suggestion = f"; {hint}" if hint.startswith("did") else ""
            return f"no algorithm has to do with {word!r}{suggestion}"
    return f"no algorithm has to do with all of {' '.join(words)!r}"


def list_(words: Words = None, as_json: Json = False) -> None:
    """List the algorithms of every collective, with idea and paper.

    With words, only the algorithms whose row has all of them.
    """
    matches = _matching_algorithms(words or ())
    if as_json:
        rows = [
            {
                "collective": mpi_name(collective),
                "groups": WHERE[number_of_groups(collective)],
                "algorithm": entry.name,
                "idea": entry.idea,
                "paper": entry.paper,
                "staged": entry.staged,
            }
            for collective, entries in matches.items()
            for entry in entries
        ]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    if not matches:
        raise ValueError(_no_match_message(words or ()))
    console = Console()
    _print(console, matches)
    if any(entry.staged for entries in matches.values() for entry in entries):
        console.print(
            "+…: ends with an allgatherv, which may be named: segmented+ring",
            highlight=False,
        )
