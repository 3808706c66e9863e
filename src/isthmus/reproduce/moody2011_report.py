"""The report on Moody, Ahn, de Supinski 2011: figures, counts, and differences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import moody2011_figures as figures
from .moody2011 import (
    DAWN,
    FEW_GROUPS,
    MAX_PROCESSES,
    MILLION,
    MIN_PROCESSES,
    SECONDS_PER_ENTRY,
    SIERRA,
    PeakMemory,
    SplitPoint,
    figure_jobs,
    jobs_by_run,
    machine,
    measured,
    memory,
    memory_jobs,
    million_jobs,
    points,
    varied_jobs,
)
from .moody2011_claims import SORT_LABELS, Claim, Ratio, as_assumed, claims, ratios
from .output import (
    Progress,
    Task,
    in_parallel,
    save,
    table,
    text,
    write_csv,
    write_report,
)
from .unfinished import Unfinished


def simulate(
    progress: Progress, unfinished: Unfinished | None = None
) -> tuple[list[SplitPoint], list[PeakMemory]]:
    """All points of the figures, memory, and a million processes."""
    jobs = jobs_by_run((*figure_jobs(), *varied_jobs()))
    tasks: list[Task] = [(points, run_jobs) for run_jobs in jobs]
    tasks += [(memory, job) for job in memory_jobs()]
    million_tasks: list[Task] = [(measured, job) for job in million_jobs()]
    total = len(tasks) + len(million_tasks)

    def report(done: int) -> None:
        progress(done, total, done / total)

    report(0)
    results = in_parallel(tasks, lambda done, *_: report(done), unfinished=unfinished)
    results += in_parallel(
        million_tasks,
        lambda done, *_: report(len(tasks) + done),
        fresh_processes=True,
        unfinished=unfinished,
    )
    flat_results = [
        x
        for result in results
        for x in (result if isinstance(result, list) else [result])
    ]
    simulated = [x for x in flat_results if isinstance(x, SplitPoint)]
    weighed = [x for x in flat_results if isinstance(x, PeakMemory)]
    return sorted(simulated, key=_order), sorted(weighed, key=_weighed_order)


def _order(p: SplitPoint) -> tuple[object, ...]:
    place = p.machine, p.startup, p.bins, p.n, p.figure, p.groups, p.length, -p.bits
    return *place, list(SORT_LABELS).index(p.algorithm)


def _weighed_order(m: PeakMemory) -> tuple[object, ...]:
    return (
        m.groups > 0,
        m.groups > FEW_GROUPS,
        list(SORT_LABELS).index(m.algorithm),
        m.n,
    )


def spaced(number: float) -> str:
    """A whole number, with a space between thousands."""
    return f"{number:,.0f}".replace(",", " ")


def _yes_or_no(holds: bool) -> str:
    return "yes" if holds else "no"


def _ratios(rows: Sequence[Ratio]) -> str:
    head = "setting", "paper", "here", "agrees", "start-ups halved", "doubled"
    return table(
        "lrrlrrr",
        (*head, "messages alone"),
        (
            (
                *(r.what, r.paper, f"**{r.here:.3g}**", _yes_or_no(r.agrees)),
                *(f"{x:.3g}" for x in (r.halved, r.doubled, r.messages)),
            )
            for r in rows
        ),
    )


def _claims(rows: Sequence[Claim]) -> str:
    cells = ((c.paper, c.here, _yes_or_no(c.holds)) for c in rows)
    return table("lll", ("the paper", "here", "holds"), cells)


def _split_words(p: SplitPoint) -> str:
    if p.figure == 3:
        return f"reorder, {p.bits} bits"
    kind = "split" if p.figure == 4 else "split and reorder"
    return f"{kind}, {spaced(p.groups)} groups, {p.length} characters"


def _counts(points: Sequence[SplitPoint]) -> str:
    head = "what", "algorithm", "rounds", "messages", "bytes", "most bytes of one"
    return table(
        "llrrrrrr",
        (*head, "ms: messages", "ms: local work"),
        (
            (
                *(_split_words(p), SORT_LABELS[p.algorithm], str(p.rounds)),
                *map(spaced, (p.messages, p.bytes, p.busiest)),
                *(f"{1e3 * x:.3g}" for x in (p.network, p.work)),
            )
            for p in points
        ),
    )


def _memory(weighed: Sequence[PeakMemory]) -> str:
    sizes = sorted({m.n for m in weighed})
    peaks: dict[tuple[str, str], dict[int, int]] = {}
    for m in weighed:
        kinds = ["reorder"] if not m.groups else []
        kinds += [f"split, {FEW_GROUPS} groups"] if m.groups == FEW_GROUPS else []
        kinds += ["split, N/2 groups"] if m.groups == m.n // 2 else []
        for kind in kinds:
            peaks.setdefault((kind, m.algorithm), {})[m.n] = m.peak
    return table(
        "ll" + "r" * len(sizes),
        ("what", "algorithm", *(f"{n} processes" for n in sizes)),
        (
            (
                kind,
                SORT_LABELS[name],
                *(spaced(row[n]) if n in row else "" for n in sizes),
            )
            for (kind, name), row in sorted(peaks.items(), key=lambda x: x[0][0])
        ),
    )


def _million(points: Sequence[SplitPoint]) -> str:
    head = "what", "algorithm", "rounds", "messages", "most bytes of one"
    return table(
        "llrrrrrr",
        (*head, "ms in the model", "simulated in", "memory"),
        (
            (
                *(_split_words(p), SORT_LABELS[p.algorithm], str(p.rounds)),
                *map(spaced, (p.messages, p.busiest)),
                *(f"{1e3 * p.seconds:.3g}", f"{p.took:.0f} s"),
                f"{p.resident / 2**30:.2f} GiB",
            )
            for p in points
        ),
    )


def reproduce(folder: Path, progress: Progress) -> Path:
    """Write figures, tables and the report into a folder; return the report's path."""
    unfinished = Unfinished(folder)
    points_and_memory = simulate(progress, unfinished)
    folder.mkdir(exist_ok=True)
    report = write(folder, *points_and_memory)
    unfinished.remove()
    return report


def write(
    folder: Path,
    points: Sequence[SplitPoint],
    weighed: Sequence[PeakMemory],
    small: int = MIN_PROCESSES,
    big: int = MAX_PROCESSES,
) -> Path:
    """Write the report on simulated points; return its path."""
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
    return write_report(folder, words(points, weighed, small, big))


def words(
    points: Sequence[SplitPoint],
    weighed: Sequence[PeakMemory],
    small: int = MIN_PROCESSES,
    big: int = MAX_PROCESSES,
) -> str:
    """The words of the report, with tables and numbers in their places."""
    paper = [p for p in points if p.n != MILLION]
    model = machine()
    return text(
        "moody2011",
        alpha=f"{1e6 * model.alpha:g} µs",
        rate=f"{1e-6 / model.beta:.0f} MB/s",
        entry=f"{1e6 * SECONDS_PER_ENTRY[DAWN]:g} µs",
        sierra_entry=f"{1e6 * SECONDS_PER_ENTRY[SIERRA]:g} µs",
        few=str(FEW_GROUPS),
        big=spaced(big),
        ratios=_ratios(ratios(paper, small, big)),
        claims=_claims(claims(paper, small, big)),
        counts=_counts([p for p in as_assumed(paper) if p.n == big]),
        memory=_memory(weighed),
        million=_million([p for p in points if p.n == MILLION]),
    )
