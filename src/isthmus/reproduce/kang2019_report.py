"""The report on Kang, Träff et al. 2019: figures, numbers, and differences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import kang2019_figures as figures
from .kang2019 import (
    BYTES_PER_NODE,
    CLUSTERS,
    SETTINGS,
    ExchangePoint,
    Gain,
    Multiple,
    NodeLimit,
    figure_jobs,
    gain,
    limits,
    multiple,
    point,
    ring_jobs,
    table_jobs,
    transfer_gain,
    with_equal_settings,
)
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
) -> tuple[list[ExchangePoint], list[Multiple]]:
    """All points of the figures and the table, in a few processes."""
    tasks: list[Task] = [(point, job) for job in figure_jobs()]
    tasks += [(multiple, job) for job in table_jobs()]
    results = list(
        with_equal_settings(in_parallel(tasks, progress, unfinished=unfinished))
    )
    points = [x for x in results if isinstance(x, ExchangePoint)]
    multiples = [x for x in results if isinstance(x, Multiple)]
    points.sort(key=lambda p: (p.processes, p.setting, p.algorithm, p.per_node))
    multiples.sort(key=lambda m: (m.algorithm, m.setting))
    return points, multiples


def _measured(
    points: Sequence[ExchangePoint], setting: int, cluster: str, name: str
) -> float:
    (seconds,) = (
        p.seconds
        for p in points
        if (p.setting, p.cluster, p.per_node) == (setting, cluster, BYTES_PER_NODE[-1])
        and p.algorithm.startswith(name)
    )
    return seconds


def _gains(points: Sequence[ExchangePoint], gains: Sequence[Gain]) -> str:
    by_number = {s.number: s for s in SETTINGS}

    def row(g: Gain) -> Sequence[str]:
        paper_algorithm = by_number[g.setting].paper_algorithm
        library_seconds = _measured(
            points, g.setting, g.cluster, "root_gathering_sequential"
        )
        paper_seconds = _measured(points, g.setting, g.cluster, paper_algorithm)
        values = f"{g.expected:.2f}", f"{g.simulated:.2f}"
        difference = f"{g.simulated / g.expected - 1:+.1%}"
        return (
            f"{g.setting} ({paper_algorithm})",
            g.cluster,
            *values,
            difference,
            f"{library_seconds / paper_seconds:.2f}",
        )

    head = "setting", "processes", "expected", "transfer only", "off", "on the machine"
    return table("rrrrrr", head, map(row, gains))


def _multiples(multiples: Sequence[Multiple]) -> str:
    numbers = [s.number for s in SETTINGS]
    rows = []
    for name in dict.fromkeys(m.algorithm for m in multiples):
        row = {m.setting: m.multiple for m in multiples if m.algorithm == name}
        rows.append((name, *(f"{row[n]:.2f}" for n in numbers)))
    return table("l" + "r" * len(numbers), ("algorithm", *map(str, numbers)), rows)


def _limits(node_limits: Sequence[NodeLimit]) -> str:
    def row(x: NodeLimit) -> Sequence[str]:
        by = "port" if x.port > x.memory else "memory"
        least = f"{x.per_node >> 10} KiB", f"{1e3 * x.least:.2f} ms"
        times = x.node_aware, x.flat
        cells = (y for t in times for y in (f"{1e3 * t:.2f} ms", f"{t / x.least:.2f}"))
        return str(x.setting), *least, by, *cells

    head = "setting", "per node", "limit", "by", "node-aware", "of it", "flat", "of it"
    return table("rrrlrrrr", head, map(row, node_limits))


def reproduce(folder: Path, progress: Progress) -> Path:
    """Write figures, tables and the report into a folder; return the report's path."""
    from ..draw.schedule import figure

    unfinished = Unfinished(folder)
    points, multiples = simulate(progress, unfinished)
    folder.mkdir(exist_ok=True)
    for name, exchange in figures.exchanges():
        save(figure(exchange), folder, name)
    write_csv(folder / "points.csv", points)
    write_csv(folder / "multiples.csv", multiples)
    save(figures.times(points, SETTINGS[:4]), folder, "figure4")
    save(figures.times(points, SETTINGS[4:]), folder, "figure5")
    save(figures.improvements(points), folder, "figure6")
    gains = [
        gain(s, c, multiples) if c is CLUSTERS[-1] else transfer_gain(s, c)
        for s in SETTINGS
        for c in CLUSTERS
    ]
    write_csv(folder / "gains.csv", gains)
    node_limits = list(limits(points))
    write_csv(folder / "limits.csv", node_limits)
    words = text(
        "kang2019",
        limits=_limits(node_limits),
        gains=_gains(points, gains),
        multiples=_multiples(multiples),
        ring=_multiples([multiple(job) for job in ring_jobs()]),
    )
    report = write_report(folder, words)
    unfinished.remove()
    return report
