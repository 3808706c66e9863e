"""The report on Silva and Silva 1999: patterns, times of processes, differences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import silva1999_figures as figures
from .output import save, table, text, write_csv, write_report
from .silva1999 import (
    PAPER_PROCESSES,
    TABLE1_INSIDE_MICROSECONDS,
    TABLE1_MICROSECONDS,
    ProcessTimes,
    patterns,
    simulated,
)


def _row(label: str, seconds: Sequence[float]) -> Sequence[str]:
    return label, *(f"{1e3 * x:.1f}" for x in (*seconds, sum(seconds) / len(seconds)))


def _largest(process_times: Sequence[ProcessTimes], operation: str) -> str:
    """A table of the times of each process, and the mean, at the largest size."""
    rows: list[Sequence[str]] = []
    if operation == "reduce_scatter":
        rows += [_row("the paper, between", [1e-6 * x for x in TABLE1_MICROSECONDS])]
        mean = f"{1e-3 * TABLE1_INSIDE_MICROSECONDS:.1f}"
        rows += [("the paper, inside", *[""] * PAPER_PROCESSES, mean)]
        rows += [_row(x.label, x.seconds) for x in simulated()]
    operation_times = [x for x in process_times if x.operation == operation]
    largest = max(x.nbytes for x in operation_times)
    rows += [_row(x.label, x.seconds) for x in operation_times if x.nbytes == largest]
    head = "", *map(str, range(PAPER_PROCESSES)), "mean"
    return table("l" + "r" * (PAPER_PROCESSES + 1), head, rows)


def _compared(process_times: Sequence[ProcessTimes]) -> str:
    """A table of times between two groups, as multiples of times inside a group."""
    inside, between = simulated()
    paper = (
        sum(TABLE1_MICROSECONDS) / len(TABLE1_MICROSECONDS) / TABLE1_INSIDE_MICROSECONDS
    )
    rows = [
        ("the paper", f"{paper:.2f}"),
        ("its algorithms, simulated", f"{between.mean / inside.mean:.2f}"),
    ]
    measured = {
        x.label: x.mean
        for x in process_times
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


def _taken(process_times: Sequence[ProcessTimes]) -> str:
    rows = (
        (x.operation, str(x.nbytes), f"`{x.taken}`")
        for x in process_times
        if x.label.endswith("isthmus")
    )
    return table("lrl", ("operation", "bytes", "isthmus took"), rows)


def reproduce(
    folder: Path, library: str, place_words: str, process_times: Sequence[ProcessTimes]
) -> Path:
    """Write figures, tables and the report into a folder; return the report's path."""
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in patterns():
        save(figures.pattern_figure(pattern), folder, pattern.name)
    save(figures.times(process_times, "reduce", place_words), folder, "figure4")
    save(figures.times(process_times, "allgather", place_words), folder, "figure5")
    write_csv(folder / "times.csv", process_times)
    words = text(
        "silva1999",
        library=library,
        where=place_words,
        table=_largest(process_times, "reduce_scatter"),
        compared=_compared(process_times),
        allgather=_largest(process_times, "allgather"),
        taken=_taken(process_times),
    )
    return write_report(folder, words)
