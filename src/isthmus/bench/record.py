"""All that one measurement found, and the files that can be made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import worker
from .environment import Software, environment, load
from .formats import as_csv, as_json
from .job import LIMIT, Job
from .outcome import Line, Outcome, lines
from .place import Place

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Record(worker.Display):
    """Keeps what jobs tell: outcomes, and what they are in the light of the limit."""

    def __init__(self, place: Place) -> None:
        self.place, self.environment = place, environment()
        self.software = Software("")
        self.jobs: list[Job] = []
        self.outcomes: list[Outcome] = []
        self.lines: list[Line] = []

    def about(self, software: Software) -> None:
        """What it runs on."""
        self.software = software

    def outcome(self, found: Outcome) -> None:
        """A case is measured."""
        self.outcomes.append(found)
        self.lines += lines(found, self.place.limit(found.case))

    def arrange(self, kinds: Sequence[str]) -> None:
        """Put the lines into the order of these kinds."""
        self.lines.sort(key=lambda line: kinds.index(line.case.kind))

    def whole_environment(self) -> dict[str, Any]:
        """Where this was measured."""
        found = self.environment | {"load at end": load()}
        found |= {"library": self.software.library}
        found |= {"variables": self.software.variables, "place": self.place.words}
        return found | {"rates": list(self.place.rates), "warning": self.place.warning}

    def csv(self) -> str:
        """The summary."""
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
        """Everything."""
        return as_json(self.whole_environment(), self.jobs, self.outcomes, self.lines)

    def figure(self, title: str) -> Figure:
        """The times, with the limit."""
        from ..draw.bench import Dot, figure

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
            if line.contender != LIMIT.name
        ]
        words = [self.software.library, self.place.words]
        return figure(title, ", ".join(filter(None, words)), dots)
