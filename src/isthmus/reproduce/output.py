"""What all reports share: many jobs in a few processes, figures and tables as files,
and the words, from a file for each paper."""

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

#: called with the number of finished points, of all points, and the finished part of
#: all work
Progress = Callable[[int, int, float], None]
#: a function and its argument, which can be pickled for another process
Task = tuple[Callable[[Any], Any], Any]


def _do(numbered: tuple[int, Task]) -> tuple[int, Any]:
    number, (function, argument) = numbered
    return number, function(argument)


def in_parallel(
    tasks: Sequence[Task],
    progress: Progress,
    fresh_processes: bool = False,
    unfinished: Unfinished | None = None,
    work: Callable[[Any], float] = lambda argument: 1.0,
) -> list[Any]:
    """The results of all tasks: earlier ones first, then new ones as they arrive.

    With `fresh_processes`, each task has a process that has done nothing before, and
    only two run at a time, because such tasks may need much memory. `work` is the
    relative time of a task.
    """
    earlier_results = unfinished.results if unfinished is not None else {}
    names = [task_name(task) for task in tasks]
    results = [earlier_results[name] for name in names if name in earlier_results]
    missing = [
        (i, task) for i, task in enumerate(tasks) if names[i] not in earlier_results
    ]
    weights = [work(argument) for _, argument in tasks]
    missing_work = sum(weights[i] for i, _ in missing)
    whole_work = sum(weights) or 1.0
    if results:
        progress(len(results), len(tasks), 1 - missing_work / whole_work)
    if not missing:
        return results
    processes = min(2 if fresh_processes else 8, os.cpu_count() or 1)
    with pool(processes, tasks_each=1 if fresh_processes else None) as workers:
        for i, result in workers.imap_unordered(_do, missing):
            if unfinished is not None:
                unfinished.add(names[i], result)
            results.append(result)
            missing_work -= weights[i]
            progress(len(results), len(tasks), 1 - missing_work / whole_work)
    return results


def panels(
    size: tuple[float, float], rows: int = 1, columns: int = 1, **shared: Any
) -> tuple[Figure, Any]:
    """A figure of a size in inches, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, **shared)


def legend(figure: Figure, *axes: Axes, **style: Any) -> None:
    """Add an entry for every curve of several axes, by default below the axes."""
    handles = {
        label: handle
        for ax in axes
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    style = {"loc": "outside lower center", "ncols": len(handles), **style}
    figure.legend(handles.values(), handles.keys(), **style)


def save(figure: Any, folder: Path, name: str) -> None:
    """Write a figure twice, for pages and for print."""
    for kind in ("png", "svg"):
        figure.savefig(folder / f"{name}.{kind}", dpi=120)


def write_csv(path: Path, rows: Sequence[Any]) -> None:
    """Write dataclasses of one class, a line for each."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(rows[0])])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def table(align: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; `align` has a letter for every column, l or r."""
    rule = "|" + "".join({"l": "---|", "r": "---:|"}[x] for x in align)
    header, *lines = (f"| {' | '.join(row)} |" for row in (head, *rows))
    return "\n".join((header, rule, *lines))


def text(paper: str, **parts: str) -> str:
    """The words of the report on a paper, with tables and numbers in their places."""
    words = (
        resources.files("isthmus.reproduce").joinpath(f"{paper}.md").read_text("utf-8")
    )
    return words.format(**parts)


def write_report(folder: Path, words: str) -> Path:
    """Write the report into a folder; return its path."""
    path = folder / "report.md"
    path.write_text(words, encoding="utf-8")
    return path
