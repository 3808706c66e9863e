"""The report on Moody, Ahn, de Supinski 2011: figures, counts, and what differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from . import moody2011_figures as figures
from .moody2011 import (
    BIG,
    ENTRY,
    FEW,
    MILLION,
    SMALL,
    Memory,
    Point,
    figure_jobs,
    machine,
    measured,
    memory,
    memory_jobs,
    million_jobs,
    point,
    varied_jobs,
)
from .moody2011_claims import LABELS, Claim, Ratio, as_assumed, claims, ratios
from .output import Progress, Task, in_parallel, save, write_csv

TEXT = """# Moody, Ahn, de Supinski 2011, simulated

Made by `isthmus reproduce moody2011` from the algorithms of `isthmus.split`, which run
in lanes, an array element for every process. The paper: Adam Moody, Dong H. Ahn and
Bronis R. de Supinski, *Exascale Algorithms for Generalized MPI_Comm_split*, EuroMPI
2011. It prints ratios, but no times, no keys and no numbers of groups or bins.

Assumed: the machines `dawn-like` ({alpha}, {rate}) and `sierra-like`, one port for each
process; {entry} to compare and move an entry of a table; random keys of 32 bits; {few}
groups or N/2, at random; 16 bins; eight bytes for a number or an address. None of this
was measured.

## Time against processes

![Figure 3](figure3.png)
Figure 3: reordering without a split.

![Figure 4](figure4.png)
Figure 4: a split without reordering. Solid: 5 characters, dashed: 80.

![Figure 5](figure5.png)
Figure 5: a split with reordering.

## The paper's ratios

How many times slower the first is than the second; "serial sorts" and "Cheng" are the
fastest of theirs. "Agrees" is within a quarter of the paper's number. The last columns
are with half and twice the start-up time, and without local work.

{ratios}

## The paper's words

{claims}

## Rounds, messages and bytes

![Counts](counts.png)
Rounds and what processes send, against processes. With {big} processes:

{counts}

## Memory

The most bytes that a process held at a time: both ends of the chain and three others.

![Memory](memory.png)

{memory}

## A million processes

Simulated in so many seconds of one core, with so much memory at most.

{million}
"""


def simulate(progress: Progress) -> tuple[list[Point], list[Memory]]:
    """All points of the figures, memory, and a million processes."""
    few: list[Task] = [(point, job) for job in (*figure_jobs(), *varied_jobs())]
    few += [(memory, job) for job in memory_jobs()]
    many: list[Task] = [(measured, job) for job in million_jobs()]
    total = len(few) + len(many)
    progress(0, total)
    found = in_parallel(few, lambda done, _: progress(done, total))
    found += in_parallel(many, lambda done, _: progress(len(few) + done, total), True)
    points = [x for x in found if isinstance(x, Point)]
    weighed = [x for x in found if isinstance(x, Memory)]
    return sorted(points, key=_order), sorted(weighed, key=_weighed_order)


def _order(p: Point) -> tuple[object, ...]:
    where = p.machine, p.startup, p.bins, p.n, p.figure, p.groups, p.length, -p.bits
    return *where, list(LABELS).index(p.algorithm)


def _weighed_order(m: Memory) -> tuple[object, ...]:
    return m.groups > 0, m.groups > FEW, list(LABELS).index(m.algorithm), m.n


def spaced(number: float) -> str:
    """A whole number, with a space between thousands."""
    return f"{number:,.0f}".replace(",", " ")


def _table(head: str, align: str, rows: Iterator[str]) -> str:
    """A table of Markdown; `align` has a letter for every column, l or r."""
    line = "|" + "".join({"l": "---|", "r": "---:|"}[x] for x in align)
    return "\n".join([f"| {head} |", line, *(f"| {row} |" for row in rows)])


def _yes(so: bool) -> str:
    return "yes" if so else "no"


def _ratios(rows: Sequence[Ratio]) -> str:
    return _table(
        "setting | paper | here | agrees | start-ups halved | doubled | messages alone",
        "lrrlrrr",
        (
            f"{r.what} | {r.paper} | **{r.here:.3g}** | {_yes(r.agrees)} | "
            f"{r.halved:.3g} | {r.doubled:.3g} | {r.messages:.3g}"
            for r in rows
        ),
    )


def _claims(rows: Sequence[Claim]) -> str:
    return _table(
        "the paper | here | holds",
        "lll",
        (f"{c.paper} | {c.here} | {_yes(c.holds)}" for c in rows),
    )


def _what(p: Point) -> str:
    if p.figure == 3:
        return f"reorder, {p.bits} bits"
    kind = "split" if p.figure == 4 else "split and reorder"
    return f"{kind}, {spaced(p.groups)} groups, {p.length} characters"


def _counts(points: Sequence[Point]) -> str:
    return _table(
        "what | algorithm | rounds | messages | bytes | most bytes of one "
        "| ms: messages | ms: local work",
        "llrrrrrr",
        (
            f"{_what(p)} | {LABELS[p.algorithm]} | {p.rounds} | {spaced(p.messages)} | "
            f"{spaced(p.bytes)} | {spaced(p.busiest)} | {1e3 * p.network:.3g} | "
            f"{1e3 * p.work:.3g}"
            for p in points
        ),
    )


def _memory(weighed: Sequence[Memory]) -> str:
    sizes = sorted({m.n for m in weighed})
    peaks: dict[tuple[str, str], dict[int, int]] = {}
    for m in weighed:
        kinds = ["reorder"] if not m.groups else []
        kinds += [f"split, {FEW} groups"] if m.groups == FEW else []
        kinds += ["split, N/2 groups"] if m.groups == m.n // 2 else []
        for kind in kinds:
            peaks.setdefault((kind, m.algorithm), {})[m.n] = m.peak
    return _table(
        "what | algorithm | " + " | ".join(f"{n} processes" for n in sizes),
        "ll" + "r" * len(sizes),
        (
            f"{kind} | {LABELS[name]} | "
            + " | ".join(spaced(row[n]) if n in row else "" for n in sizes)
            for (kind, name), row in sorted(peaks.items(), key=lambda x: x[0][0])
        ),
    )


def _million(points: Sequence[Point]) -> str:
    return _table(
        "what | algorithm | rounds | messages | most bytes of one | ms in the model "
        "| simulated in | memory",
        "llrrrrrr",
        (
            f"{_what(p)} | {LABELS[p.algorithm]} | {p.rounds} | {spaced(p.messages)} | "
            f"{spaced(p.busiest)} | {1e3 * p.seconds:.3g} | {p.took:.0f} s | "
            f"{p.resident / 2**30:.2f} GiB"
            for p in points
        ),
    )


def reproduce(folder: Path, progress: Progress) -> Path:
    """Write figures, tables and the report into a folder; give the report's path."""
    folder.mkdir(parents=True, exist_ok=True)
    return write(folder, *simulate(progress))


def write(
    folder: Path,
    points: Sequence[Point],
    weighed: Sequence[Memory],
    small: int = SMALL,
    big: int = BIG,
) -> Path:
    """The report on points that were simulated."""
    paper = [p for p in points if p.n != MILLION]
    assumed = as_assumed(paper)
    write_csv(folder / "points.csv", points)
    write_csv(folder / "memory.csv", weighed)
    write_csv(folder / "ratios.csv", ratios(paper, small, big))
    save(figures.reorder([p for p in paper if p.startup == 1.0]), folder, "figure3")
    save(figures.splits(assumed, 4), folder, "figure4")
    save(figures.splits(assumed, 5), folder, "figure5")
    save(figures.counts(assumed), folder, "counts")
    save(figures.memory(weighed), folder, "memory")
    report = folder / "report.md"
    report.write_text(text(points, weighed, small, big), encoding="utf-8")
    return report


def text(
    points: Sequence[Point],
    weighed: Sequence[Memory],
    small: int = SMALL,
    big: int = BIG,
) -> str:
    """The words of the report, with tables and numbers in their places."""
    paper = [p for p in points if p.n != MILLION]
    model = machine()
    return TEXT.format(
        alpha=f"{1e6 * model.alpha:g} µs",
        rate=f"{1e-6 / model.beta:.0f} MB/s",
        entry=f"{1e6 * ENTRY:g} µs",
        few=FEW,
        big=spaced(big),
        ratios=_ratios(ratios(paper, small, big)),
        claims=_claims(claims(paper, small, big)),
        counts=_counts([p for p in as_assumed(paper) if p.n == big]),
        memory=_memory(weighed),
        million=_million([p for p in points if p.n == MILLION]),
    )
