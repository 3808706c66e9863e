"""`isthmus tune`: the costs of messages on a machine, by which isthmus chooses."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ..bench import predictions
from ..bench.environment import load
from ..bench.place import place as open_place
from ..bench.predictions import AutoChoice, MeasuredTime
from ..bench.tune import TuningResult, measure
from ..choose.tuning import (
    NO_FILE_VALUES,
    VARIABLE,
    Tuning,
    place,
    read,
    wanted,
    written,
)
from ..launch.mpiexec import own_rank
from ..units import show_bytes, show_time
from .files import check_file, check_picture, save
from .measured import results_of
from .options import DEFAULT_LAB_RATE, Named, check_processes
from .terminal import ProgressDisplay, ended_in_order

#: the fields of a level, with the words beside each
LEVEL_FIELDS = {
    "alpha": "to start a message",
    "beta": "a byte of the longest message of a round",
    "gap": "for each further message of a round",
    "together": "a byte, for each process or node that sends at once",
}


def _show(field: str, value: float) -> str:
    """A field of a level, as people read numbers."""
    if field in ("beta", "together"):
        return f"{value * 1e9:.3g} ns, {1e-6 / value:.4g} MB/s" if value else "–"
    return show_time(value)


def _rows(tuning: Tuning) -> dict[tuple[str, str], tuple[str, str]]:
    """The value and the words of each field, by the part of the machine."""
    machine = tuning.machine
    outer = "between nodes" if tuning.origin.nodes > 1 else "inside a node"
    names = ["inside a node", outer][-len(machine.levels) :]
    rows = {
        (name, field): (_show(field, getattr(level, field)), words)
        for name, level in zip(names, machine.levels, strict=True)
        for field, words in LEVEL_FIELDS.items()
    }
    if machine.library is not None:
        slowdown, piece = machine.library.slowdown, machine.library.piece_bytes
        words = "what the library's messages would take"
        rows["library", "slowdown"] = f"{slowdown:.2f}×", words
        rows["library", "piece"] = (
            show_bytes(piece) if piece else "–",
            "of a long block in the library's calls",
        )
    for host, (alpha, beta) in tuning.hosts.items():
        rows["hosts", host] = f"{show_time(alpha)}, {_show('beta', beta)}", ""
    return rows


def values(tuning: Tuning, before: Tuning | None) -> Table:
    """The table of a tuning: each value, its value before, and its meaning."""
    table = Table(box=None, pad_edge=False)
    for column in ("", "value", "before", ""):
        table.add_column(column, no_wrap=column != "")
    old = _rows(before) if before else {}
    rows = _rows(tuning)
    for part in dict.fromkeys(part for part, _ in rows):
        table.add_row(f"[bold]{part}[/]", "", "", "")
        for (name, field), (value, words) in rows.items():
            if name == part:
                was, _ = old.get((name, field), ("–", ""))
                table.add_row(field, value, was, f"[dim]{words}[/]")
    return table


def comparison(rows: Sequence[MeasuredTime], choices: Sequence[AutoChoice]) -> Table:
    """A table of measured times, predictions as multiples, and choices of "auto"."""
    names = list(dict.fromkeys(row.algorithm for row in rows))
    table = Table(box=None, pad_edge=False)
    for name in ("block", *names, "auto", "loss"):
        table.add_column(name, justify="right", overflow="fold")
    autos = {auto.size: auto for auto in choices}
    for size in dict.fromkeys(row.size for row in rows):
        cells = {r.algorithm: _cell(r) for r in rows if r.size == size}
        auto = autos.get(size)
        choice_cells = [auto.algorithm, f"{auto.loss - 1:.0%}"] if auto else ["–", "–"]
        table.add_row(show_bytes(size), *(cells[name] for name in names), *choice_cells)
    return table


def _cell(row: MeasuredTime) -> str:
    if row.predicted is None:
        return show_time(row.measured)
    return f"{show_time(row.measured)} ({row.predicted / row.measured:.2f})"


def _print(console: Console, tuning_result: TuningResult) -> list[MeasuredTime]:
    """Print predicted against measured times, kind by kind."""
    rows = predictions.rows(tuning_result.tuning, tuning_result.outcomes)
    choices = predictions.auto_choices(tuning_result.tuning, tuning_result.outcomes)
    console.print(
        "\nMeasured times (in parentheses: predicted / measured); what auto takes with "
        "this tuning, and its loss to the fastest",
        highlight=False,
    )
    for kind in dict.fromkeys(row.kind for row in rows):
        rows_of_kind = [row for row in rows if row.kind == kind]
        autos = [auto for auto in choices if auto.kind == kind]
        console.print(f"\n{kind}", style="bold", highlight=False)
        console.print(comparison(rows_of_kind, autos), highlight=False)
    return rows


def _output_path(output: Path | None, library: str = "", host: str = "") -> Path:
    """The file to write: as asked, as the variable says, or the user's own."""
    named = os.environ.get(VARIABLE, "")
    if output is None and named not in NO_FILE_VALUES:
        output = Path(named).expanduser()
    return output or place(library, host)


def _previous_tuning(path: Path) -> Tuning | None:
    """The tuning in the file until now; none if the file is broken."""
    try:
        return read(path)
    except ValueError:
        return None


def _write(console: Console, tuning_result: TuningResult, output: Path | None) -> None:
    """Write the tuning file and print the changes."""
    tuning = tuning_result.tuning
    library, host = tuning.origin.library, tuning.origin.host
    path = _output_path(output, library, host)
    before = _previous_tuning(path)
    if output is None and not os.environ.get(VARIABLE):
        path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(written(tuning), encoding="utf-8")
    console.print(str(tuning.origin), style="bold", highlight=False)
    console.print(values(tuning, before), highlight=False)
    words = "changed" if before else "wrote"
    console.print(f"\n{words} {path}", highlight=False, soft_wrap=True)
    if path != wanted(library, host):
        words = f"it is used where {VARIABLE} names it"
        console.print(words, highlight=False, soft_wrap=True)


def _print_current(console: Console) -> None:
    """Print the tuning in use on this host."""
    path = current_file()
    if path is None:
        console.print("no tuning is in use here; isthmus tune writes one")
        return
    tuning = read(path)
    console.print(f"{path}: {tuning.origin}", highlight=False, soft_wrap=True)
    console.print(values(tuning, None), highlight=False)


def current_file() -> Path | None:
    """The tuning file in use on this host with the MPI library of this Python."""
    if own_rank() is None:
        with _mpi_uninitialized():
            from ..mpi.costs.tuning import library_and_host
    else:
        from ..mpi.costs.tuning import library_and_host
    return wanted(*library_and_host())


@contextmanager
def _mpi_uninitialized() -> Iterator[None]:
    """Let mpi4py be imported without starting MPI, since the name of the library is
    known before a start."""
    name = "MPI4PY_RC_INITIALIZE"
    before = os.environ.get(name)
    os.environ[name] = "0"
    yield
    del os.environ[name]
    os.environ |= {name: before} if before is not None else {}


def _warn_of_load(console: Console) -> None:
    """Warn of other load on the processors."""
    busy, cpus = load()[0], os.cpu_count() or 1
    if busy > 0.7 * cpus and not own_rank():
        words = f"warning: load {busy} on {cpus} processors; tune on a quiet machine"
        console.print(words, highlight=False, soft_wrap=True)


def tune(
    n: Annotated[
        int, typer.Option("-n", metavar="N", help="processes to start", min=2)
    ] = 8,
    seconds: Annotated[
        float, typer.Option(metavar="SECONDS", help="about how long per case", min=0.01)
    ] = 0.5,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help=f"file to write [default: {VARIABLE}, else the user's own]",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="picture of predicted against measured times: .png, .svg, .pdf",
        ),
    ] = None,
    lab_name: Named = None,
    show: Annotated[
        bool, typer.Option("--show", help="measure nothing; show the tuning in use")
    ] = False,
) -> None:
    """Measure what messages cost here, for isthmus to choose by.

    The command writes a tuning file with the costs of messages, and shows how well they
    predict the times of algorithms. It starts
    the processes, here or on a lab, or runs under your own mpiexec: use as many as your
    programs will.
    """
    console: Any = Console()
    if show:
        _print_current(console)
        return
    check_processes(n)
    target = _output_path(output)
    if output is None and not os.environ.get(VARIABLE):  # the user's own settings
        target.parent.mkdir(parents=True, exist_ok=True)
    check_file(target, (".toml",))
    check_picture(plot)
    _warn_of_load(console)
    with (
        ended_in_order(),
        open_place(None, DEFAULT_LAB_RATE, lab_name) as tuning_place,
        ProgressDisplay(console) as progress,
    ):
        if own_rank() is not None:
            from ..bench.stand import world_size

            n = world_size()
        results = results_of(measure, seconds, n, progress, tuning_place.start)
    if not results:
        return
    result: TuningResult = results[0]
    _write(console, result, output)
    rows = _print(console, result)
    if plot is not None:
        from ..draw.tuning import figure

        print(save(figure(rows, str(result.tuning.origin)), plot))
