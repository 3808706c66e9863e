"""The parent's side of the launches: all tests of one size together, each reported."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from .mpirun import ENVIRONMENT, Launch, command, library_of
from .ranks import IDLE, JOB, SETTLE, Job
from .reports import Fault, Line, name_ranks, names, remains, revive, unwritten

SIZE = "mpi_size"  # the parameter that carries the number of ranks
LIMIT = 60.0  # seconds for one test, unless its mark says otherwise
GRACE = 5.0  # seconds a rank that failed waits for the others
MARGIN = 5.0  # seconds the ranks have to end an overdue test before we do it
ENDING = 20.0  # seconds a launch has to end after its last test


def size_of(item: pytest.Item) -> int | None:
    """On how many ranks a test runs; None for one that needs no launch."""
    if item.get_closest_marker("mpi") is None:
        return None
    try:
        return int(item.callspec.params[SIZE])  # type: ignore[attr-defined]
    except AttributeError:
        raise pytest.UsageError(f"{item.nodeid}: only functions can be mpi") from None


class Batch:
    """Runs the tests that wait, one launch per size, and reports them in order."""

    def __init__(self, config: pytest.Config, mpiexec: str, factor: float) -> None:
        self.config, self.mpiexec, self.factor = config, mpiexec, factor
        self.folder = tempfile.TemporaryDirectory(prefix="isthmus-")
        self.numbers = count()
        self.waiting: list[pytest.Item] = []
        self.launch: Launch | None = None
        self.broken: dict[int, Fault] = {}

    def limit(self, item: pytest.Item) -> float:
        """How many seconds a test may take."""
        mark = item.get_closest_marker("mpi")
        assert mark is not None
        return float(mark.kwargs.get("timeout", LIMIT)) * self.factor

    def start(self, size: int) -> Launch:
        """Launch all that waits for this size."""
        folder = Path(self.folder.name, str(next(self.numbers)))
        folder.mkdir()
        items = [item for item in self.waiting if size_of(item) == size]
        tests = tuple((item.nodeid, self.limit(item)) for item in items)
        library = library_of(self.mpiexec)
        # all test files are imported here by now, and nothing else imports it
        is_drawn = "hypothesis" in sys.modules
        job = Job(str(folder), library, GRACE * self.factor, tests, is_drawn)
        env = os.environ | ENVIRONMENT | {JOB: str(job.save())}
        env.pop("PYTEST_ADDOPTS", None)  # meant for the parent alone
        files = dict.fromkeys(str(item.path) for item in items)
        argv = command(self.mpiexec, size, "-m", "pytest", *self.options(), *files)
        return Launch(argv, env, self.config.invocation_params.dir, folder)

    def options(self) -> Iterator[str]:
        """What the ranks' pytest must share with ours, and what it must not do."""
        option = self.config.option
        if self.config.inipath is not None:
            yield from ("-c", str(self.config.inipath))
        yield from (f"--rootdir={self.config.rootpath}", f"--tb={option.tbstyle}")
        yield from ("-s", "-p", "no:cacheprovider", "-p", "no:faulthandler")
        yield from ["-v"] * option.verbose
        yield from ["--showlocals"] * option.showlocals
        for setting in option.override_ini or ():
            yield f"--override-ini={setting}"

    def stop(self) -> None:
        """End the launch that runs, if one does."""
        if self.launch is not None:
            self.launch.close()
            self.launch = None

    def close(self) -> None:
        """End what runs and remove what it wrote."""
        self.stop()
        self.folder.cleanup()

    def reports(self, item: pytest.Item) -> Iterator[pytest.TestReport]:
        """What became of a test, as soon as it is known."""
        size = size_of(item)
        assert size is not None
        launch = self.begin(size)
        self.waiting.remove(item)
        if launch is None:
            yield unwritten(item, "failed", self.broken[size], when="setup")
        else:
            yield from self.outcome(item, launch, size)

    def begin(self, size: int) -> Launch | None:
        """The launch in which the next test of this size has begun; None: none will."""
        if size in self.broken:
            return None
        fresh = self.launch is None
        launch = self.launch = self.launch or self.start(size)
        if launch.next(IDLE * self.factor) is not None:
            return launch
        self.stop()
        if not fresh:
            # It ended between two tests, which is not the fault of the later one.
            return self.begin(size)
        message = f"no test began in a launch of {size} ranks"
        self.broken[size] = Fault(message, remains(launch.folder))
        return None

    def outcome(
        self, item: pytest.Item, launch: Launch, size: int
    ) -> Iterator[pytest.TestReport]:
        """The reports of a test that has begun."""
        began = time.monotonic()
        line = launch.next(self.limit(item) + SETTLE + MARGIN)
        if line is None or line["event"] == "stuck":
            duration = time.monotonic() - began
            fault = self.fault(item, launch, line, duration)
            self.stop()
            yield unwritten(item, "failed", fault, duration=duration)
            return
        for data in line["reports"]:
            report = revive(self.config, data)
            if report.failed:
                name_ranks(report, line, size)
            yield report
        if line["mixed"]:
            # Messages may be under way that nobody will take: not for the next test.
            self.stop()
        elif not any(size_of(other) == size for other in self.waiting):
            status = launch.wait(ENDING * self.factor)
            self.stop()
            if status != 0:
                message = f"the launch did not end well (mpiexec returned {status})"
                fault = Fault(message, remains(launch.folder, item.nodeid))
                yield unwritten(item, "failed", fault, when="teardown")

    def fault(
        self, item: pytest.Item, launch: Launch, line: Line | None, duration: float
    ) -> Fault:
        """Why a launch ended inside a test, in words."""
        size = size_of(item) or 0
        status = launch.wait(MARGIN if line else 0)
        if line is not None:
            (rank, text), *_ = line["failed"]
            message = f"[{names([rank], size)}] {text}; the others never came"
        elif duration >= self.limit(item):
            message = f"not over within its time limit of {self.limit(item):g} s"
        else:
            message = f"a rank ended inside this test (mpiexec returned {status})"
        return Fault(message, remains(launch.folder, item.nodeid))
