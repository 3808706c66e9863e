"""What all reports do: many jobs in a few processes, pictures and tables as files, and
the words, of which each paper has a file here."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, fields
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..workers import pool
from .unfinished import Unfinished, task_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: called with the number of points done, of all, and the part of the work that they are
Progress = Callable[[int, int, float], None]
#: a function and its argument, of a kind that another process can be told
Task = tuple[Callable[[Any], Any], Any]


def _do(numbered: tuple[int, Task]) -> tuple[int, Any]:
    number, (function, argument) = numbered
    return number, function(argument)


def in_parallel(
    tasks: Sequence[Task],
    progress: Progress,
    alone: bool = False,
    kept: Unfinished | None = None,
    work: Callable[[Any], float] = lambda argument: 1.0,
) -> list[Any]:
    """The results of all tasks: those that were kept, then others as they are ready.

    `alone`: each in a process that has done nothing before, two at a time, as they may
    need much memory. `work`: about how long a task takes beside the others.
    """
    before = kept.results if kept is not None else {}
    names = [task_name(task) for task in tasks]
    results = [before[name] for name in names if name in before]
    missing = [(i, task) for i, task in enumerate(tasks) if names[i] not in before]
    weights = [work(argument) for _, argument in tasks]
    rest = sum(weights[i] for i, _ in missing)
    every = sum(weights) or 1.0
    if results:
        progress(len(results), len(tasks), 1 - rest / every)
    if not missing:
        return results
    processes = min(2 if alone else 8, os.cpu_count() or 1)
    with pool(processes, tasks_each=1 if alone else None) as workers:
        for i, result in workers.imap_unordered(_do, missing):
            if kept is not None:
                kept.keep(names[i], result)
            results.append(result)
            rest -= weights[i]
            progress(len(results), len(tasks), 1 - rest / every)
    return results


def panels(
    size: tuple[float, float], rows: int = 1, columns: int = 1, **shared: Any
) -> tuple[Figure, Any]:
    """A figure of so many inches, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, **shared)


def legend(figure: Figure, *axes: Axes, **style: Any) -> None:
    """An entry for every curve of some axes; below them, unless it is told."""
    found = {
        label: handle
        for ax in axes
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    style = {"loc": "outside lower center", "ncols": len(found), **style}
    figure.legend(found.values(), found.keys(), **style)


def save(figure: Any, folder: Path, name: str) -> None:
    """A picture, for pages and for print."""
    for kind in ("png", "svg"):
        figure.savefig(folder / f"{name}.{kind}", dpi=120)


def write_csv(path: Path, rows: Sequence[Any]) -> None:
    """Dataclasses of one kind, a line each."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(rows[0])])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def table(align: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown; `align` has a letter for every column, l or r."""
    rule = "|" + "".join({"l": "---|", "r": "---:|"}[x] for x in align)
    first, *others = (f"| {' | '.join(row)} |" for row in (head, *rows))
    return "\n".join((first, rule, *others))


def text(paper: str, **parts: str) -> str:
    """The words of the report on a paper, with tables and numbers in their places."""
    words = resources.files(__package__).joinpath(f"{paper}.md").read_text("utf-8")
    return words.format(**parts)


def write_report(folder: Path, made: str) -> Path:
    """The report of a folder; its path."""
    path = folder / "report.md"
    path.write_text(made, encoding="utf-8")
    return path
