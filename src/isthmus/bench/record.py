"""The record of a measurement, and the files of a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import worker
from .environment import Software, environment, load
from .formats import as_csv, as_json
from .job import COPY, BenchJob
from .outcome import Line, Outcome, lines
from .place import Place
from .regret import mean, regrets

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Record(worker.Display):
    """A display that collects outcomes, and their lines with the limit of the place."""

    def __init__(self, place: Place) -> None:
        self.place, self.environment = place, environment()
        self.software = Software("")
        self.jobs: list[BenchJob] = []
        self.outcomes: list[Outcome] = []
        self.lines: list[Line] = []

    def about(self, software: Software) -> None:
        """Collect the MPI library and its variables."""
        self.software = software

    def outcome(self, outcome: Outcome) -> None:
        """Collect the outcome of a case."""
        self.outcomes.append(outcome)
        self.lines += lines(outcome, self.place.limit(outcome.case))

    def arrange(self, kinds: Sequence[str]) -> None:
        """Sort the lines by the order of `kinds`."""
        self.lines.sort(key=lambda line: kinds.index(line.case.kind))

    def whole_environment(self) -> dict[str, Any]:
        """The environment of the measurement, with software and place."""
        place = self.place
        return {
            **self.environment,
            "load at end": load(),
            "library": self.software.library,
            "variables": self.software.variables,
            "place": place.words,
            "rates": list(place.rates),
            "warning": place.warning,
        }

    def csv(self) -> str:
        """The lines as CSV."""
        ranks = sum(self.jobs[0].groups)
        return as_csv(
            self.lines,
            {
                "library": self.software.library,
                "processor": self.environment["processor"],
                "per_host": self.place.per_host or -(-ranks // self.place.hosts),
                "arrays": "same" if self.jobs[0].same_arrays else "fresh",
            },
        )

    def json(self) -> str:
        """The whole measurement as JSON."""
        return as_json(self.whole_environment(), self.jobs, self.outcomes, self.lines)

    def figure(self, title: str) -> Figure:
        """A picture of the times by size, with the limit; of a measurement of all
        candidates, of the regret."""
        from ..draw.bench import Dot, figure

        words = ", ".join(filter(None, [self.software.library, self.place.words]))
        if self.jobs[0].all_candidates:
            return self._regret_figure(title, words)
        dots = [
            Dot(
                line.case.kind or line.case.op,
                line.contender,
                line.case.each,
                line.seconds,
                *line.interval,
                line.limit,
            )
            for line in self.lines
            if line.contender != COPY.name
        ]
        return figure(title, words, dots)

    def _regret_figure(self, title: str, words: str) -> Figure:
        from ..draw.regret import figure

        of_cases = regrets(self.lines)
        cells = {(x.case.op, x.case.each): x.ratio for x in of_cases}
        words += f": mean {mean(of_cases):.3f}, worst {max(cells.values()):.2f}"
        return figure(title, words, cells)
