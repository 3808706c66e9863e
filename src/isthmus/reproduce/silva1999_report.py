"""The report on Silva and Silva 1999: patterns, times of each process, what differs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import silva1999_figures as figures
from .output import save, table, text, write_csv, write_report
from .silva1999 import (
    PAPER_PROCESSES,
    TABLE1,
    TABLE1_INSIDE,
    ProcessTimes,
    patterns,
    simulated,
)


def _row(label: str, seconds: Sequence[float]) -> Sequence[str]:
    return label, *(f"{1e3 * x:.1f}" for x in (*seconds, sum(seconds) / len(seconds)))


def _largest(found: Sequence[ProcessTimes], operation: str) -> str:
    """The largest size of an operation: the time of each process, and the mean."""
    rows: list[Sequence[str]] = []
    if operation == "reduce_scatter":
        rows += [_row("the paper, between", [1e-6 * x for x in TABLE1])]
        mean = f"{1e-3 * TABLE1_INSIDE:.1f}"
        rows += [("the paper, inside", *[""] * PAPER_PROCESSES, mean)]
        rows += [_row(made.label, made.seconds) for made in simulated()]
    some = [x for x in found if x.operation == operation]
    largest = max(x.nbytes for x in some)
    rows += [_row(x.label, x.seconds) for x in some if x.nbytes == largest]
    head = "", *map(str, range(PAPER_PROCESSES)), "mean"
    return table("l" + "r" * (PAPER_PROCESSES + 1), head, rows)


def _compared(found: Sequence[ProcessTimes]) -> str:
    """Between two groups against inside one, in the paper, simulated and measured."""
    inside, between = simulated()
    paper = sum(TABLE1) / len(TABLE1) / TABLE1_INSIDE
    rows = [
        ("the paper", f"{paper:.2f}"),
        ("its algorithms, simulated", f"{between.mean / inside.mean:.2f}"),
    ]
    measured = {
        x.label: x.mean
        for x in found
        if (x.operation, x.nbytes) == ("reduce_scatter", inside.nbytes)
    }
    base = measured.get("inside, the library")
    if base:
        rows += [
            (f"measured here: {label}, against inside, the library", f"{t / base:.2f}")
            for label, t in measured.items()
            if label.startswith("between")
        ]
    return table("lr", ("Reduce_scatter, between / inside", ""), rows)


def _taken(found: Sequence[ProcessTimes]) -> str:
    rows = (
        (x.operation, str(x.nbytes), f"`{x.taken}`")
        for x in found
        if x.label.endswith("isthmus")
    )
    return table("lrl", ("operation", "bytes", "isthmus took"), rows)


def reproduce(
    folder: Path, library: str, where: str, found: Sequence[ProcessTimes]
) -> Path:
    """Write figures, tables and the report into a folder; give the report's path."""
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in patterns():
        save(figures.pattern_figure(pattern), folder, pattern.name)
    save(figures.times(found, "reduce", where), folder, "figure4")
    save(figures.times(found, "allgather", where), folder, "figure5")
    write_csv(folder / "times.csv", found)
    made = text(
        "silva1999",
        library=library,
        where=where,
        table=_largest(found, "reduce_scatter"),
        compared=_compared(found),
        allgather=_largest(found, "allgather"),
        taken=_taken(found),
    )
    return write_report(folder, made)
