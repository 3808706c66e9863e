"""What came out of a measurement: every single time, what follows from them, and a line
for each contender, which is what all forms of output show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import NamedTuple

from .bootstrap import Interval, Resampled, resample
from .job import LIMIT, NATIVE, Case, Contender


class Progress(NamedTuple):
    """What is being measured, and how much of it is done, from 0 to 1."""

    words: str
    part: float


@dataclass(frozen=True)
class Result:
    """Times of one call of a contender, on the slowest rank: by launch, repetition; and
    the algorithm that it took."""

    contender: Contender
    times: tuple[tuple[float, ...], ...]
    taken: str = ""

    @property
    def seconds(self) -> float:
        """The median over the repetitions of all launches."""
        return median(time for launch in self.times for time in launch)


@dataclass(frozen=True)
class Outcome:
    """The results of all contenders in one case; every byte was right.

    `calls`: in each repetition, for each launch.
    """

    case: Case
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
        """How many times faster than the MPI library's own call."""
        return self.seconds(NATIVE) / self.seconds(contender)

    @cached_property
    def _resampled(self) -> Resampled:
        return resample([result.times for result in self.results])

    def interval(self, contender: Contender) -> Interval:
        """Where the median lies, with 95 % confidence."""
        return self._resampled.median(self._index(contender))

    def ratio_interval(self, contender: Contender) -> Interval:
        """Where the ratio to native lies, with 95 % confidence."""
        return self._resampled.ratio(self._index(NATIVE), self._index(contender))


def merge(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcomes of one case in several launches as one."""
    results = [
        Result(
            same[0].contender,
            tuple(t for result in same for t in result.times),
            " or ".join(sorted({result.taken for result in same})),
        )
        for same in zip(*(outcome.results for outcome in outcomes), strict=True)
    ]
    calls = tuple(n for outcome in outcomes for n in outcome.calls)
    return Outcome(outcomes[0].case, calls, tuple(results))


@dataclass(frozen=True)
class Line:
    """A contender in a case: medians with their intervals, in seconds.

    `ratio` is how many times faster than native it is. `limit` is the physical limit:
    on a lab that of its links, on one host the time of a copy; None if not known.
    """

    case: Case
    contender: str
    launches: int
    repetitions: int
    calls: int
    seconds: float
    interval: Interval
    ratio: float
    ratio_interval: Interval
    limit: float | None
    #: the algorithm that was taken, where that is not the contender's name
    taken: str = ""

    @property
    def multiple(self) -> float | None:
        """The time as a multiple of the limit."""
        return self.seconds / self.limit if self.limit else None


def lines(found: Outcome, limit: float | None = None) -> list[Line]:
    """A line for each contender; without a limit from elsewhere, that of a copy."""
    known = [result.contender for result in found.results]
    if limit is None and LIMIT in known:
        limit = found.seconds(LIMIT)
    return [
        Line(
            found.case,
            result.contender.name,
            len(result.times),
            sum(map(len, result.times)),
            max(found.calls),
            result.seconds,
            found.interval(result.contender),
            found.ratio(result.contender),
            found.ratio_interval(result.contender),
            None if result.contender == LIMIT else limit,
            result.taken if result.taken != result.contender.algorithm else "",
        )
        for result in found.results
    ]


def is_native(line: Line) -> bool:
    """Whether a line is that of the MPI library's own call."""
    return line.contender == NATIVE.name
