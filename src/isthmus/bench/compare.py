"""Timing contenders against each other, on all ranks at once.

Contenders take turns in random order, so that whatever else the machine does in the
meantime hits all of them alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from ..launch.mpiexec import LaunchError
from .job import Case, Job
from .outcome import Outcome, Result

if TYPE_CHECKING:
    from .stand import Stand, Trial

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
    """Some ways to do the same, and which of them were wrong on this rank."""

    def __init__(self, stand: Stand, trials: Sequence[Trial], seed: int = 0) -> None:
        self.stand, self.trials, self.seed = stand, trials, seed
        self.wrong = [0.0] * len(trials)
        self.taken = [""] * len(trials)

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
        self,
        calls: int,
        most: int,
        seconds: float,
        progress: Progress = lambda part: None,
    ) -> np.ndarray:
        """The times on this rank: [repetition, trial]."""
        rng = np.random.default_rng(self.seed)
        times: list[list[float]] = []
        began = perf_counter()
        while len(times) < most and not self._over(len(times), began, seconds):
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

    def check(self, names: Sequence[str], where: str) -> None:
        """Raise on all ranks if a byte was wrong on any."""
        flags = zip(names, self.stand.worst(self.wrong), strict=True)
        if bad := [name for name, flag in flags if flag]:
            raise WrongData(f"wrong data from {'; '.join(bad)} {where}")

    def slowest(self, times: np.ndarray) -> np.ndarray:
        """The times on the slowest rank, of those on this one."""
        return np.reshape(self.stand.worst(times.ravel().tolist()), times.shape)

    def free(self) -> None:
        """Give back what the trials hold."""
        for trial in self.trials:
            trial.free()


def compare(
    stand: Stand, case: Case, job: Job, progress: Progress = lambda part: None
) -> Outcome:
    """Measure all contenders in one case."""
    contenders = job.contenders_of(case)
    names, where = [x.name for x in contenders], f"({case.op}, {case.label})"
    race = Race(stand, [stand.prepare(case, x) for x in contenders], job.seed)
    try:
        once = race.once()
        race.check(names, where)
        calls, repetitions = plan(once, job.seconds, job.single)
        times = race.repetitions(calls, repetitions, job.seconds, progress)
        race.check(names, where)
        slowest = race.slowest(times)
    finally:
        race.free()
    rows = zip(contenders, slowest.T.tolist(), race.taken, strict=True)
    results = [
        Result(contender, (tuple(row),), taken) for contender, row, taken in rows
    ]
    return Outcome(case, (calls,), tuple(results))


def medians(
    stand: Stand, trials: Mapping[str, Trial], seconds: float
) -> dict[str, float]:
    """Seconds of a call by each way, which take turns for so many seconds in all: the
    median, of the slowest rank."""
    race = Race(stand, list(trials.values()))
    calls, repetitions = plan(race.once(), seconds, single=False)
    slowest = race.slowest(race.repetitions(calls, repetitions, seconds))
    race.check(list(trials), "")
    return dict(zip(trials, np.median(slowest, 0).tolist(), strict=True))
