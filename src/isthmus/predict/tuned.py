"""The machine that a tuning file describes, to simulate on."""

from __future__ import annotations

from dataclasses import dataclass

from ..choose.choose import BUILT_IN
from ..choose.estimate import MessageCosts
from ..choose.tuning import Tuning
from ..cost.machine import ALONE, Level, Machine


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


def _level(costs: MessageCosts, size: int | None) -> Level:
    """The costs of messages, as a level of a machine."""
    gap = min(costs.message, costs.alpha)
    return Level(size, costs.alpha, costs.beta, gap=gap, together=costs.gamma)
