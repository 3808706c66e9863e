"""Timing contenders against each other, on all ranks at once.

Contenders take turns in random order, so that whatever else the machine does in the
meantime hits all of them alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from time import perf_counter
from typing import Protocol

import numpy as np

from ..launch.mpiexec import LaunchError
from .job import Case, Contender, Job
from .outcome import Outcome, Result

#: calls this short, in seconds, are timed many in a row, about SLICE seconds of them
SHORT, SLICE, CALLS = 1e-3, 1e-2, 200
REPETITIONS = (3, 501)
#: how many repetitions pass before the next look at the clock: estimates may be wrong
ASK = 4
#: a first call this long, in seconds, tells how long the others will be; else the
#: shortest of so many does
TELLING, TRIES = 5e-2, 4


class WrongData(LaunchError):
    """A call left other bytes in its receive buffer than it must."""


class Trial(Protocol):
    """A contender with its buffers."""

    def run(self) -> None:
        """Do the operation once."""

    def taken(self) -> str:
        """The algorithm that was taken last."""

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


#: called with the part of a case that is done
Progress = Callable[[float], None]


def _between(low: int, value: float, high: int) -> int:
    return int(min(max(value, low), high))


def plan(once: Sequence[float], seconds: float, single: bool) -> tuple[int, int]:
    """Calls in a repetition, and repetitions, for contenders that take so long.

    All make as many calls, one if any of them is long: what one call can do for the
    next would otherwise count for some and not for others.
    """
    calls, longest = 1, max(*once, 1e-7)
    if longest < SHORT and not single:
        calls = _between(1, ceil(SLICE / longest), CALLS)
    least, most = REPETITIONS
    return calls, _between(least, seconds / max(calls * sum(once), 1e-7), most)


class Race:
    """The contenders of one case, and which of them were wrong on this rank."""

    def __init__(self, stand: Stand, case: Case, contenders: Sequence[Contender]):
        self.stand, self.case, self.contenders = stand, case, contenders
        self.trials = [stand.prepare(case, contender) for contender in contenders]
        self.wrong = [0.0] * len(contenders)
        self.taken = [""] * len(contenders)

    def repetition(self, i: int, calls: int) -> float:
        """The seconds of one call of a contender, on this rank; checked after it."""
        trial = self.trials[i]
        run = trial.run
        trial.wipe()
        self.stand.barrier()
        start = perf_counter()
        for _ in range(calls):
            run()
        seconds = (perf_counter() - start) / calls
        self.taken[i] = trial.taken()
        self.wrong[i] = max(self.wrong[i], float(not trial.right()))
        return seconds

    def once(self) -> list[float]:
        """How long each takes, roughly; the first call of all is also a warm-up."""
        found = self._round()
        if max(found) < TELLING:
            rounds = [self._round() for _ in range(TRIES - 1)]
            found = [min(times) for times in zip(*rounds, strict=True)]
        return found

    def _round(self) -> list[float]:
        """One call of each."""
        everyone = range(len(self.trials))
        return self.stand.worst([self.repetition(i, 1) for i in everyone])

    def repetitions(
        self, calls: int, most: int, job: Job, progress: Progress
    ) -> np.ndarray:
        """The times on this rank: [repetition, contender]."""
        rng = np.random.default_rng(job.seed)
        times: list[list[float]] = []
        began = perf_counter()
        while len(times) < most and not self._over(len(times), began, job.seconds):
            times.append([0.0] * len(self.trials))
            for i in rng.permutation(len(self.trials)):
                times[-1][i] = self.repetition(i, calls)
            progress(len(times) / most)
        return np.array(times)

    def _over(self, done: int, began: float, seconds: float) -> bool:
        """Whether the time is over; all ranks agree on it, and do not ask too often."""
        if done < REPETITIONS[0] or done % ASK:
            return False
        (spent,) = self.stand.worst([perf_counter() - began])
        return spent > seconds

    def check(self) -> None:
        """Raise on all ranks if a byte was wrong on any."""
        flags = zip(self.contenders, self.stand.worst(self.wrong), strict=True)
        if bad := [contender.name for contender, flag in flags if flag]:
            where = f"({self.case.op}, {self.case.label})"
            raise WrongData(f"wrong data from {'; '.join(bad)} {where}")

    def free(self) -> None:
        """Give back what the contenders hold."""
        for trial in self.trials:
            trial.free()


def compare(
    stand: Stand, case: Case, job: Job, progress: Progress = lambda part: None
) -> Outcome:
    """Measure all contenders in one case."""
    race = Race(stand, case, job.contenders_of(case))
    try:
        once = race.once()
        race.check()
        calls, repetitions = plan(once, job.seconds, job.single)
        times = race.repetitions(calls, repetitions, job, progress)
        race.check()
        slowest = np.reshape(stand.worst(times.ravel().tolist()), times.shape)
    finally:
        race.free()
    rows = zip(race.contenders, slowest.T.tolist(), race.taken, strict=True)
    results = [
        Result(contender, (tuple(row),), taken) for contender, row, taken in rows
    ]
    return Outcome(case, (calls,), tuple(results))
