"""`isthmus list`: what there is."""

from __future__ import annotations

from itertools import groupby

from rich.console import Console
from rich.table import Table

from ..registry import Algorithm, algorithms, collectives as names


def _table() -> Table:
    """Collectives that have the same algorithms share them."""
    table = Table(box=None, pad_edge=False)
    table.add_column("algorithm", no_wrap=True)
    table.add_column("idea, and where it is from")

    def of(collective: str) -> list[Algorithm]:
        return list(algorithms(collective))

    for entries, shared in groupby(names(), of):
        table.add_row()
        for collective in shared:
            table.add_row(f"[bold]{collective}[/]")
        for entry in entries:
            name = entry.name + "+…" * entry.staged
            table.add_row(f"  {name}", f"{entry.idea}\n[dim]{entry.paper}[/]")
    return table


def list_() -> None:
    """The collectives and their algorithms, each with its paper and its idea."""
    console = Console()
    console.print(_table())
    console.print(
        "\n+…: ends with an allgatherv, which may be named: segmented+ring",
        highlight=False,
    )
