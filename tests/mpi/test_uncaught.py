"""What a program prints of an error of isthmus that it does not catch."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from isthmus.launch.local import Here
from isthmus.mpi.waiting import uncaught
from launcher.mpirun import obstacle

PROGRAM = """
import numpy as np
from mpi4py import MPI
import isthmus

def exchange(comm):
    x = np.zeros(4)
    comm.Allgather(x, np.zeros(4 * comm.size), algorithm="nope")

exchange(isthmus.Intracomm(MPI.COMM_WORLD))
"""


def raised(call):
    """What a call raises."""
    with pytest.raises(Exception) as caught:
        call()
    return caught.value


def test_each_rank_says_in_one_line_where_and_why(tmp_path):
    if obstacle():
        pytest.skip(obstacle())
    program, printed = tmp_path / "program.py", tmp_path / "printed"
    program.write_text(PROGRAM)
    with (
        printed.open("w") as output,
        Here([sys.executable, str(program)], 2, output) as running,
    ):
        assert running.process.wait(120)
    lines = [x for x in printed.read_text().splitlines() if x.startswith("rank ")]
    why = "ValueError: no algorithm 'nope' for allgather"
    where = f"{program}:10, {program}:8"
    ends = [x.removeprefix(f"rank {rank}: ") for rank, x in enumerate(sorted(lines))]
    assert len(ends) == 2 and all(x.startswith(f"{where}: {why}") for x in ends), lines
    assert "Traceback" not in printed.read_text()


def test_errors_have_the_names_that_users_know():
    def mismatch():
        raise isthmus.MismatchError("ranks differ")

    error = raised(mismatch)
    assert uncaught.line(error) is None  # it is not isthmus that raises it
    there = raised(lambda: isthmus.Layout.blocks((4,), grid=(2, 2)))
    assert (
        f"{__file__}:" in uncaught.line(there)
        and uncaught.PACKAGE_FOLDER not in there.args[0]
    )
    assert type(error).__module__ == "isthmus"


def test_what_goes_wrong_otherwise_is_printed_as_ever():
    comm = isthmus.Intracomm(MPI.COMM_SELF)
    own = raised(lambda: {}["no such key"])
    native = raised(lambda: comm.Bcast(np.zeros(1), root=7, algorithm="native"))
    inside = raised(lambda: isthmus.Layout.blocks(None, grid=(2,)))
    assert [uncaught.line(x) for x in (own, native, inside)] == [None] * 3


def test_a_program_may_have_it_its_own_way(monkeypatch):
    monkeypatch.setattr(sys, "excepthook", print)
    uncaught.install()
    assert sys.excepthook is print


def test_a_communicator_of_the_other_kind_is_led_to_its_class():
    with pytest.raises(TypeError, match=r"is for isthmus\.Intercomm$"):
        isthmus.Intracomm(MPI.Intercomm())
    with pytest.raises(TypeError, match=r"is for isthmus\.Intracomm$"):
        isthmus.Intercomm(MPI.COMM_WORLD)
