"""The error messages of a measurement whose processes do not start."""

from __future__ import annotations

import subprocess
import sys

import pytest

from isthmus.bench.launch import launch
from isthmus.launch.mpiexec import LaunchError

NO_LIBRARY = "RuntimeError: cannot load MPI library"
OTHER_LIBRARY = "RuntimeWarning: suspicious MPI execution environment"


class Prints:
    """A program that prints the recorded output of all ranks, and fails."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __call__(self, command, n, output):
        program = f"import sys; print({self.text!r}); sys.exit(3)"
        self.process = subprocess.Popen([sys.executable, "-c", program], stdout=output)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.wait()


def said(text):
    """The error message for the user."""
    with pytest.raises(LaunchError) as caught:
        list(launch(print, None, 2, start=Prints(text)))
    return str(caught.value)


def test_a_reason_that_is_known_is_one_line_for_all_ranks():
    trace = "\n".join(["Traceback (most recent call last):", *["  File x"] * 20])
    for text, part in ((NO_LIBRARY, "isthmus[mpich]"), (OTHER_LIBRARY, "on the PATH")):
        reason = said("\n".join(2 * [trace, text, "MPI_ABORT was invoked\n" * 12]))
        assert part in reason and "\n" not in reason


def test_other_reasons_are_the_last_lines():
    reason = said("\n".join(map(str, range(100))))
    assert reason.startswith("mpiexec returned 3\n") and reason.endswith("98\n99")
    assert len(reason.splitlines()) < 20
