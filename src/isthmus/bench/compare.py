"""Timing contenders against each other, on all ranks at once.

Contenders take turns in random order, so that whatever else the machine does in the
meantime hits all of them alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from time import perf_counter
from typing import Protocol

import numpy as np

from .job import Case, Contender, Job, Outcome, Result

#: a repetition of calls shorter than this many seconds is not worth timing
SLICE = 1e-2
CALLS = 200
REPETITIONS = (5, 501)


class WrongData(Exception):
    """A call left other bytes in its receive buffer than it must."""


class Trial(Protocol):
    """A contender with its buffers."""

    def run(self) -> None:
        """Do the operation once."""

    def wipe(self) -> None:
        """Make the receive buffer wrong everywhere."""

    def right(self) -> bool:
        """Whether every byte of the receive buffer is right on this rank."""

    def free(self) -> None:
        """Give back what it holds."""


class Stand(Protocol):
    """The ranks that measure together."""

    def prepare(self, case: Case, contender: Contender) -> Trial:
        """A contender, ready to run."""

    def barrier(self) -> None:
        """Wait for all ranks."""

    def worst(self, values: Sequence[float]) -> list[float]:
        """Of each value the largest on any rank."""


def _time(stand: Stand, trial: Trial, calls: int) -> float:
    """The seconds of one call on this rank, after all ranks have come."""
    run = trial.run
    stand.barrier()
    start = perf_counter()
    for _ in range(calls):
        run()
    return (perf_counter() - start) / calls


def _check(stand: Stand, trials: Sequence[Trial], names: Sequence[str]) -> None:
    """Run every trial once; raise on all ranks if a byte is wrong on any."""
    wrong = []
    for trial in trials:
        trial.wipe()
        stand.barrier()
        trial.run()
        wrong.append(float(not trial.right()))
    bad = [name for name, flag in zip(names, stand.worst(wrong), strict=True) if flag]
    if bad:
        raise WrongData(f"wrong data from {'; '.join(bad)}")


def _between(low: int, value: float, high: int) -> int:
    return int(min(max(value, low), high))


def plan(once: Sequence[float], seconds: float) -> tuple[int, int]:
    """Calls in a repetition, and repetitions, for contenders that take so long."""
    calls = _between(1, ceil(SLICE / max(min(once), 1e-9)), CALLS)
    least, most = REPETITIONS
    return calls, _between(least, seconds / (calls * sum(once)), most)


def compare(stand: Stand, case: Case, job: Job) -> Outcome:
    """Measure all contenders in one case."""
    names = [f"{c.name} ({case.op}, {case.label})" for c in job.contenders]
    trials = [stand.prepare(case, contender) for contender in job.contenders]
    try:
        _check(stand, trials, names)
        once = stand.worst([_time(stand, trial, 1) for trial in trials])
        calls, repetitions = plan(once, job.seconds)
        rng = np.random.default_rng(job.seed)
        times = np.zeros((len(trials), repetitions))
        for repetition in range(repetitions):
            for i in rng.permutation(len(trials)):
                times[i, repetition] = _time(stand, trials[i], calls)
        slowest = np.reshape(stand.worst(times.ravel().tolist()), times.shape)
        _check(stand, trials, names)
    finally:
        for trial in trials:
            trial.free()
    return Outcome(
        case,
        tuple(
            Result(contender, calls, tuple(row))
            for contender, row in zip(job.contenders, slowest.tolist(), strict=True)
        ),
    )
