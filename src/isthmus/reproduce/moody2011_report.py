"""The report on Moody, Ahn, de Supinski 2011: figures, counts, and what differs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import moody2011_figures as figures
from .moody2011 import (
    FEW_GROUPS,
    MAX_PROCESSES,
    MILLION,
    MIN_PROCESSES,
    SECONDS_PER_ENTRY,
    PeakMemory,
    SplitPoint,
    figure_jobs,
    machine,
    measured,
    memory,
    memory_jobs,
    million_jobs,
    points,
    together,
    varied_jobs,
)
from .moody2011_claims import LABELS, Claim, Ratio, as_assumed, claims, ratios
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
    progress: Progress, kept: Unfinished | None = None
) -> tuple[list[SplitPoint], list[PeakMemory]]:
    """All points of the figures, memory, and a million processes."""
    jobs = together((*figure_jobs(), *varied_jobs()))
    few: list[Task] = [(points, some) for some in jobs]
    few += [(memory, job) for job in memory_jobs()]
    many: list[Task] = [(measured, job) for job in million_jobs()]
    total = len(few) + len(many)

    def tell(done: int) -> None:
        progress(done, total, done / total)

    tell(0)
    found = in_parallel(few, lambda done, *_: tell(done), kept=kept)
    found += in_parallel(many, lambda done, *_: tell(len(few) + done), True, kept)
    every = [x for one in found for x in (one if isinstance(one, list) else [one])]
    simulated = [x for x in every if isinstance(x, SplitPoint)]
    weighed = [x for x in every if isinstance(x, PeakMemory)]
    return sorted(simulated, key=_order), sorted(weighed, key=_weighed_order)


def _order(p: SplitPoint) -> tuple[object, ...]:
    where = p.machine, p.startup, p.bins, p.n, p.figure, p.groups, p.length, -p.bits
    return *where, list(LABELS).index(p.algorithm)


def _weighed_order(m: PeakMemory) -> tuple[object, ...]:
    return m.groups > 0, m.groups > FEW_GROUPS, list(LABELS).index(m.algorithm), m.n


def spaced(number: float) -> str:
    """A whole number, with a space between thousands."""
    return f"{number:,.0f}".replace(",", " ")


def _yes(so: bool) -> str:
    return "yes" if so else "no"


def _ratios(rows: Sequence[Ratio]) -> str:
    head = "setting", "paper", "here", "agrees", "start-ups halved", "doubled"
    return table(
        "lrrlrrr",
        (*head, "messages alone"),
        (
            (
                *(r.what, r.paper, f"**{r.here:.3g}**", _yes(r.agrees)),
                *(f"{x:.3g}" for x in (r.halved, r.doubled, r.messages)),
            )
            for r in rows
        ),
    )


def _claims(rows: Sequence[Claim]) -> str:
    cells = ((c.paper, c.here, _yes(c.holds)) for c in rows)
    return table("lll", ("the paper", "here", "holds"), cells)


def _what(p: SplitPoint) -> str:
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
                *(_what(p), LABELS[p.algorithm], str(p.rounds)),
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
            (kind, LABELS[name], *(spaced(row[n]) if n in row else "" for n in sizes))
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
                *(_what(p), LABELS[p.algorithm], str(p.rounds)),
                *map(spaced, (p.messages, p.busiest)),
                *(f"{1e3 * p.seconds:.3g}", f"{p.took:.0f} s"),
                f"{p.resident / 2**30:.2f} GiB",
            )
            for p in points
        ),
    )


def reproduce(folder: Path, progress: Progress) -> Path:
    """Write figures, tables and the report into a folder; give the report's path."""
    kept = Unfinished(folder)
    points_and_memory = simulate(progress, kept)
    folder.mkdir(exist_ok=True)
    report = write(folder, *points_and_memory)
    kept.remove()
    return report


def write(
    folder: Path,
    points: Sequence[SplitPoint],
    weighed: Sequence[PeakMemory],
    small: int = MIN_PROCESSES,
    big: int = MAX_PROCESSES,
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
        entry=f"{1e6 * SECONDS_PER_ENTRY:g} µs",
        few=str(FEW_GROUPS),
        big=spaced(big),
        ratios=_ratios(ratios(paper, small, big)),
        claims=_claims(claims(paper, small, big)),
        counts=_counts([p for p in as_assumed(paper) if p.n == big]),
        memory=_memory(weighed),
        million=_million([p for p in points if p.n == MILLION]),
    )
