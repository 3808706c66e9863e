"""The machine that a tuning file describes, as a model to simulate on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..choose.estimate import Machine as Costs
from ..choose.tuning import Tuning
from ..cost.machine import AlphaBeta, Level, Machine
from ..cost.timeline import Timeline
from ..schedules.registry import resolve
from ..schedules.schedule import Schedule


@dataclass(frozen=True)
class Tuned:
    """The machine of a tuning, for simulation.

    Ranks in order fill nodes as those did that measured. All of them are taken to send
    at once, so each has its share of what they have together.
    """

    tuning: Tuning

    @property
    def machine(self) -> Costs:
        """What choices are made by."""
        found = self.tuning.widest
        each = self.tuning.origin.each if self.tuning.between else 1
        return replace(found, sharing=each)

    def model(self, n: int) -> Machine:
        """The model for so many ranks."""
        each, found = self.tuning.origin.each, self.tuning
        if found.inside is None or found.between is None:
            return AlphaBeta(self.machine.alpha, _crowded(self.machine, n))
        near = _crowded(found.inside, min(n, each))
        far = _crowded(found.between, -(-n // each))
        node = Level(each, found.inside.alpha, near)
        return Machine((node, Level(None, found.between.alpha, far)))

    def simulate(self, schedule: Schedule, record: bool = False) -> Timeline:
        """The timeline of a schedule on this machine."""
        return self.model(schedule.n).simulate(schedule, record)


def fitted(collective: str, name: str, tuned: Tuned) -> str:
    """The name of an algorithm with the start-up that a communicator would give it."""
    if "(" in name or "startup" not in resolve(collective, name)[0].options:
        return name
    return f"{name}(startup={max(tuned.machine.startup, 1.0)})"


def _crowded(machine: Costs, n: int) -> float:
    """Seconds a byte where n ranks send at once."""
    return max(machine.beta, machine.gamma * n)
