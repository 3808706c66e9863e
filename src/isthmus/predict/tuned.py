"""The machine that a tuning file describes, to simulate on."""

from __future__ import annotations

from dataclasses import dataclass

from ..choose.choose import BUILT_IN
from ..choose.estimate import MessageCosts
from ..choose.tuning import Tuning
from ..cost.machine import ALONE, Level, Machine
from ..schedules.registry import resolve


@dataclass(frozen=True)
class Tuned(Machine):
    """A measured machine, with the costs of messages by which choices are made."""

    costs: MessageCosts = BUILT_IN


def tuned(tuning: Tuning) -> Tuned:
    """The machine of a tuning, with the measured gaps and crowding; ranks fill nodes in
    order, as the measuring ranks did."""
    inside, between = tuning.inside, tuning.between
    levels = ALONE, _level(tuning.widest, None)
    if inside is not None and between is not None:
        levels = _level(inside, tuning.origin.each), _level(between, None)
    return Tuned(levels, costs=tuning.widest)


def fitted(collective: str, name: str, machine: Tuned) -> str:
    """The name of an algorithm with the start-up that a communicator would pass."""
    if "(" in name or "startup" not in resolve(collective, name)[0].options:
        return name
    return f"{name}(startup={max(machine.costs.startup_bytes, 1.0)})"


def _level(costs: MessageCosts, size: int | None) -> Level:
    """The costs of messages, as a level of a machine."""
    gap = min(costs.message, costs.alpha)
    return Level(size, costs.alpha, costs.beta, gap=gap, together=costs.gamma)
