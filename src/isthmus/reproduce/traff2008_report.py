"""The report on Träff et al. 2008: figures, numbers, and differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..distributions import PAPER_DISTRIBUTIONS
from ..units import show_bytes, show_time
from . import traff2008_figures as figures
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
from .traff2008 import (
    BALANCE_DISTRIBUTIONS,
    BEST_BLOCKS,
    CIRCULANT_BOUND,
    CIRCULANT_WAY,
    DEALT_SYSTEMS,
    DEALT_WAYS,
    FIXED_BLOCKS,
    LINEAR_RING,
    NODE_RING,
    NODE_SYSTEMS,
    SYSTEM_OF_TODAY,
    SYSTEMS,
    GatherPoint,
    System,
    balance,
    dealt_jobs,
    dealt_name,
    is_the_ring,
    point,
    rules,
    size_jobs,
    studied,
    time_jobs,
    ways,
    work,
)
from .unfinished import Unfinished

#: the ways of the time figures; the other points are of the block size figure
TIME_WAYS = (
    LINEAR_RING,
    FIXED_BLOCKS,
    BEST_BLOCKS,
    CIRCULANT_WAY,
    CIRCULANT_BOUND,
    NODE_RING,
)
#: the figures of time against total size, of SYSTEMS and of NODE_SYSTEMS but 24 × 4
SYSTEM_FIGURES, NODE_FIGURES = (1, 2, 3, 10), {0: 7, 1: 8, 3: 11}
#: the figures of the effect of the block size
SIZE_FIGURES = 4, 12
#: the figure of ranks dealt out to the nodes in turn
DEALT_FIGURE = 13
#: the multiple of the limit within which the better of two ways should be, today
GOAL_MULTIPLE = 1.35


def simulate(
    progress: Progress, unfinished: Unfinished | None = None
) -> list[GatherPoint]:
    """All points, simulated in a few processes."""
    tasks: list[Task] = [(point, job) for job in time_jobs()]
    tasks += [(point, job) for job in size_jobs()]
    tasks += [(point, job) for job in dealt_jobs()]
    gather_points: list[GatherPoint] = in_parallel(
        tasks, progress, unfinished=unfinished, work=work
    )
    return sorted(
        gather_points,
        key=lambda p: (
            p.system,
            p.m,
            PAPER_DISTRIBUTIONS.index(p.distribution),
            p.way,
            p.size,
        ),
    )


def _at_largest(
    points: Sequence[GatherPoint], system: System
) -> Mapping[tuple[str, str], GatherPoint]:
    """The points of a system at its largest total size, by distribution and way."""
    name, m = system.name, system.totals[-1]
    return {
        (p.distribution, p.way): p
        for p in points
        if p.system == name and p.m == m and p.way in TIME_WAYS
    }


def _multiples(points: Sequence[GatherPoint], systems: Sequence[System]) -> str:
    """Tables of all distributions' times as multiples of beta m, and the gains."""
    return "\n".join(_multiples_of(points, s) for s in systems)


def _multiples_of(points: Sequence[GatherPoint], system: System) -> str:
    largest, circulant = _at_largest(points, system), ways(system)[-1]

    def row(name: str) -> Sequence[str]:
        ring, fixed, best, last = (
            largest[name, way]
            for way in (LINEAR_RING, FIXED_BLOCKS, BEST_BLOCKS, circulant)
        )
        gains = (f"{ring.seconds / x.seconds:.1f}" for x in (fixed, best))
        values = f"{ring.multiple:.2f}", f"{fixed.multiple:.2f}", next(gains)
        bound = "≤ " * (circulant == CIRCULANT_BOUND)
        return name, *values, _cell(best), next(gains), f"{bound}{last.multiple:.2f}"

    fixed = f"blocked ring, B = {show_bytes(system.size)}", "gain"
    best = "blocked ring, best B", "gain"
    head = "distribution", "linear ring", *fixed, *best, "circulant"
    m = show_bytes(system.totals[-1])
    title = f"**{system.name}**, {system.p} processes, m = {m}"
    return f"{title}\n\n{table('lrrrrrr', head, map(row, PAPER_DISTRIBUTIONS))}\n"


def _dealt(points: Sequence[GatherPoint]) -> str:
    """A table of multiples of beta m, for ranks dealt out to the nodes in turn."""

    def row(system: System, name: str) -> Sequence[str]:
        multiple_of = {
            p.way: p.multiple
            for p in points
            if (p.system, p.m, p.distribution)
            == (dealt_name(system), system.totals[-1], name)
        }
        times = [multiple_of[way] for way in DEALT_WAYS]
        gain = f"{min(times[:2]) / times[2]:.1f}"
        return system.name, name, *(f"{t:.2f}" for t in times), gain

    head = "system", "distribution", *DEALT_WAYS, "gain"
    rows = (row(s, name) for s in DEALT_SYSTEMS for name in PAPER_DISTRIBUTIONS)
    return table("llrrrr", head, rows)


def _spread(points: Sequence[GatherPoint]) -> str:
    """A table of the worst distribution's time as a multiple of equal blocks', by
    way."""

    def row(system: System) -> Iterator[str]:
        largest = _at_largest(points, system)
        yield f"{system.name}, p = {system.p}"
        for way in ways(system):
            times = [largest[name, way].seconds for name in PAPER_DISTRIBUTIONS]
            yield "–" if way == CIRCULANT_BOUND else f"{max(times) / times[0]:.2f}"

    head = "system", LINEAR_RING, FIXED_BLOCKS, BEST_BLOCKS, CIRCULANT_WAY
    systems = (*SYSTEMS, *NODE_SYSTEMS, SYSTEM_OF_TODAY)
    return table("lrrrr", head, (list(row(s)) for s in systems))


def _assumed() -> str:
    """A table of the systems: the slides' numbers, and the assumed ones."""

    def row(s: System) -> Sequence[str]:
        alpha, rate = show_time(s.model.alpha), f"{1e-6 / s.model.beta:.0f} MB/s"
        return s.name, f"{s.p}", show_bytes(s.size), alpha, rate, f"`{s.file}`"

    head = "system", "processes", "fixed B", "α, assumed", "1/β, assumed", "file"
    return table("lrrrrl", head, map(row, (*SYSTEMS, NODE_SYSTEMS[-1])))


def _rules(sizes: Sequence[GatherPoint], system: System) -> str:
    """A table of the block size and time of each rule, and the least of all sizes."""
    names = list(rules(system, PAPER_DISTRIBUTIONS[0]))

    def row(distribution: str) -> Sequence[str]:
        mine = [
            p
            for p in sizes
            if (p.system, p.distribution) == (system.name, distribution)
        ]
        by_rule = {p.way: p for p in mine}
        least = min(mine, key=lambda p: p.multiple)
        return distribution, *(_cell(by_rule.get(x)) for x in names), _cell(least)

    head = "distribution", *names, "least of all tried"
    return table("l" + "r" * (len(names) + 1), head, map(row, PAPER_DISTRIBUTIONS))


def _cell(p: GatherPoint | None) -> str:
    return f"{p.multiple:.2f} ({show_bytes(p.size)})" if p else "–"


def _verdict(points: Sequence[GatherPoint]) -> str:
    """A paragraph that says whether the goal for a machine of today is met."""
    largest = _at_largest(points, SYSTEM_OF_TODAY)
    worst = max(
        min(largest[name, way].multiple for way in (BEST_BLOCKS, CIRCULANT_WAY))
        for name in PAPER_DISTRIBUTIONS
    )
    verdict = "met" if worst <= GOAL_MULTIPLE else "missed"
    m = SYSTEM_OF_TODAY.totals[-1]
    sameness = "the same" if is_the_ring(SYSTEM_OF_TODAY, m) else "not the same"
    return (
        f"The goal, {GOAL_MULTIPLE} βm for every distribution by the better of blocked "
        f"ring and circulant, is {verdict}: the worst is {worst:.2f}. For the regular "
        f"distribution the messages of the blocked ring and of the linear ring are "
        f"{sameness}, compared one by one."
    )


def write(folder: Path, gather_points: Sequence[GatherPoint]) -> Path:
    """Write figures, tables and the report of simulated points; return its path."""
    points = [p for p in gather_points if p.way in TIME_WAYS]
    sizes = [p for p in gather_points if p.way not in TIME_WAYS]
    write_csv(folder / "points.csv", points)
    write_csv(folder / "sizes.csv", sizes)
    for number, system in zip(SYSTEM_FIGURES, SYSTEMS, strict=True):
        save(figures.times(points, system), folder, f"figure{number}")
    for number, system in zip(SIZE_FIGURES, studied(), strict=True):
        sizes_of_rules = {name: rules(system, name) for name in PAPER_DISTRIBUTIONS}
        save(figures.sizes(sizes, system, sizes_of_rules), folder, f"figure{number}")
    for number, name in enumerate(BALANCE_DISTRIBUTIONS, 5):
        lines = {
            LINEAR_RING: balance(name, LINEAR_RING),
            "blocked ring": balance(name, FIXED_BLOCKS),
        }
        save(figures.balance(lines, name), folder, f"figure{number}")
    for i, number in NODE_FIGURES.items():
        save(figures.times(points, NODE_SYSTEMS[i]), folder, f"figure{number}")
    save(figures.over_p(points), folder, "figure9")
    dealt = figures.dealt_times(points, DEALT_SYSTEMS[0])
    save(dealt, folder, f"figure{DEALT_FIGURE}")
    linux_rules, pairs_rules = (_rules(sizes, system) for system in studied())
    words = text(
        "traff2008",
        multiples=_multiples(points, SYSTEMS),
        nodes=_multiples(points, NODE_SYSTEMS),
        dealt=_dealt(points),
        today=_multiples(points, [SYSTEM_OF_TODAY]),
        verdict=_verdict(points),
        rules=linux_rules,
        pairs_rules=pairs_rules,
        spread=_spread(points),
        assumptions=_assumed(),
    )
    return write_report(folder, words)


def reproduce(folder: Path, progress: Progress) -> Path:
    """Write figures, tables and the report into a folder; return the report's path."""
    unfinished = Unfinished(folder)
    points = simulate(progress, unfinished)
    folder.mkdir(exist_ok=True)
    report = write(folder, points)
    unfinished.remove()
    return report
