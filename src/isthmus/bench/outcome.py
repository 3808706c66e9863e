"""The outcome of a measurement: each single time, medians and ratios with their
intervals, and a line for each contender, which all forms of output show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import NamedTuple

from .bootstrap import Interval, Resampled, resample
from .job import COPY, NATIVE, NATIVE_BY_NAME, BenchCase, Contender


class ProgressReport(NamedTuple):
    """The case under measurement, and the finished part of the case, from 0 to 1."""

    words: str
    part: float


@dataclass(frozen=True)
class Result:
    """The times of a call of a contender on the slowest rank, [launch][repetition], and
    the algorithm that the call took."""

    contender: Contender
    times: tuple[tuple[float, ...], ...]
    taken: str = ""

    @property
    def seconds(self) -> float:
        """The median over the repetitions of all launches."""
        return median(time for launch in self.times for time in launch)


@dataclass(frozen=True)
class Outcome:
    """The results of all contenders in one case, in which every byte was right.

    `calls` has for each launch the calls in a repetition.
    """

    case: BenchCase
    calls: tuple[int, ...]
    results: tuple[Result, ...]

    def _index(self, contender: Contender) -> int:
        return [result.contender for result in self.results].index(contender)

    def seconds(self, contender: Contender) -> float:
        """The time of a contender."""
        return self.results[self._index(contender)].seconds

    def taken(self, contender: Contender) -> str:
        """The algorithm that a contender took."""
        return self.results[self._index(contender)].taken

    def ratio(self, contender: Contender) -> float:
        """How many times faster than the MPI library's own call a contender is."""
        return self.seconds(NATIVE) / self.seconds(contender)

    @cached_property
    def _resampled(self) -> Resampled:
        return resample([result.times for result in self.results])

    def interval(self, contender: Contender) -> Interval:
        """The 95 % interval of the median time of a contender."""
        return self._resampled.median(self._index(contender))

    def ratio_interval(self, contender: Contender) -> Interval:
        """The 95 % interval of a contender's ratio to native."""
        return self._resampled.ratio(self._index(NATIVE), self._index(contender))

    @cached_property
    def fastest(self) -> Contender:
        """The contender with the least time, of those that "auto" could take.

        Not a copy; nor the library's call on a communicator of mpi4py, where the call
        on one of isthmus is measured too: what lies between is the cost of isthmus, and
        no choice.
        """
        others = [COPY]
        if any(result.contender == NATIVE_BY_NAME for result in self.results):
            others.append(NATIVE)
        calls = (result for result in self.results if result.contender not in others)
        return min(calls, key=lambda result: result.seconds).contender

    def regret(self, contender: Contender) -> float:
        """How many times longer than the fastest a contender takes."""
        return self.seconds(contender) / self.seconds(self.fastest)

    def regret_interval(self, contender: Contender) -> Interval:
        """The 95 % interval of a contender's regret."""
        return self._resampled.ratio(self._index(contender), self._index(self.fastest))


def merge(outcomes: Sequence[Outcome]) -> Outcome:
    """One outcome from the outcomes of a case in several launches, of the contenders
    that were measured in all."""
    by_contender: dict[Contender, list[Result]] = {}
    for result in (result for outcome in outcomes for result in outcome.results):
        by_contender.setdefault(result.contender, []).append(result)
    results = [
        Result(
            contender,
            tuple(times for result in launches for times in result.times),
            " or ".join(sorted({result.taken for result in launches})),
        )
        for contender, launches in by_contender.items()
        if len(launches) == len(outcomes)
    ]
    calls = tuple(n for outcome in outcomes for n in outcome.calls)
    return Outcome(outcomes[0].case, calls, tuple(results))


@dataclass(frozen=True)
class Line:
    """A contender in a case: medians with their intervals, in seconds.

    `ratio` is the time of native divided by the time of the contender, `regret` that
    time divided by the time of the fastest contender. `limit` is the physical limit: on
    a lab the time of the links, on one host the time of a copy; None if not known.
    """

    case: BenchCase
    contender: str
    launches: int
    repetitions: int
    calls: int
    seconds: float
    interval: Interval
    ratio: float
    ratio_interval: Interval
    regret: float
    regret_interval: Interval
    limit: float | None
    #: the algorithm that the call took, if the contender's name does not say so
    taken: str = ""

    @property
    def multiple(self) -> float | None:
        """The time as a multiple of the limit."""
        return self.seconds / self.limit if self.limit else None


def lines(outcome: Outcome, limit: float | None = None) -> list[Line]:
    """A line for each contender of a case; without a `limit` the copy is the limit."""
    contenders = [result.contender for result in outcome.results]
    if limit is None and COPY in contenders:
        limit = outcome.seconds(COPY)
    return [
        Line(
            case=outcome.case,
            contender=result.contender.name,
            launches=len(result.times),
            repetitions=sum(map(len, result.times)),
            calls=max(outcome.calls),
            seconds=result.seconds,
            interval=outcome.interval(result.contender),
            ratio=outcome.ratio(result.contender),
            ratio_interval=outcome.ratio_interval(result.contender),
            regret=outcome.regret(result.contender),
            regret_interval=outcome.regret_interval(result.contender),
            limit=None if result.contender == COPY else limit,
            taken=result.taken if result.taken != result.contender.algorithm else "",
        )
        for result in outcome.results
    ]


def is_native(line: Line) -> bool:
    """Whether a line shows the MPI library's own call."""
    return line.contender == NATIVE.name
