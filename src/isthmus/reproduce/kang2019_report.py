"""The report on Kang, Träff et al. 2019: figures, numbers, and what differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from . import kang2019_figures as figures
from .kang2019 import (
    CLUSTERS,
    SETTINGS,
    SIZES,
    Gain,
    Limit,
    Multiple,
    Point,
    figure_jobs,
    gain,
    limits,
    multiple,
    point,
    table_jobs,
    transfer_gain,
    with_same,
)
from .output import Progress, Task, in_parallel, save, write_csv


def simulate(progress: Progress) -> tuple[list[Point], list[Multiple]]:
    """All points of the figures and the table, in a few processes."""
    tasks: list[Task] = [(point, job) for job in figure_jobs()]
    tasks += [(multiple, job) for job in table_jobs()]
    found = list(with_same(in_parallel(tasks, progress)))
    points = [x for x in found if isinstance(x, Point)]
    multiples = [x for x in found if isinstance(x, Multiple)]
    points.sort(key=lambda p: (p.processes, p.setting, p.algorithm, p.per_node))
    multiples.sort(key=lambda m: (m.algorithm, m.setting))
    return points, multiples


def _measured(points: Sequence[Point], setting: int, cluster: str, name: str) -> float:
    (found,) = (
        p.seconds
        for p in points
        if (p.setting, p.cluster, p.per_node) == (setting, cluster, SIZES[-1])
        and p.algorithm.startswith(name)
    )
    return found


def _gain_rows(points: Sequence[Point], gains: Sequence[Gain]) -> Iterator[str]:
    yield "| setting | processes | expected | transfer only | off | on the machine |"
    yield "|---:|---:|---:|---:|---:|---:|"
    by_number = {s.number: s for s in SETTINGS}
    for g in gains:
        ours = by_number[g.setting].ours
        old = _measured(points, g.setting, g.cluster, "root_gathering_sequential")
        new = _measured(points, g.setting, g.cluster, ours)
        off = g.simulated / g.expected - 1
        yield (
            f"| {g.setting} ({ours}) | {g.cluster} | {g.expected:.2f} "
            f"| {g.simulated:.2f} | {off:+.1%} | {old / new:.2f} |"
        )


def _multiple_rows(found: Sequence[Multiple]) -> Iterator[str]:
    yield "| algorithm | " + " | ".join(str(s.number) for s in SETTINGS) + " |"
    yield "|---|" + "---:|" * len(SETTINGS)
    for name in dict.fromkeys(m.algorithm for m in found):
        row = {m.setting: m.multiple for m in found if m.algorithm == name}
        cells = " | ".join(f"{row[s.number]:.2f}" for s in SETTINGS)
        yield f"| {name} | {cells} |"


def _limit_rows(found: Sequence[Limit]) -> Iterator[str]:
    yield "| setting | per node | limit | by | node-aware | of it | flat | of it |"
    yield "|---:|---:|---:|---|---:|---:|---:|---:|"
    for x in found:
        by = "port" if x.port > x.memory else "memory"
        times = (
            f"{1e3 * t:.2f} ms | {t / x.least:.2f}" for t in (x.node_aware, x.flat)
        )
        cells = " | ".join((f"{x.per_node >> 10} KiB", f"{1e3 * x.least:.2f} ms", by))
        yield f"| {x.setting} | {cells} | {' | '.join(times)} |"


TEXT = """# Kang, Träff et al. 2019, simulated

Made by `isthmus reproduce kang2019` from the algorithms' own definitions: the schedules
that are verified and that run on MPI, with times from a machine model. *Scalable
Algorithms for MPI Intergroup Allgather and Allgatherv*, Parallel Computing 85 (2019).

## The exchanges

![Figure 1](figure1.png)
Figure 1: Algorithm 1 for p = 6, q = 2.

![Figure 2](figure2.png)
Figure 2: Algorithm 1 for p = 8, q = 3: teams of 3, 3 and 2.

![Figure 3](figure3.png)
Figure 3: Algorithm 2 for p = 6, q = 2.

## Time and improvement

![Figure 4](figure4.png)
Figure 4: Allgather, settings 1 to 4.

![Figure 5](figure5.png)
Figure 5: Allgatherv, settings 5 to 8.

![Figure 6](figure6.png)
Figure 6: improvement over root gathering.

The machine is the shipped `cori-like`: one port per node, shared by its processes. The
numbers are in [points.csv](points.csv).

## Expected and simulated gains

"Expected" is the paper's Eq. (5); "transfer only" is simulated in the paper's own model
with t_s = 0 at the largest size, "on the machine" with start-ups and shared node ports.

{gains}

## Node-aware, 64 × 32

The paper's algorithms do not know nodes. `node_aware` collects what the processes of a
node have in memory that they share, and every byte enters a node once (see
[Nodes](../nodes.md)). Its limit is the longer of two times: the port's, for what must
enter the busiest node, and the memory's, in which all processes of a node copy their
blocks in and the other group's out. "Flat" is the best of the others in figures 4 and
5. It can be below this limit: a message goes straight into the buffer of the process
that it is for, while node-aware data are copied there.

{limits}

## Every algorithm at 2048 processes

Transfer time at the largest size as a multiple of the lower bound M, settings 1 to 8,
in the paper's model with t_s = 0.

{multiples}

## What agrees

- Settings 1, 5, 6, 7 and 8 come out within 3 % of the paper's expectation from 256
  processes on, and settings 1, 5 and 8 also at 64. At 64 processes the largest block,
  which Theorem 3 adds to M, and what the root of a gather or broadcast already has,
  are not yet small.
- Algorithm 1 and its forerunner take the same time where q divides p, as expected.

## What differs, and why

- **25:7 with Algorithm 1 (settings 2 to 4).** 7 does not divide 25: teams have 4 or 3
  members. A process of the smaller group receives up to 4 blocks where 25/7 = 3.57
  would be even: a factor of 1.12. In the other direction segments are 1/3 or 1/4 of a
  block, and a ring is as slow as its largest piece: a factor of 25/7/3 = 1.19, which
  shows where the smaller group has the larger blocks (setting 4). So Theorem 1 holds
  only where q divides p. Algorithm 2 cuts everything into equal shares and has no
  such loss; on these settings it is the better Algorithm 1.
- **The forerunner on 25:7** is slower still in setting 4: where a team has one member
  more than the team before it, some member must send everything twice.
- **The library's gather.** For irregular blocks the library's way gathers straight to
  the root, as MPICH's Gatherv does. Up a binomial tree instead, blocks that grow with
  the rank travel several times, root gathering is slower than Eq. (2), and setting 6
  would come out at 7.65 and setting 8 at 5.11 at 2048 processes.
- **64 × 32.** With 32 processes behind one port the gain is smaller than expected:
  root gathering sends most of its messages inside a node, and our exchange sends all of
  its messages between nodes. With Bruck's algorithm instead of the ring the groups
  would collect far slower than the library: its partners are in other nodes.
- **Absolute times** are those of the model, not of Cori: its network is not fully
  connected, and nothing here models its congestion. The paper's gains of up to 23 on
  256 nodes lie beyond what a homogeneous model gives.
- **MPICH's Allgatherv** is not the scheme of Eq. (2): it gathers straight to the other
  group's root, both ways at once, and broadcasts: M and 2 M. Against it, settings 5 to
  8 should gain about 3, not 7.0 and 4.84.
"""


def reproduce(folder: Path, progress: Progress) -> Path:
    """Write figures, tables and the report into a folder; give the report's path."""
    from ..draw.schedule import figure

    folder.mkdir(parents=True, exist_ok=True)
    for name, made in figures.exchanges():
        save(figure(made), folder, name)
    points, multiples = simulate(progress)
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
    found = list(limits(points))
    write_csv(folder / "limits.csv", found)
    tables = {
        "limits": "\n".join(_limit_rows(found)),
        "gains": "\n".join(_gain_rows(points, gains)),
        "multiples": "\n".join(_multiple_rows(multiples)),
    }
    report = folder / "report.md"
    report.write_text(TEXT.format(**tables), encoding="utf-8")
    return report
