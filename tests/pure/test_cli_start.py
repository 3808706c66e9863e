"""The start of the command line: a command imports only modules of its work."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

#: seconds of processor time that `isthmus --version` may take more than typer and rich
EXTRA_SECONDS = 0.25
#: of isthmus, for `isthmus --version`: itself, the command line and its table
MODULES_OF_VERSION = 8


def modules(*arguments: str) -> set[str]:
    """The modules imported by a command, at its end."""
    code = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, "
        "file=sys.stderr)); from isthmus.cli import main; main()"
    )
    argv = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def folders(imported: set[str]) -> set[str]:
    """The folders and files of isthmus among modules."""
    parts = (name.split(".") for name in imported)
    return {part[1] for part in parts if part[0] == "isthmus" and part[1:]}


def processor_seconds(*arguments: str) -> float:
    """The least processor time of some runs of Python."""
    times = []
    for _ in range(4):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, stdout=-3, timeout=600)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(
            after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        )
    return min(times)


@pytest.mark.parametrize("line", ["--version", "--help", "lab --help"])
def test_the_version_and_the_help_import_no_command(line):
    imported = modules(*line.split())
    assert not imported & {"numpy", "matplotlib", "mpi4py"}
    ours = {name for name in imported if name.partition(".")[0] == "isthmus"}
    assert len(ours) <= MODULES_OF_VERSION, ours


@pytest.mark.parametrize(
    "line, without",
    [
        ("list allgatherv ring", {"bench", "draw", "explore", "mpi"}),
        ("lab up --help", {"bench", "draw", "explore", "mpi", "schedules"}),
        ("check --help", {"bench", "draw", "explore", "mpi", "cost"}),
        ("predict --help", {"bench", "draw", "explore", "mpi", "reproduce"}),
        ("explore --help", {"bench", "mpi", "reproduce"}),
        ("trace --help", {"bench", "draw", "explore", "mpi", "reproduce"}),
        ("reproduce --help", {"explore", "mpi"}),
    ],
)
def test_a_command_imports_what_it_runs(line, without):
    imported = modules(*line.split())
    assert not folders(imported) & without, line
    assert "matplotlib" not in imported


def test_the_version_takes_little_more_than_typer_and_rich():
    if sys.platform != "linux" or os.environ.get("COVERAGE_RUN"):
        pytest.skip("processor time of children is compared on Linux")
    base = processor_seconds("-c", "import typer, rich.console, rich.table")
    ours = processor_seconds("-m", "isthmus", "--version")
    assert ours - base < EXTRA_SECONDS, (ours, base)
