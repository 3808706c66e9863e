"""`isthmus check`: is every algorithm right?"""

from __future__ import annotations

import json
from collections import Counter
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..check import sweep
from ..schedules.names import WHERE, described, mpi_name, number_of_groups
from ..schedules.registry import resolve
from .options import Json
from .terminal import ProgressDisplay

MaxRanks = Annotated[
    int, typer.Option("--max", min=1, metavar="N", help="largest group, in ranks")
]
Seed = Annotated[
    int, typer.Option(metavar="N", help="seed of the random counts and placements")
]
Placements = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="largest group, in ranks, of which all placements on nodes are tried",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "-j",
        "--jobs",
        min=1,
        metavar="N",
        help="processes to use [default: one per core, up to 8]",
    ),
]


def _rows(total: sweep.Tally) -> list[tuple[str, str, int, bool]]:
    """Each algorithm, with any options and stage: its cases, and if all are right."""
    cases: Counter[tuple[str, str]] = Counter()
    wrong_algorithms = {
        (collective, resolve(collective, name)[0].name)
        for collective, name in total.failures
    }
    for (collective, name), case_count in total.cases.items():
        cases[collective, resolve(collective, name)[0].name] += case_count
    return [(*key, n, key not in wrong_algorithms) for key, n in cases.items()]


def _table(total: sweep.Tally) -> Table:
    table = Table("collective", "algorithm", box=None, pad_edge=False)
    table.add_column("cases", justify="right")
    table.add_column("result")
    for collective, algorithm, case_count, is_right in _rows(total):
        result = "[green]right[/]" if is_right else "[bold red]wrong[/]"
        table.add_row(described(collective), algorithm, str(case_count), result)
    return table


def _json(total: sweep.Tally) -> str:
    names = "algorithm", "cases", "right"
    rows = [
        _collective_fields(collective) | dict(zip(names, row, strict=True))
        for collective, *row in _rows(total)
    ]
    failures = [
        _collective_fields(collective) | {"algorithm": name, "failure": words}
        for (collective, name), words in total.failures.items()
    ]
    return json.dumps({"algorithms": rows, "failures": failures}, indent=2)


def _collective_fields(collective: str) -> dict[str, Any]:
    """A collective for programs, as in isthmus list --json."""
    return {
        "collective": mpi_name(collective),
        "groups": WHERE[number_of_groups(collective)],
    }


def check(
    max_: MaxRanks = 12,
    placements: Placements = 3,
    seed: Seed = 0,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Verify every algorithm on all small group sizes, without MPI.

    Algorithms that share the memory of nodes are verified on placements too: on all
    placements of up to --placements ranks and one more in all; of two groups of up to
    --placements each, on all up to the order of ranks in a group; of larger groups, on
    random ones. The exit status is 1 if an algorithm is wrong.
    """
    console = Console(stderr=as_json)
    with ProgressDisplay(console, has_many_steps=True) as progress:
        progress("choosing cases", 0.0)
        cases = list(sweep.cases(max_, seed, placements))
        total, done = sweep.Tally(), 0
        for tally in sweep.sweep(cases, jobs or 0):
            total += tally
            done += tally.cases.total() + tally.declined.total()
            progress(f"{done} of {len(cases)} cases", done / len(cases))
    if as_json:
        print(_json(total))
        raise typer.Exit(1 if total.failures else 0)
    console.print(_table(total))
    for (collective, algorithm), failure in total.failures.items():
        title = f"[bold red]{described(collective)}, {algorithm}[/]"
        console.print(f"{title}: {escape(failure)}", highlight=False)
    never_verified = [
        f"{described(collective)} {name}"
        for collective, name in total.declined
        if (collective, name) not in total.cases
    ]
    if never_verified:
        console.print(f"does not go together: {', '.join(never_verified)}", style="dim")
    wrong_count = len(total.failures)
    verdict = "[green]all right[/]"
    if wrong_count:
        verdict = f"[bold red]{wrong_count} wrong[/]"
    words = f"{total.cases.total()} cases, groups of up to {max_} ranks, "
    words += f"{sweep.placements_in(cases)} placements on nodes"
    console.print(f"{words}: {verdict}", highlight=False)
    if wrong_count:
        raise typer.Exit(1)
