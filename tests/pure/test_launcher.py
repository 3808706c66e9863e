"""The plugin launcher, tried on small suites under the installed MPI."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher import mpirun
from launcher.ranks import Job, Verdict, combine
from launcher.reports import BELOW, names

TESTS = Path(__file__).parents[1]
PLUGIN = """
import os
from launcher.ranks import JOB

pytest_plugins = ["launcher"]

def pytest_configure(config):
    if JOB not in os.environ:
        os.environ["SET_BY_THE_PARENT"] = "1"
"""
QUICK = "-p no:hypothesispytest"  # its import is most of the time a small suite takes

needs_mpi = pytest.mark.skipif(
    mpirun.obstacle() is not None, reason=mpirun.obstacle() or ""
)

FAIR = """
import os

import pytest

pytestmark = pytest.mark.mpi(2)

def test_both(comm, mpi_library):
    from mpi4py import MPI
    assert comm.allreduce(1) == comm.size == 2
    assert mpi_library in MPI.Get_library_version().lower().replace(" ", "")

@pytest.mark.mpi(1, 3)
def test_sizes(comm, mpi_size):
    assert comm.size == mpi_size
    assert os.environ["SET_BY_THE_PARENT"] == "1"

@pytest.mark.parametrize("letter", "ab")
def test_letter(comm, letter, tmp_path):
    assert comm.bcast(letter) == letter
    assert list(tmp_path.iterdir()) == []

def test_skipped(comm):
    pytest.skip("not today")

@pytest.mark.xfail(strict=True)
def test_expected(comm):
    assert comm.rank == 0

def test_one_rank(comm):
    print("here is", comm.rank)
    assert comm.rank == 0, "only the first"

def test_last(comm):
    comm.barrier()
"""

FOUL = """
import os, signal
import pytest

pytestmark = pytest.mark.mpi(2)

@pytest.mark.mpi(2, timeout=2)
def test_hang(comm):
    if comm.rank == 1:
        comm.recv()
    comm.barrier()

def test_left_alone(comm):
    assert comm.rank == 0, "gone"
    comm.barrier()

def test_exit(comm):  # mpiexec returns 7, or the 9 of the rank that it then ends
    if comm.rank == 1:
        os._exit(7)
    comm.barrier()

def test_crash(comm):
    if comm.rank == 0:
        os.kill(os.getpid(), signal.SIGSEGV)
    comm.barrier()

def test_after(comm):
    assert comm.allreduce(1) == 2
"""

DRAWN = """
import pytest
from hypothesis import given, strategies as st
from support import agree

@pytest.mark.mpi(2)
@given(st.lists(st.integers(0, 9), max_size=3))
def test_sum(comm, xs):
    agree(comm, comm.bcast(xs) == xs, "drew something else")
    agree(comm, comm.rank == 0 or sum(xs) < 7, f"{xs} is too much")
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """An empty suite with the plugin."""
    pytester.makeini(f"[pytest]\npythonpath = {TESTS}\naddopts = {QUICK}")
    pytester.makeconftest(PLUGIN)
    return pytester


@needs_mpi
def test_outcomes(suite: pytest.Pytester) -> None:
    suite.makepyfile(FAIR)
    result = suite.runpytest_subprocess("-v")
    result.assert_outcomes(passed=6, skipped=1, failed=1, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "*::test_sizes?n=1? PASSED*",
            "*::test_letter?b-n=2? PASSED*",
            "*::test_skipped?n=2? SKIPPED (not today)*",
            "*::test_one_rank?n=2? FAILED*",
            "*::test_last?n=2? PASSED*",
            "*::test_sizes?n=3? PASSED*",
            "E *AssertionError: only the first",
            "*failed on rank 1 of 2*",
            "here is 1",
            "FAILED *test_one_rank?n=2? - ?rank 1 of 2? AssertionError*",
        ]
    )


@needs_mpi
def test_hangs_and_crashes(suite: pytest.Pytester) -> None:
    suite.makepyfile(FOUL)
    result = suite.runpytest_subprocess("-v", "--mpi-timeout-factor=0.25")
    result.assert_outcomes(passed=1, failed=4)
    result.stdout.fnmatch_lines(
        [
            "*::test_after?n=2? PASSED*",
            "*time limit of 0.5 s",
            "--- rank 0",
            "*in test_hang",
            "--- rank 1",
            "*in test_hang",
            "?rank 1 of 2? AssertionError: gone; the others never came",
            "*in test_left_alone",
            "*a rank ended inside this test (mpiexec returned [79])",
            "*Segmentation fault*",
            "*in test_crash",
        ]
    )


@needs_mpi
def test_hypothesis_draws_alike_on_all_ranks(suite: pytest.Pytester) -> None:
    pytest.importorskip("hypothesis")
    suite.makeini(f"[pytest]\npythonpath = {TESTS}")
    suite.makepyfile(DRAWN)
    result = suite.runpytest_subprocess()
    result.stdout.fnmatch_lines(["*AssertionError: rank 1: [[]7] is too much*"])
    result.stdout.no_fnmatch_line("*drew something else*")


@needs_mpi
def test_choosing_tests_and_stopping(suite: pytest.Pytester) -> None:
    suite.makepyfile(FAIR)
    result = suite.runpytest_subprocess("-x", "-k", "one_rank or last")
    result.assert_outcomes(failed=1, deselected=7)
    result = suite.runpytest_subprocess("--lf", "-q")
    result.assert_outcomes(failed=1)


@needs_mpi
def test_a_launch_that_cannot_begin_fails_all_at_once(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import os, pytest
        if "ISTHMUS_TEST_JOB" in os.environ:
            raise ValueError("not on a rank")
        pytestmark = pytest.mark.mpi(2)
        def test_one(): ...
        def test_two(): ...
        """
    )
    result = suite.runpytest_subprocess()
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*no test began in a launch of 2 ranks*"])
    result.stdout.fnmatch_lines(["*ValueError: not on a rank*"])


def test_without_mpi_the_tests_are_skipped(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("launcher.obstacle", lambda: "there is no mpiexec")
    suite.makepyfile(
        test_marked="import pytest\n@pytest.mark.mpi(2)\ndef test(): ...",
        test_import="import mpi4py.nothing_of_this_name",
        test_plain="def test(): ...",
    )
    result = suite.runpytest_inprocess("-rs", "--import-mode=importlib")
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED*there is no mpiexec"])


@pytest.mark.parametrize("mark", ["mpi", "mpi()", "mpi('two')", "mpi(0)"])
def test_a_mark_without_sizes_is_an_error(suite: pytest.Pytester, mark: str) -> None:
    suite.makepyfile(f"import pytest\n@pytest.mark.{mark}\ndef test(): ...")
    result = suite.runpytest_inprocess("--import-mode=importlib")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*the mark mpi wants numbers of ranks*"])


@pytest.mark.parametrize(
    ("levels", "decides", "mixed"),
    [((1, 1), 0, False), ((0, 1), 1, False), ((1, 3, 3), 1, True), ((3, 2), 0, True)],
)
def test_the_gravest_of_the_lowest_ranks_decides(
    levels: tuple[int, ...], decides: int, mixed: bool
) -> None:
    verdicts = [
        Verdict(level, "bad" if level == 3 else "", f"{rank}", [{"rank": rank}])
        for rank, level in enumerate(levels)
    ]
    together = combine(verdicts)
    assert together["reports"] == [{"rank": decides}]
    assert together["mixed"] == mixed
    assert [r for r, _ in together["failed"]] == [
        rank for rank, level in enumerate(levels) if level == 3
    ]


def test_a_job_survives_its_file(tmp_path: Path) -> None:
    job = Job(str(tmp_path), "mpich", 1.5, (("a::b[n=2]", 60.0),))
    assert Job.load(str(job.save())) == job


def test_ranks_in_words() -> None:
    assert names([1], 3) == "rank 1 of 3"
    assert names([0, 2], 3) == "ranks 0, 2 of 3"
    assert names([0, 1], 2) == "all 2 ranks"


def test_tracebacks_end_at_the_test() -> None:
    text = (
        '  File "/a/test_x.py", line 3 in test_x\n'
        '  File "/b/_pytest/python.py", line 9 in pytest_pyfunc_call\n'
        '  File "<frozen runpy>", line 88 in _run_code\n'
    )
    assert BELOW.sub("", text) == '  File "/a/test_x.py", line 3 in test_x\n'
