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
from .terminal import Steps

Most = Annotated[
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
    wrong = {(of, resolve(of, name)[0].name) for of, name in total.failures}
    for (of, name), n in total.cases.items():
        cases[of, resolve(of, name)[0].name] += n
    return [(*key, n, key not in wrong) for key, n in cases.items()]


def _table(total: sweep.Tally) -> Table:
    table = Table("collective", "algorithm", box=None, pad_edge=False)
    table.add_column("cases", justify="right")
    table.add_column("result")
    for collective, algorithm, n, right in _rows(total):
        result = "[green]right[/]" if right else "[bold red]wrong[/]"
        table.add_row(described(collective), algorithm, str(n), result)
    return table


def _json(total: sweep.Tally) -> str:
    names = "algorithm", "cases", "right"
    rows = [
        _collective(of) | dict(zip(names, rest, strict=True))
        for of, *rest in _rows(total)
    ]
    failures = [
        _collective(of) | {"algorithm": name, "failure": words}
        for (of, name), words in total.failures.items()
    ]
    return json.dumps({"algorithms": rows, "failures": failures}, indent=2)


def _collective(of: str) -> dict[str, Any]:
    """A collective for programs, as in isthmus list --json."""
    return {"collective": mpi_name(of), "groups": WHERE[number_of_groups(of)]}


def check(
    max_: Most = 12,
    placements: Placements = 3,
    seed: Seed = 0,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Verify every algorithm on all small group sizes, without MPI.

    Algorithms that share the memory of nodes are verified on placements too: on every
    one of up to --placements ranks and one more in all; of two groups of up to
    --placements each, on all up to the order of ranks in a group; of larger groups, on
    random ones. The exit status is 1 if an algorithm is wrong.
    """
    console = Console(stderr=as_json)
    with Steps(console, many=True) as steps:
        steps("choosing cases", 0.0)
        found = list(sweep.cases(max_, seed, placements))
        total, done = sweep.Tally(), 0
        for tally in sweep.sweep(found, jobs or 0):
            total += tally
            done += tally.cases.total() + tally.declined.total()
            steps(f"{done} of {len(found)} cases", done / len(found))
    if as_json:
        print(_json(total))
        raise typer.Exit(1 if total.failures else 0)
    console.print(_table(total))
    for (collective, algorithm), failure in total.failures.items():
        title = f"[bold red]{described(collective)}, {algorithm}[/]"
        console.print(f"{title}: {escape(failure)}", highlight=False)
    never = [
        f"{described(of)} {name}"
        for of, name in total.declined
        if (of, name) not in total.cases
    ]
    if never:
        console.print(f"does not go together: {', '.join(never)}", style="dim")
    wrong = len(total.failures)
    verdict = f"[bold red]{wrong} wrong[/]" if wrong else "[green]all right[/]"
    words = f"{total.cases.total()} cases, groups of up to {max_} ranks, "
    words += f"{sweep.placements_in(found)} placements on nodes"
    console.print(f"{words}: {verdict}", highlight=False)
    if wrong:
        raise typer.Exit(1)
