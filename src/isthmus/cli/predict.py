"""`isthmus predict`: the cost of an exchange, before any run."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import accumulate
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..choose.choice import LIBRARY_NAME
from ..collectives.collective import BETWEEN, INSIDE, VECTOR, Collective
from ..collectives.records import operations, record_of
from ..cost.placement import on_nodes
from ..predict.case import Case
from ..predict.predict import (
    LIBRARY_ALGORITHM,
    Answer,
    answer,
    candidates,
    rows,
)
from ..schedules.names import mpi_name
from ..spelling import unknown
from ..units import show_bytes, show_time
from . import simulate as sim
from .options import note, one_or_two_groups
from .sizes import GROUPS_HELP, PerNode, bytes_of_groups_with_commas, has_one_root
from .terminal import ProgressDisplay

#: sends and receives of all algorithms together; simulated in about ten seconds
MAX_SIMULATED_ENDS = 10_000_000
#: processes of both groups together
MAX_GROUPS_PROCESSES = 1 << 16


def _case(
    collective: str, groups: str, bytes_: str, distribution: str, per_node: int
) -> Case:
    """The case of the options; inside one group or between two."""
    sizes = one_or_two_groups(groups)
    if sum(sizes) > MAX_GROUPS_PROCESSES:
        raise ValueError(
            f"--groups {groups}: {MAX_GROUPS_PROCESSES} processes are the most"
        )
    block_bytes = bytes_of_groups_with_commas(bytes_, len(sizes))
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
    if has_one_root(record):
        sizes, block_bytes = (1, sizes[-1]), block_bytes[-1:]
    if record.gives == VECTOR and len(set(block_bytes)) > 1:
        raise ValueError(f"--bytes {bytes_}: the vectors of a sum are of one size")
    return Case(record.name, sizes, tuple(block_bytes), distribution, per_node)


def predicted() -> list[str]:
    """The operations whose sizes follow from the bytes of each process."""
    return [x.lower() for x in operations(BETWEEN) if _record(x, BETWEEN).of_bytes]


def _record(operation: str, groups: int) -> Collective:
    """The collective of an operation.

    Reduce_scatter_block has the record of Reduce_scatter here, since a vector of any
    number of bytes need not divide into equal blocks.
    """
    return record_of(operation.lower().removesuffix("_block"), groups)


def _table(prediction: Answer) -> Table:
    """A row for each algorithm, best first; signs, since 80 columns have no room."""
    table = Table(box=None, pad_edge=False)
    table.add_column("algorithm", no_wrap=True)
    for name in ("time", "gain", "limit", "rounds", "messages"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in prediction.rows:
        gain = f"{prediction.library / row.time:.2f}×" if prediction.library else "–"
        limit_ratio = f"{row.time / prediction.limit:.3f}×" if prediction.limit else "–"
        counts = [
            f"{n:,}" if n is not None else "–" for n in (row.rounds, row.messages)
        ]
        name = row.name + " *" * (row.name == prediction.chosen)
        time = "≈ " * row.formula + show_time(row.time)
        table.add_row(name, time, gain, limit_ratio, *counts)
    return table


def _heading(case: Case, machine: str | None) -> str:
    """A line with collective, processes, bytes and machine."""
    ranks = " + ".join(map(str, case.groups))
    block_words = " and ".join(show_bytes(k) for k in dict.fromkeys(case.each))
    if case.distribution != "regular":
        block_words += f" on average, {case.distribution}"
    elif case.record.gives != VECTOR or not case.record.is_rooted:
        block_words += " each"
    machine_words = machine or "2 µs and 12 GB/s"
    if case.per_node:
        machine_words += f", {case.per_node} a node"
    name = mpi_name(case.collective)
    return f"{name}, {ranks} processes, {block_words}, on {machine_words}"


def _notes(prediction: Answer) -> list[str]:
    """The lines that explain the columns of the table."""
    notes = []
    if prediction.limit:
        notes.append(
            f"limit: multiple of {show_time(prediction.limit)}, the least in which one "
            f"{prediction.limit_of} passes the "
            f"{show_bytes(prediction.limit_bytes)} that must enter or leave it."
        )
    if prediction.library is not None:
        notes.append(
            f"gain: over {LIBRARY_ALGORITHM}, what MPI libraries do between groups."
        )
    if prediction.chosen == LIBRARY_NAME:
        notes.append("isthmus's choice is the MPI library's own call.")
    elif len(prediction.case.groups) == 1 and prediction.chosen is not None:
        notes.append(
            f"* isthmus's choice is {prediction.chosen}, unless the MPI library's own "
            "call is faster by what is measured on the communicator."
        )
    elif prediction.chosen is not None:
        notes.append(f"* isthmus's choice is {prediction.chosen}.")
    if any(row.formula for row in prediction.rows):
        notes.append(
            "≈: too much to simulate; from the closed form, as if every message went "
            "between far processes and nobody shared a port."
        )
    return notes


def _note_of(left_out: list[str]) -> list[str]:
    """The line that names the algorithms without a row."""
    if not left_out:
        return []
    names = ", ".join(left_out)
    return [f"Too much to simulate, and without a closed form: {names}; see --most."]


def predict(
    collective: Annotated[
        str,
        typer.Argument(
            metavar="COLLECTIVE", help="as in MPI: allgather, bcast, gatherv, …"
        ),
    ],
    groups: Annotated[str, typer.Option(metavar="N,N", help=GROUPS_HELP)] = "512,128",
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
    max_ends: Annotated[
        int | None,
        typer.Option(
            "--most",
            metavar="N",
            help="ends of messages to simulate, for all algorithms together; the rest "
            f"comes from formulas [default: {MAX_SIMULATED_ENDS}]",
            min=0,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="print JSON; times are in seconds")
    ] = False,
) -> None:
    """Predict the time of every algorithm on a machine, best first.

    With one group, as in --groups 64, inside the group. Two sizes, as in --bytes
    4MiB:1MiB, are the contributions of each process of one group and of the other: a
    block, the vector of a sum, in an alltoall the block for each other process. A
    bcast, reduce, gather or scatter between groups is between one process of the first
    group and all of the second. With --per-node, processes share the port and the
    memory of their node, and algorithms that use the node's memory are among the
    candidates.
    """
    case = _case(collective, groups, bytes_, distribution, per_node or 0)
    model = sim.machine(machine)
    if case.per_node:
        model = on_nodes(model, case.nodes)
    # Otherwise the bar would be printed into the JSON that a program reads.
    console = Console(stderr=as_json)
    max_ends = MAX_SIMULATED_ENDS if max_ends is None else max_ends
    with ProgressDisplay(console, has_many_steps=True) as progress:
        progress("weighing the algorithms", 0.0)
        weights, predictions = candidates(case, model, max_ends), []
        simulated = [x for x in accumulate(weights.values()) if x <= max_ends]
        for row in rows(case, model, max_ends, weights):
            predictions.append(row)
            # Formulas take no time, so only simulated algorithms advance the bar.
            done = 1.0
            if simulated:
                last = min(len(predictions), len(simulated)) - 1
                done = simulated[last] / (simulated[-1] or 1)
            progress(f"{len(predictions)} of {len(weights)} algorithms", done)
        prediction = answer(case, model, predictions)
    if as_json:
        parts = asdict(prediction)
        parts["case"]["collective"] = mpi_name(case.collective)
        print(json.dumps(parts, indent=2))
        return
    console.print(_heading(case, machine), style="bold", highlight=False)
    console.print(_table(prediction), highlight=False)
    console.print()
    left_out = [x for x in weights if x not in {row.name for row in prediction.rows}]
    for words in (prediction.why, *_notes(prediction), *_note_of(left_out)):
        console.print(words, highlight=False)
