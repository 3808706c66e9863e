"""`isthmus check`: is every algorithm right?"""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from ..check import sweep
from ..schedules.registry import resolve

Most = Annotated[int, typer.Option("--max", min=1, help="ranks of a group, at most")]
Seed = Annotated[int, typer.Option(help="of the random counts and placements")]
Placements = Annotated[
    int,
    typer.Option(
        min=1,
        help="ranks of a group, at most, of which all placements on nodes are tried",
    ),
]
Jobs = Annotated[int, typer.Option("-j", "--jobs", min=1, help="processes at a time")]


def _table(total: sweep.Tally) -> Table:
    """A row for each algorithm, with whatever options and stage."""
    table = Table("collective", "algorithm", box=None, pad_edge=False)
    table.add_column("cases", justify="right")
    table.add_column("result")
    cases: Counter[tuple[str, str]] = Counter()
    wrong = {(of, resolve(of, name)[0].name) for of, name in total.failures}
    for (of, name), n in total.cases.items():
        cases[of, resolve(of, name)[0].name] += n
    for key, n in cases.items():
        result = "[bold red]wrong[/]" if key in wrong else "[green]right[/]"
        table.add_row(*key, str(n), result)
    return table


def check(
    max_: Most = 12,
    placements: Placements = 3,
    seed: Seed = 0,
    jobs: Jobs | None = None,
) -> None:
    """Verify every algorithm on every pair of group sizes, without MPI.

    Those that share the memory of nodes also on every placement: of up to --placements
    ranks and one more in all, each; of two groups of up to --placements each, all up to
    the order of ranks in a group; of larger groups, random ones.
    """
    console = Console()
    found = list(sweep.cases(max_, seed, placements))
    bar = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        "left:",
        TimeRemainingColumn(),
    )
    total = sweep.Tally()
    with Progress("verifying", *bar, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(found))
        for tally in sweep.sweep(found, jobs or 0):
            total += tally
            done = tally.cases.total() + tally.declined.total()
            progress.advance(task, done)
    console.print(_table(total))
    for (collective, algorithm), failure in total.failures.items():
        title = f"[bold red]{collective} {algorithm}[/]"
        console.print(f"{title}: {escape(failure)}", highlight=False)
    never = [" ".join(key) for key in total.declined if key not in total.cases]
    if never:
        console.print(f"does not go together: {', '.join(never)}", style="dim")
    wrong = len(total.failures)
    verdict = f"[bold red]{wrong} wrong[/]" if wrong else "[green]all right[/]"
    words = f"{total.cases.total()} cases, groups of up to {max_} ranks, "
    words += f"{sweep.placements_in(found)} placements on nodes"
    console.print(f"{words}: {verdict}", highlight=False)
    if wrong:
        raise typer.Exit(1)
