"""Timing contenders against each other, on all ranks at once.

Contenders take turns in random order, so that any disturbance of the machine hits all
of them alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from ..launch.mpiexec import LaunchError
from .job import AUTO, NATIVE, NATIVE_BY_NAME, BenchCase, BenchJob, Contender
from .outcome import Outcome, Result

if TYPE_CHECKING:
    from .stand import Stand, Trial

#: calls shorter than this are timed several in a row, for about SLICE_SECONDS: the
#: clock and the barrier are too coarse for one
SHORT_CALL_SECONDS = 1e-3
SLICE_SECONDS = 1e-2
MAX_CALLS_IN_A_ROW = 200
MIN_REPETITIONS, MAX_REPETITIONS = 3, 501
#: with many contenders fewer short calls are timed in a row, for as many repetitions
MANY_REPETITIONS = 9
#: repetitions until the ranks compare clocks again, since estimates may be wrong
REPETITIONS_BETWEEN_CLOCK_CHECKS = 4
#: a first call as long as this says how long the next ones of its contender will be; of
#: shorter calls ESTIMATE_CALLS are made, and the shortest of the later ones counts
LONG_CALL_SECONDS = 5e-2
ESTIMATE_CALLS = 4
#: a candidate leaves the comparison of all candidates if its first calls take so many
#: times as long as those of the fastest contender; of long calls, which differ less
#: from call to call, a smaller multiple is enough
TIMES_OF_FASTEST, TIMES_OF_FASTEST_LONG = 3.0, 2.0


class WrongData(LaunchError):
    """A call left wrong bytes in its receive buffer."""


#: called with the part of a case that is done
ReportPart = Callable[[float], None]


def _clamp(low: int, value: float, high: int) -> int:
    return int(min(max(value, low), high))


def plan(
    call_seconds: Sequence[float], seconds: float, single: bool
) -> tuple[int, int]:
    """The calls in a repetition, and the repetitions, for contenders' call times.

    All contenders make equally many calls, a single call if any contender is slow.
    Otherwise the effect of a call on the next call would count for only a part of the
    contenders.
    """
    calls, longest = 1, max(*call_seconds, 1e-7)
    if longest < SHORT_CALL_SECONDS and not single:
        turn = min(SLICE_SECONDS, seconds / MANY_REPETITIONS / len(call_seconds))
        calls = _clamp(1, ceil(turn / longest), MAX_CALLS_IN_A_ROW)
    repetitions = seconds / max(calls * sum(call_seconds), 1e-7)
    return calls, _clamp(MIN_REPETITIONS, repetitions, MAX_REPETITIONS)


class TimingRace:
    """Trials that take turns, and the trials with wrong bytes on this rank."""

    def __init__(self, stand: Stand, trials: Sequence[Trial], seed: int = 0) -> None:
        self.stand, self.trials, self.seed = stand, trials, seed
        self.wrong = [0.0] * len(trials)
        self.taken = [""] * len(trials)

    def repetition(self, i: int, calls: int) -> float:
        """The seconds of a call of trial i on this rank, as the mean of `calls` calls.

        The receive buffer is checked after the last call.
        """
        trial = self.trials[i]
        run = trial.run  # looked up here, outside of the time
        trial.wipe()
        self.stand.barrier()
        start = perf_counter()
        for _ in range(calls):
            run()
        seconds = (perf_counter() - start) / calls
        self.taken[i] = trial.taken()
        self.wrong[i] = max(self.wrong[i], float(not trial.right()))
        return seconds

    def call_seconds(self) -> list[float]:
        """A first estimate of the seconds of a call of each trial.

        The first call of a trial is also a warm-up, and counts only if it is long.
        """
        estimates = self._turn_of(range(len(self.trials)))
        short = [i for i, t in enumerate(estimates) if t < LONG_CALL_SECONDS]
        turns = [self._turn_of(short) for _ in range(ESTIMATE_CALLS - 1)]
        for i, times in zip(short, zip(*turns, strict=True), strict=True):
            estimates[i] = min(times)
        return estimates

    def _turn_of(self, indices: Sequence[int]) -> list[float]:
        """The seconds of a call of some trials, on the slowest rank."""
        return self.stand.worst([self.repetition(i, 1) for i in indices])

    def repetitions(
        self,
        calls: int,
        most: int,
        seconds: float,
        progress: ReportPart = lambda part: None,
    ) -> np.ndarray:
        """The times on this rank, [repetition, trial]; `most` repetitions at most."""
        rng = np.random.default_rng(self.seed)
        times: list[list[float]] = []
        began = perf_counter()
        while len(times) < most and not self._is_over(len(times), began, seconds):
            times.append([0.0] * len(self.trials))
            for i in rng.permutation(len(self.trials)):
                times[-1][i] = self.repetition(i, calls)
            progress(len(times) / most)
        return np.array(times)

    def _is_over(self, done: int, began: float, seconds: float) -> bool:
        """Whether the time is over on any rank, alike on all ranks.

        The ranks do not ask after each repetition, since asking is a collective too.
        """
        if done < MIN_REPETITIONS or done % REPETITIONS_BETWEEN_CLOCK_CHECKS:
            return False
        (spent,) = self.stand.worst([perf_counter() - began])
        return spent > seconds

    def check(self, names: Sequence[str], where: str) -> None:
        """Raise on all ranks if a trial received a wrong byte on any rank."""
        flags = zip(names, self.stand.worst(self.wrong), strict=True)
        if wrong := [name for name, flag in flags if flag]:
            raise WrongData(f"wrong data from {'; '.join(wrong)} {where}")

    def slowest(self, times: np.ndarray) -> np.ndarray:
        """The times on the slowest rank, from the times on each rank; collective."""
        return np.reshape(self.stand.worst(times.ravel().tolist()), times.shape)

    def among(self, indices: Sequence[int]) -> TimingRace:
        """The race of some of the trials."""
        return TimingRace(self.stand, [self.trials[i] for i in indices], self.seed)

    def free(self) -> None:
        """Free the requests of all trials."""
        for trial in self.trials:
            trial.free()


def _near_fastest(
    contenders: Sequence[Contender], call_seconds: Sequence[float]
) -> list[int]:
    """The indices of the library's call, "auto", and those not much slower than the
    fastest contender."""
    fastest = min(call_seconds)
    is_long = fastest >= LONG_CALL_SECONDS
    most = fastest * (TIMES_OF_FASTEST_LONG if is_long else TIMES_OF_FASTEST)
    pairs = zip(contenders, call_seconds, strict=True)
    always = NATIVE, NATIVE_BY_NAME, AUTO
    return [i for i, (c, t) in enumerate(pairs) if c in always or t <= most]


def compare(
    stand: Stand,
    case: BenchCase,
    job: BenchJob,
    progress: ReportPart = lambda part: None,
) -> Outcome:
    """Measure all contenders in one case; collective."""
    contenders = job.contenders_of(case)
    where = f"({case.op}, {case.label})"
    trials = [stand.prepare(case, contender) for contender in contenders]
    all_trials = race = TimingRace(stand, trials, job.seed)
    try:
        estimates = race.call_seconds()
        race.check([c.name for c in contenders], where)
        if job.all_candidates:
            near = _near_fastest(contenders, estimates)
            race = race.among(near)
            contenders = tuple(contenders[i] for i in near)
            estimates = [estimates[i] for i in near]
        calls, repetitions = plan(estimates, job.seconds, job.single)
        times = race.repetitions(calls, repetitions, job.seconds, progress)
        race.check([c.name for c in contenders], where)
        slowest = race.slowest(times)
    finally:
        all_trials.free()
    rows = zip(contenders, slowest.T.tolist(), race.taken, strict=True)
    results = [
        Result(contender, (tuple(row),), taken) for contender, row, taken in rows
    ]
    return Outcome(case, (calls,), tuple(results))


def medians(
    stand: Stand, trials: Mapping[str, Trial], seconds: float
) -> dict[str, float]:
    """The median seconds of a call of each trial, on the slowest rank.

    The trials take turns for `seconds` in all.
    """
    race = TimingRace(stand, list(trials.values()))
    calls, repetitions = plan(race.call_seconds(), seconds, single=False)
    slowest = race.slowest(race.repetitions(calls, repetitions, seconds))
    race.check(list(trials), "")
    return dict(zip(trials, np.median(slowest, 0).tolist(), strict=True))
