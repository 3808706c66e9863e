"""Inside a launch: every rank runs the same tests and rank 0 writes the verdicts."""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

JOB = "ISTHMUS_TEST_JOB"  # the environment variable that names the job's file
SETTLE = 0.5  # seconds between writing the tracebacks and ending the process
IDLE = 120.0  # seconds a rank may live outside any test


@dataclass(frozen=True)
class Job:
    """What one launch is to run: tests with their time limits, in order."""

    folder: str
    library: str
    grace: float
    tests: tuple[tuple[str, float], ...]
    #: whether any of them may be drawn by Hypothesis, whose import takes a third of the
    #: time in which a rank starts
    is_drawn: bool = False

    def save(self) -> Path:
        """Write the job into its folder."""
        path = Path(self.folder, "job")
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")
        return path

    @classmethod
    def load(cls, path: str) -> Job:
        """Read what save wrote."""
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        return cls(**data | {"tests": tuple(map(tuple, data["tests"]))})


@dataclass(frozen=True)
class Verdict:
    """What became of a test on one rank."""

    level: int
    message: str
    output: str
    reports: list[dict[str, Any]]


def level(reports: Sequence[pytest.TestReport]) -> int:
    """How much one rank's outcome weighs: failed, expected to fail, passed, skipped.

    A strict "passed unexpectedly" weighs as passed: it is enough for an expected
    failure that it happens on one rank.
    """
    if any(r.failed and not str(r.longrepr).startswith("[XPASS") for r in reports):
        return 3
    if any(r.skipped and hasattr(r, "wasxfail") for r in reports):
        return 2
    return 0 if any(r.skipped for r in reports) else 1


def message(reports: Sequence[pytest.TestReport]) -> str:
    """The first line of what went wrong."""
    for report in reports:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            text = crash.message if crash else str(report.longrepr)
            return str(text).partition("\n")[0] or "failed"
    return ""


def combine(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """One verdict for all: that of the lowest of the ranks that weigh most."""
    top = max(v.level for v in verdicts)
    ranks = [r for r, v in enumerate(verdicts) if v.level == top]
    decisive = verdicts[ranks[0]]
    failed = ranks if decisive.message else []
    return {
        "reports": decisive.reports,
        "failed": [[r, verdicts[r].message] for r in failed],
        "output": decisive.output if failed else "",
        "mixed": top > 1 and len(ranks) < len(verdicts),
    }


class Ranks:
    """The plugin of a rank: the tests of its job, agreed upon one by one."""

    def __init__(self, config: pytest.Config, job: Job) -> None:
        from mpi4py import MPI

        gc.disable()  # until all tests are there: nothing of them is garbage
        self.config, self.job = config, job
        self.functions = {test.partition("[")[0] for test, _ in job.tests}
        self.comm = MPI.COMM_WORLD.Dup()
        self.pids = self.comm.allgather(os.getpid())
        self.path = Path(job.folder, f"rank-{self.comm.rank}")
        # Numbered folders under one common root would have the ranks race for them.
        config.option.basetemp = str(Path(job.folder, f"tmp-{self.comm.rank}"))
        # All that this rank prints, also from C, is kept even if it crashes.
        self.log = open(self.path, "a", buffering=1, encoding="utf-8")  # noqa: SIM115
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(self.log.fileno(), stream.fileno())
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        faulthandler.enable(self.log)
        faulthandler.register(signal.SIGUSR1, self.log)
        signal.setitimer(signal.ITIMER_REAL, IDLE)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(
        self, collector: pytest.Collector, name: str
    ) -> list[pytest.Item] | None:
        """Make no cases of functions that this launch does not run."""
        unused = (
            name.startswith("test")
            and f"{collector.nodeid}::{name}" not in self.functions
        )
        return [] if unused else None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the job's tests, in the job's order."""
        found = {item.nodeid: item for item in items}
        missing = [test for test, _ in self.job.tests if test not in found]
        if missing:
            raise pytest.UsageError(f"not collected on this rank: {missing}")
        items[:] = [found[test] for test, _ in self.job.tests]
        # Many tests collect garbage, which need not be looked for in what stays anyway.
        gc.freeze()
        gc.enable()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool:
        """Run one test here as on all other ranks, and settle what became of it."""
        limit = dict(self.job.tests)[item.nodeid]
        # A rank that ends the launch must not do so before the test has a name.
        if self.comm.rank == 0:
            self.tell(event="start")
        self.comm.Barrier()
        # The kernel ends a rank even where Python no longer runs; by then every
        # rank has written where it was.
        faulthandler.dump_traceback_later(limit, file=self.log)
        signal.setitimer(signal.ITIMER_REAL, limit + SETTLE)
        print(f"@ {item.nodeid}", file=self.log)
        before = self.path.stat().st_size
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        verdict = self.judge(reports, before)
        self.meet(item, verdict)
        verdicts = self.comm.gather(verdict)
        if verdicts is not None:
            self.tell(event="end", **combine(verdicts))
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, IDLE)
        return True

    def judge(self, reports: list[pytest.TestReport], before: int) -> Verdict:
        """This rank's verdict, also put into its log: the others may never hear it."""
        sys.stdout.flush()
        output = self.path.read_bytes()[before:].decode(errors="replace")
        for report in reports:
            if report.failed:
                print(report.longreprtext, file=self.log)
        serialise = self.config.hook.pytest_report_to_serializable
        data = [serialise(config=self.config, report=r) for r in reports]
        return Verdict(level(reports), message(reports), output, data)

    def meet(self, item: pytest.Item, verdict: Verdict) -> None:
        """Wait for the other ranks; a rank that failed does not wait for ever."""
        deadline = time.monotonic() + self.job.grace
        request = self.comm.Ibarrier()
        while not request.Test():
            if verdict.message and time.monotonic() > deadline:
                self.give_up(item, verdict)
            time.sleep(0.001)

    def give_up(self, item: pytest.Item, verdict: Verdict) -> None:
        """End the launch: the others are stuck in something this rank has left."""
        for rank, pid in enumerate(self.pids):
            if rank != self.comm.rank:
                os.kill(pid, signal.SIGUSR1)
        failed = [[self.comm.rank, verdict.message]]
        self.tell(event="stuck", failed=failed)
        time.sleep(SETTLE / 2)
        os._exit(1)

    def tell(self, **line: Any) -> None:
        """Append one line to the results, in one write."""
        text = json.dumps(line, default=str) + "\n"
        with open(Path(self.job.folder, "results"), "ab", buffering=0) as results:
            results.write(text.encode())

    def pytest_unconfigure(self) -> None:
        """Leave nothing of ours to MPI's end."""
        self.comm.Free()


def settle_hypothesis() -> None:
    """Make Hypothesis draw the same examples, in the same order, on every rank."""
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "mpi",
        derandomize=True,
        database=None,
        deadline=None,
        # Slowness is each rank's own: one would complain, the others go on.
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("mpi")
