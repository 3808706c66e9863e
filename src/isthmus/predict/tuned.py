"""The machine that a tuning file describes, as a model to simulate on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..choose.estimate import MessageCosts
from ..choose.tuning import Tuning
from ..cost.machine import ALONE, Level, Machine
from ..cost.timeline import Timeline
from ..schedules.registry import resolve
from ..schedules.schedule import Schedule


@dataclass(frozen=True)
class Tuned:
    """The machine of a tuning, for simulation: ranks fill nodes in order, as the
    measuring ranks did."""

    tuning: Tuning

    @property
    def machine(self) -> MessageCosts:
        """The costs of messages by which choices are made."""
        costs = self.tuning.widest
        processes_per_node = self.tuning.origin.each if self.tuning.between else 1
        return replace(costs, sharing=processes_per_node)

    @property
    def model(self) -> Machine:
        """The machine to simulate on, with the measured gaps and crowding."""
        processes_per_node, tuning = self.tuning.origin.each, self.tuning
        if tuning.inside is None or tuning.between is None:
            return Machine((ALONE, _level(self.machine, None)))
        return Machine(
            (_level(tuning.inside, processes_per_node), _level(tuning.between, None))
        )

    def simulate(self, schedule: Schedule, record: bool = False) -> Timeline:
        """The timeline of a schedule on the machine."""
        return self.model.simulate(schedule, record)


def fitted(collective: str, name: str, tuned: Tuned) -> str:
    """The name of an algorithm with the start-up that a communicator would pass."""
    if "(" in name or "startup" not in resolve(collective, name)[0].options:
        return name
    return f"{name}(startup={max(tuned.machine.startup_bytes, 1.0)})"


def _level(costs: MessageCosts, size: int | None) -> Level:
    """The costs of messages, as a level of a machine."""
    gap = min(costs.message, costs.alpha)
    return Level(size, costs.alpha, costs.beta, gap=gap, together=costs.gamma)
