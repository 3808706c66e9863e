"""The report on Träff et al. 2008: figures, numbers, and what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..distributions import SIX
from . import traff2008_figures as figures
from .output import Progress, Task, in_parallel, save, write_csv
from .traff2008 import (
    BALANCE,
    BEST,
    BOUND,
    CIRCULANT,
    FIXED,
    NODES,
    RING,
    SICORTEX,
    SYSTEMS,
    TODAY,
    Point,
    System,
    balance,
    is_the_ring,
    point,
    rules,
    size_jobs,
    time_jobs,
    ways,
)
from .traff2008_figures import brief, short
from .traff2008_text import TEXT

#: the ways of the time figures; the other points are of the block size figure
WAYS = RING, FIXED, BEST, CIRCULANT, BOUND
#: of the limit, what the better of two ways should come within on today's machine
GOAL = 1.35
#: the points of one system and total size, by distribution and way
Table = Mapping[tuple[str, str], Point]


def simulate(progress: Progress) -> list[Point]:
    """All points, in a few processes."""
    tasks: list[Task] = [(point, job) for job in time_jobs()]
    tasks += [(point, job) for job in size_jobs()]
    found: list[Point] = in_parallel(tasks, progress)
    return sorted(
        found, key=lambda p: (p.system, p.m, SIX.index(p.distribution), p.way, p.size)
    )


def _table(points: Sequence[Point], system: System) -> Table:
    """What a table shows of a system: its largest total size."""
    name, m = system.name, system.totals[-1]
    return {
        (p.distribution, p.way): p
        for p in points
        if p.system == name and p.m == m and p.way in WAYS
    }


def _multiples(points: Sequence[Point], system: System) -> Iterator[str]:
    """Every distribution's times as multiples of beta m, and the gains."""
    found, circulant = _table(points, system), ways(system)[-1]
    yield f"**{system.name}**, {system.p} processes, m = {short(system.totals[-1])}"
    yield ""
    yield (
        f"| distribution | linear ring | blocked ring, B = {short(system.size)} | gain "
        "| blocked ring, best B | gain | circulant |"
    )
    yield "|---|" + "---:|" * 6
    for name in SIX:
        ring, fixed, best, last = (
            found[name, way] for way in (RING, FIXED, BEST, circulant)
        )
        yield (
            f"| {name} | {ring.multiple:.2f} | {fixed.multiple:.2f} "
            f"| {ring.seconds / fixed.seconds:.1f} "
            f"| {best.multiple:.2f} ({short(best.size)}) "
            f"| {ring.seconds / best.seconds:.1f} "
            f"| {'≤ ' * (circulant == BOUND)}{last.multiple:.2f} |"
        )
    yield ""


def _spread_rows(points: Sequence[Point]) -> Iterator[str]:
    """How much slower than equal blocks the worst distribution is, by each way."""
    yield "| system | " + " | ".join((RING, FIXED, BEST, CIRCULANT)) + " |"
    yield "|---|" + "---:|" * 4
    for system in (*SYSTEMS, SICORTEX, *NODES, TODAY):
        found = _table(points, system)
        cells = []
        for way in ways(system):
            times = [found[name, way].seconds for name in SIX]
            cells.append("–" if way == BOUND else f"{max(times) / times[0]:.2f}")
        yield f"| {system.name}, p = {system.p} | " + " | ".join(cells) + " |"


def _assumed() -> Iterator[str]:
    """What is known of the systems, and what is assumed."""
    yield "| system | processes | fixed B | α, assumed | 1/β, assumed | file |"
    yield "|---|" + "---:|" * 4 + "---|"
    for s in (*SYSTEMS, SICORTEX):
        alpha, rate = brief(s.model.alpha), f"{1e-6 / s.model.beta:.0f} MB/s"
        row = s.name, f"{s.p}", short(s.size), alpha, rate, f"`{s.file}`"
        yield "| " + " | ".join(row) + " |"


def _rule_rows(sizes: Sequence[Point]) -> Iterator[str]:
    """Block size and time of each rule, and the least time of all sizes tried."""
    names = list(rules(SIX[0]))
    yield "| distribution | " + " | ".join(names) + " | least of all tried |"
    yield "|---|" + "---:|" * (len(names) + 1)
    for distribution in SIX:
        mine = [p for p in sizes if p.distribution == distribution]
        by_rule = {p.way: p for p in mine}
        least = min(mine, key=lambda p: p.multiple)
        cells = [by_rule.get(name) for name in names]
        words = [_cell(p) for p in (*cells, least)]
        yield f"| {distribution} | " + " | ".join(words) + " |"


def _cell(p: Point | None) -> str:
    return f"{p.multiple:.2f} ({short(p.size)})" if p else "–"


def _verdict(points: Sequence[Point]) -> str:
    """Whether the goal of today's machine is met, and by whom."""
    found = _table(points, TODAY)
    worst = max(
        min(found[name, way].multiple for way in (BEST, CIRCULANT)) for name in SIX
    )
    met = "met" if worst <= GOAL else "missed"
    m = TODAY.totals[-1]
    same = "the same" if is_the_ring(TODAY, m) else "not the same"
    return (
        f"The goal, {GOAL} βm for every distribution by the better of blocked ring and "
        f"circulant, is {met}: the worst is {worst:.2f}. For the regular distribution "
        f"the messages of the blocked ring and of the linear ring are {same}, compared "
        "one by one."
    )


def tables(points: Sequence[Point], sizes: Sequence[Point]) -> dict[str, str]:
    """The parts of the report that are numbers."""

    def all_of(systems: Sequence[System]) -> str:
        return "\n".join(line for s in systems for line in _multiples(points, s))

    return {
        "multiples": all_of([*SYSTEMS, SICORTEX]),
        "nodes": all_of(NODES),
        "today": all_of([TODAY]),
        "verdict": _verdict(points),
        "rules": "\n".join(_rule_rows(sizes)),
        "spread": "\n".join(_spread_rows(points)),
        "assumptions": "\n".join(_assumed()),
    }


def write(folder: Path, found: Sequence[Point]) -> Path:
    """Figures, tables and the report of simulated points."""
    points = [p for p in found if p.way in WAYS]
    sizes = [p for p in found if p.way not in WAYS]
    write_csv(folder / "points.csv", points)
    write_csv(folder / "sizes.csv", sizes)
    for number, system in enumerate(SYSTEMS, 1):
        save(figures.times(points, system), folder, f"figure{number}")
    picked = {name: rules(name) for name in SIX}
    save(figures.sizes(sizes, picked), folder, "figure4")
    for number, name in enumerate(BALANCE, 5):
        lines = {RING: balance(name, RING), "blocked ring": balance(name, FIXED)}
        save(figures.balance(lines, name), folder, f"figure{number}")
    for number, system in enumerate(NODES[:2], 7):
        save(figures.times(points, system), folder, f"figure{number}")
    save(figures.over_p(points), folder, "figure9")
    report = folder / "report.md"
    report.write_text(TEXT.format(**tables(points, sizes)), encoding="utf-8")
    return report


def reproduce(folder: Path, progress: Progress) -> Path:
    """Write figures, tables and the report into a folder; give the report's path."""
    folder.mkdir(parents=True, exist_ok=True)
    return write(folder, simulate(progress))
