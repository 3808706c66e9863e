"""`isthmus predict`: what an exchange would cost, before it is run."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import accumulate
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..collectives.collective import BETWEEN, INSIDE, VECTOR, Collective
from ..collectives.records import operations, record_of
from ..cost.placement import on_nodes
from ..predict.case import Case
from ..predict.predict import LIBRARY, OPAQUE, Answer, answer, candidates, rows
from ..schedules.names import mpi_name
from ..spelling import unknown
from ..units import show_bytes, show_time
from . import simulate as sim
from .options import note, one_or_two_groups
from .sizes import GROUPS, PerNode, has_one_root, in_groups
from .terminal import Steps

#: ends of messages, of all algorithms together, that are simulated in some ten seconds
MESSAGES = 10_000_000
#: processes, of both groups together
LARGEST = 1 << 16


def _case(
    collective: str, groups: str, bytes_: str, distribution: str, per_node: int
) -> Case:
    """The collective of one or two groups."""
    sizes = one_or_two_groups(groups)
    if sum(sizes) > LARGEST:
        raise ValueError(f"--groups {groups}: {LARGEST} processes are the most")
    each = in_groups(bytes_, len(sizes))
    name = mpi_name(collective)
    if name not in predicted():
        raise ValueError(unknown("collective", collective, predicted()))
    if len(sizes) == 1 and collective.startswith("inter_"):
        raise ValueError(f"{collective} is between two groups, as in --groups 512,128")
    if name != collective:
        note(f"{collective} is now {name}, with --groups {groups}")
    record = _record(name, len(sizes))
    has_counts = record.is_irregular and not record.is_rooted and not record.combines
    if distribution != "regular" and (record.groups != INSIDE or not has_counts):
        raise ValueError("--distribution is for allgatherv inside one group")
    if has_one_root(record.name):
        sizes, each = (1, sizes[1]), each[-1:]
    if record.gives == VECTOR and len(set(each)) > 1:
        raise ValueError(f"--bytes {bytes_}: the vectors of a sum are of one size")
    return Case(record.name, sizes, tuple(each), distribution, per_node)


def predicted() -> list[str]:
    """The operations whose sizes follow from the bytes of each process."""
    return [x.lower() for x in operations(BETWEEN) if _record(x, BETWEEN).of_bytes]


def _record(operation: str, groups: int) -> Collective:
    """The collective of an operation; of blocks of one size the one of any sizes, as
    the sum of any number of bytes can be cut into those."""
    return record_of(operation.lower().removesuffix("_block"), groups)


def _table(found: Answer) -> Table:
    """A row for each algorithm, best first; signs, since 80 columns have no room."""
    table = Table(box=None, pad_edge=False)
    table.add_column("algorithm", no_wrap=True)
    for name in ("time", "gain", "limit", "rounds", "messages"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in found.rows:
        gain = f"{found.library / row.time:.2f}×" if found.library else "–"
        far = f"{row.time / found.limit:.3f}×" if found.limit else "–"
        counts = [
            f"{n:,}" if n is not None else "–" for n in (row.rounds, row.messages)
        ]
        name = row.name + " *" * (row.name == found.chosen)
        time = "≈ " * row.formula + show_time(row.time)
        table.add_row(name, time, gain, far, *counts)
    return table


def _heading(case: Case, machine: str | None) -> str:
    """What was asked."""
    ranks = " + ".join(map(str, case.groups))
    each = " and ".join(show_bytes(k) for k in dict.fromkeys(case.each))
    if case.distribution != "regular":
        each += f" on average, {case.distribution}"
    elif case.record.gives != VECTOR or not case.record.is_rooted:
        each += " each"
    where = machine or "2 µs and 12 GB/s"
    if case.per_node:
        where += f", {case.per_node} a node"
    return f"{mpi_name(case.collective)}, {ranks} processes, {each}, on {where}"


def _notes(found: Answer) -> list[str]:
    """What the columns mean."""
    notes = []
    if found.limit:
        notes.append(
            f"limit: multiple of {show_time(found.limit)}, the least in which one "
            f"{found.limit_of} passes the {show_bytes(found.limit_bytes)} that must "
            "enter or leave it."
        )
    if found.library is not None:
        notes.append(f"gain: over {LIBRARY}, what MPI libraries do between groups.")
    if found.chosen == OPAQUE:
        notes.append("isthmus's choice is the MPI library's own call.")
    elif len(found.case.groups) == 1 and found.chosen is not None:
        notes.append(
            f"* isthmus's choice is {found.chosen}, unless the MPI library's own call "
            "is faster by what is measured on the communicator."
        )
    elif found.chosen is not None:
        notes.append(f"* isthmus's choice is {found.chosen}.")
    if any(row.formula for row in found.rows):
        notes.append(
            "≈: too much to simulate; from the closed form, as if every message went "
            "between far processes and nobody shared a port."
        )
    return notes


def predict(
    collective: Annotated[
        str,
        typer.Argument(
            metavar="COLLECTIVE", help="as in MPI: allgather, bcast, gatherv, …"
        ),
    ],
    groups: Annotated[str, typer.Option(metavar="N,N", help=GROUPS)] = "512,128",
    bytes_: Annotated[
        str,
        typer.Option(
            "--bytes",
            metavar="SIZE",
            help="bytes of each rank's block or vector, as in 4KiB; one for each "
            "group, as in 4KiB:1KiB",
        ),
    ] = "64KiB",
    distribution: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="how block sizes of one group differ, as in spike"
        ),
    ] = "regular",
    machine: sim.Machine = None,
    per_node: PerNode = None,
    most: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="ends of messages to simulate, for all algorithms together; the rest "
            f"comes from formulas [default: {MESSAGES}]",
            min=0,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="print JSON; times are in seconds")
    ] = False,
) -> None:
    """Predict the time of every algorithm on a machine, best first.

    With one group, as in --groups 64, inside it. Two sizes, as in --bytes 4MiB:1MiB,
    are what each process of one group and of the other contributes: a block, the vector
    of a sum, in an alltoall the block for each other process. A bcast, reduce, gather
    or scatter between groups is between one process of the first group and all of the
    second. With --per-node, processes share the port and the memory of their node, and
    algorithms that use that memory are among the others.
    """
    case = _case(collective, groups, bytes_, distribution, per_node or 0)
    model = sim.machine(machine)
    if case.per_node:
        model = on_nodes(model, case.nodes)
    # a bar must not come among what a program reads
    console = Console(stderr=as_json)
    most = MESSAGES if most is None else most
    with Steps(console, many=True) as steps:
        steps("weighing the algorithms", 0.0)
        weights, every = candidates(case, model, most), []
        simulated = [x for x in accumulate(weights.values()) if x <= most]
        for row in rows(case, model, most, weights):
            every.append(row)
            # formulas take no time
            done = simulated[min(len(every), len(simulated)) - 1] if simulated else 1
            words = f"{len(every)} of {len(weights)} algorithms"
            steps(words, done / (simulated[-1] or 1) if simulated else 1.0)
        found = answer(case, model, every)
    if as_json:
        parts = asdict(found)
        parts["case"]["collective"] = mpi_name(case.collective)
        print(json.dumps(parts, indent=2))
        return
    console.print(_heading(case, machine), style="bold", highlight=False)
    console.print(_table(found), highlight=False)
    console.print()
    for words in (found.why, *_notes(found)):
        console.print(words, highlight=False)
