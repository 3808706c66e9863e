"""The results of one case, a line for each contender: what all forms of output show."""

from __future__ import annotations

from dataclasses import dataclass

from .bootstrap import Interval
from .job import LIMIT, NATIVE, Case
from .outcome import Outcome


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
