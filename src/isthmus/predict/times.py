"""The times of a prediction: of an algorithm, of a message; the limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..algorithms.parts.stages import stage_for
from ..cost.limit import Limit, limit as limit_of_contract
from ..cost.machine import Machine
from ..schedules.registry import find, resolve, unclaimed, with_startup
from .case import Case


@dataclass(frozen=True)
class Row:
    """The time of an algorithm, simulated or by its closed form."""

    name: str
    time: float
    rounds: int | None = None
    messages: int | None = None

    @property
    def formula(self) -> bool:
        """Whether the time is from the closed form."""
        return self.rounds is None


def limit(case: Case, model: Machine) -> Limit:
    """The limit of a case."""
    return limit_of_contract(case.contract, sum(case.groups), model)


def _stage_cost(name: str) -> Callable[..., float]:
    """The closed form of the stage in an algorithm's name, or of the default stage."""
    tail = name.partition("+")[2]

    def cost(n: int, k: float, alpha: float, beta: float) -> float:
        stage = find("allgatherv", tail or stage_for(n, int(n * k)))
        return stage.cost(n, k, alpha, beta)

    return cost


def has_formula(case: Case, name: str) -> bool:
    """Whether the time of an algorithm is known without a simulation."""
    return resolve(case.collective, name)[0].cost is not unclaimed


def formula(case: Case, model: Machine, name: str) -> Row:
    """The row by the closed form, as if all messages went to the farthest ranks."""
    entry, _ = resolve(case.collective, name)
    far = model.reached(sum(case.groups))
    machine = far.alpha, far.beta
    if case.collective.startswith("inter_allgather"):
        return Row(name, entry.cost(*case.claimed, *machine, _stage_cost(name)))
    return Row(name, entry.cost(*case.claimed, *machine))


def simulated(case: Case, model: Machine, name: str) -> Row:
    """The row by simulation of all ranks."""
    startup_bytes = model.reached(sum(case.groups)).startup_bytes
    algorithm = with_startup(case.collective, name, startup_bytes)
    timeline = case.schedule(algorithm).simulate(model)
    return Row(name, timeline.time, timeline.rounds, int(timeline.messages.sum()))


def startups(case: Case, model: Machine, row: Row) -> float:
    """The part of a time that does not grow with the bytes.

    Twice the time less the time of twice the bytes leaves the start-ups, if a time is
    start-ups and a multiple of the bytes.
    """
    row_of = formula if row.formula else simulated
    return min(
        max(2 * row.time - row_of(case.doubled(), model, row.name).time, 0), row.time
    )
