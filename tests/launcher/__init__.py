"""A pytest plugin: tests marked mpi run under mpiexec, one launch per size.

    @pytest.mark.mpi(2, 3, 5, timeout=20)
    def test_sum(comm): ...

is three tests, on 2, 3 and 5 ranks. The pytest that a person starts never runs them
itself: it launches all tests of one size together, and turns what the ranks write
(ranks.py) into ordinary reports as it comes. A test that hangs, or that brings a rank
down, is reported as failed, and those after it run in a new launch.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

from .batch import SIZE, Batch, size_of
from .mpirun import ENVIRONMENT, find_mpiexec, give_way, library_of, obstacle
from .ranks import JOB, Job, Ranks, settle_hypothesis
from .reports import unwritten

if TYPE_CHECKING:
    from mpi4py import MPI

RANKS = "isthmus-ranks"  # the plugin of a rank


def pytest_addoption(parser: pytest.Parser) -> None:
    """One factor stretches all time limits, for slow or busy machines."""
    text = "multiply the time limits of mpi tests by this"
    parser.addini("mpi_timeout_factor", text, default="1")
    group = parser.getgroup("mpi")
    group.addoption("--mpi-timeout-factor", type=float, metavar="X", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Be the plugin of a rank inside a launch, and the one that launches elsewhere."""
    config.addinivalue_line(
        "markers", "mpi(*sizes, timeout=60): run under mpiexec, on so many ranks each"
    )
    if JOB in os.environ:
        give_way()
        job = Job.load(os.environ[JOB])
        if job.is_drawn and config.pluginmanager.has_plugin("hypothesispytest"):
            settle_hypothesis()
        config.pluginmanager.register(Ranks(config, job), RANKS)
    else:
        config.pluginmanager.register(Launcher(config), "isthmus-launcher")


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test per size out of a marked one."""
    mark = metafunc.definition.get_closest_marker("mpi")
    if mark is None:
        return
    if not mark.args or not all(isinstance(n, int) and n > 0 for n in mark.args):
        pytest.fail("the mark mpi wants numbers of ranks, as in mpi(2, 3)", False)
    if SIZE not in metafunc.fixturenames:
        metafunc.fixturenames.append(SIZE)
    here = metafunc.config.pluginmanager.get_plugin(RANKS)
    sizes = [n for n in mark.args if here is None or n == here.comm.size]
    metafunc.parametrize(SIZE, sizes, ids=[f"n={n}" for n in sizes])


@pytest.fixture(scope="session")
def comm() -> MPI.Intracomm:
    """All ranks of the launch."""
    if JOB not in os.environ:
        pytest.fail("the fixture comm is for tests marked mpi")
    from mpi4py import MPI

    return MPI.COMM_WORLD


@pytest.fixture(scope="session")
def mpi_library() -> str:
    """The MPI that tests are launched with: "mpich", "openmpi" or "unknown"."""
    if JOB in os.environ:
        return Job.load(os.environ[JOB]).library
    mpiexec = find_mpiexec()
    if mpiexec is None:
        pytest.skip("there is no mpiexec")
    return library_of(mpiexec)


class Launcher:
    """The plugin of the pytest that a person starts."""

    def __init__(self, config: pytest.Config) -> None:
        self.obstacle = obstacle()
        option = config.getoption("--mpi-timeout-factor")
        factor = float(option or config.getini("mpi_timeout_factor"))
        self.batch = Batch(config, find_mpiexec() or "", factor)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Importing the test files starts MPI in this process: let it be quick."""
        before = dict(os.environ)
        os.environ.update(ENVIRONMENT)
        try:
            return (yield)
        finally:
            os.environ.clear()
            os.environ.update(before)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self,
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Skip a file that cannot be imported only because there is no MPI."""
        report = yield
        if self.obstacle and report.failed and "mpi4py" in str(report.longrepr):
            report.outcome = "skipped"
            report.longrepr = (report.nodeid, 0, f"Skipped: {self.obstacle}")
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Bring the tests of one size together, those that need no launch first."""
        session.items.sort(key=lambda item: size_of(item) or 0)
        self.batch.waiting = [item for item in session.items if size_of(item)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Report an mpi test as its ranks did; leave any other to pytest."""
        if size_of(item) is None:
            return None
        where = {"nodeid": item.nodeid, "location": item.location}
        item.ihook.pytest_runtest_logstart(**where)
        for report in self.reports(item):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(**where)
        return True

    def reports(self, item: pytest.Item) -> Iterator[pytest.TestReport]:
        """The reports of one mpi test."""
        if self.obstacle is None:
            yield from self.batch.reports(item)
        else:
            path, line, _ = item.location
            why = (path, line or 0, f"Skipped: {self.obstacle}")
            yield unwritten(item, "skipped", why, when="setup")

    def pytest_sessionfinish(self) -> None:
        """Stop what still runs after -x or an interrupt."""
        self.batch.stop()

    def pytest_unconfigure(self) -> None:
        """Leave no files behind."""
        self.batch.close()
