"""The programs of the documentation, started as its pages say, print what stands there.

Rank 0 alone prints, so that the lines of an example are whole. Most run in the launch
of the tests; those with other processes or variables are started by themselves.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from mpi4py import MPI

import quoting
from launcher.mpirun import (
    ENVIRONMENT,
    Launch,
    command,
    find_mpiexec,
    obstacle,
    spawns,
)
from support import agree, opened_port

LINE = re.compile(
    r"(?P<variables>(?:\w+=\S+ )*)mpiexec -n (?P<n>\d+) python -m mpi4py (?P<rest>.*)"
)
#: what pages say that an example prints, by its path, its variables, ranks, and line
SHOWN = defaultdict(list)
for _, page in quoting.pages():
    for output in quoting.outputs(page):
        if match := LINE.fullmatch(output.command):
            case = (output.path, *match.group("variables", "n", "rest"))
            SHOWN[case].append(output)
IN_THIS_LAUNCH = [x for x in SHOWN if x[1:3] == ("", "8")]
BY_THEMSELVES = [x for x in SHOWN if x not in IN_THIS_LAUNCH]


def names(case):
    """The name of an example, for the test."""
    return Path(case[0]).stem


@pytest.mark.mpi(8)
@pytest.mark.parametrize("case", IN_THIS_LAUNCH, ids=names)
def test_example_prints_what_its_page_shows(comm, monkeypatch, tmp_path, case):
    path = quoting.DOCS / case[0]
    if path.stem == "connect":
        port = opened_port(comm)
        if comm.rank == 0:
            MPI.Close_port(port)
    name, *arguments = shlex.split(case[3])
    monkeypatch.setattr(sys, "argv", [name, *(str(tmp_path / x) for x in arguments)])
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        runpy.run_path(str(path), run_name="__main__")
    text = printed.getvalue()
    if comm.rank:
        agree(comm, not text, f"rank {comm.rank} printed {text!r}")
    else:
        right = all(shown.allows(text) for shown in SHOWN[case])
        agree(comm, name == path.name and right, text)
    written = [(tmp_path / x).exists() for x in arguments]
    agree(comm, written == [comm.rank == 0] * len(arguments))


@pytest.mark.parametrize("case", BY_THEMSELVES, ids=names)
def test_example_in_a_launch_of_its_own(tmp_path, case):
    if obstacle():
        pytest.skip(obstacle())
    path, variables, n, rest = case
    if Path(path).stem == "spawn" and not spawns(find_mpiexec()):
        pytest.skip("the MPI library itself cannot spawn such processes")
    own = dict(x.split("=", 1) for x in variables.split())
    name, *arguments = shlex.split(rest)
    assert name == Path(path).name
    script = [str(quoting.DOCS / path), *arguments]
    argv = command(find_mpiexec(), int(n), "-m", "mpi4py", *script)
    launch = Launch(argv, {**os.environ, **ENVIRONMENT, **own}, tmp_path, tmp_path)
    status = launch.wait(120)
    launch.close()
    printed = (tmp_path / "launcher").read_text()
    assert status == 0, printed
    for shown in SHOWN[case]:
        assert shown.allows(printed), printed
