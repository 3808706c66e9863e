"""The report on Silva and Silva 1999: patterns, times of each process, what differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from . import silva1999_figures as figures
from .output import save, write_csv
from .silva1999 import PROCESSES, TABLE1, TABLE1_INSIDE, Times, patterns, simulated

TEXT = """# Silva and Silva 1999, made again

Made by `isthmus reproduce silva1999`: the patterns from the schedules that are verified
and that run on MPI; the times measured, by the library's own calls, by Silva and
Silva's algorithms (`leader`) and by what isthmus takes by itself (`auto`).
*Implementing MPI-2 Extended Collective Operations*, EuroPVM/MPI 1999.

Measured with {library} on {where}.
All numbers, of each process, are in [times.csv](times.csv).

## The patterns

The number at a message is the step in which it goes, if each takes one.

![Figure 1](figure1.png)
Figure 1: Reduce. Ranks 0 and 2 of the root's group take no part.

![Figure 2](figure2.png)
Figure 2: Bcast from rank 4 of the group on the left.

![Figure 3](figure3.png)
Figure 3: Reduce_scatter. The leaders swap the receive counts in the first step, while
the others begin the sum; then each leader scatters to the other group.

## Reduce

![Figure 4](figure4.png)
Figure 4: between a root alone in its group and 7 others, against inside a group of 8.

## Reduce_scatter

Table 1: milliseconds of each process, 2 MiB, between two groups of four. The first two
rows are the paper's, at 100 Mbit/s; the third is its algorithm simulated at that rate
with a start-up of 100 µs, without the time of adding.

{table}

## Allgather

![Figure 5](figure5.png)
Figure 5: between two groups of four, against inside a group of 8.

{allgather}

## What was taken

{taken}
"""


def _row(label: str, seconds: Sequence[float]) -> str:
    cells = [f"{1e3 * x:.1f}" for x in (*seconds, sum(seconds) / len(seconds))]
    return f"| {label} | {' | '.join(cells)} |"


def table(found: Sequence[Times], operation: str) -> Iterator[str]:
    """The largest size of an operation: the time of each process, and the mean."""
    yield "| | " + " | ".join((*map(str, range(PROCESSES)), "mean")) + " |"
    yield "|---|" + "---:|" * (PROCESSES + 1)
    if operation == "reduce_scatter":
        yield _row("the paper, between", [1e-6 * x for x in TABLE1])
        inside = " | ".join([""] * PROCESSES)
        yield f"| the paper, inside | {inside} | {1e-3 * TABLE1_INSIDE:.1f} |"
        made = simulated()
        yield _row(made.label, made.seconds)
    some = [x for x in found if x.operation == operation]
    largest = max(x.nbytes for x in some)
    for x in some:
        if x.nbytes == largest:
            yield _row(x.label, x.seconds)


def _taken(found: Sequence[Times]) -> Iterator[str]:
    yield "| operation | bytes | isthmus took |"
    yield "|---|---:|---|"
    for x in found:
        if x.label.endswith("isthmus"):
            yield f"| {x.operation} | {x.nbytes} | `{x.taken}` |"


def reproduce(folder: Path, library: str, where: str, found: Sequence[Times]) -> Path:
    """Write figures, tables and the report into a folder; give the report's path."""
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in patterns():
        save(figures.pattern_figure(pattern), folder, pattern.name)
    save(figures.times(found, "reduce", where), folder, "figure4")
    save(figures.times(found, "allgather", where), folder, "figure5")
    write_csv(folder / "times.csv", found)
    text = TEXT.format(
        library=library,
        where=where,
        table="\n".join(table(found, "reduce_scatter")),
        allgather="\n".join(table(found, "allgather")),
        taken="\n".join(_taken(found)),
    )
    report = folder / "report.md"
    report.write_text(text, encoding="utf-8")
    return report
