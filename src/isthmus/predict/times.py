"""The times of a prediction: of an algorithm, of a message; the limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..algorithms.parts.stages import stage_for
from ..cost.limit import Limit, limit as limit_of_contract
from ..schedules.ir import Index, Program, Recv, Round, Send, Span
from ..schedules.registry import find, resolve, unclaimed, with_startup
from ..schedules.schedule import Model, Schedule
from ..verify.contracts import Contract
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


def message(model: Model, n: int, ends: tuple[int, int], size: int) -> float:
    """The time of a message between two of n ranks."""
    source, target = ends

    def program(r: Index) -> Program:
        sent, received = Span("send", 0, size), Span("recv", 0, size)
        send = Send(target, (sent,), r == source)
        yield Round((Recv(source, (received,), r == target), send))

    no_contract = Contract(lambda r: {}, lambda r: {})
    message_schedule = Schedule(
        "message", "", lambda: no_contract, program, (range(n),)
    )
    return model.simulate(message_schedule).time


def limit(case: Case, model: Model) -> Limit:
    """The limit of a case, where a limit is known for the machine."""
    return limit_of_contract(case.contract, sum(case.groups), model)


def line(case: Case, model: Model) -> tuple[float, float]:
    """The alpha and the beta that describe a message between far ranks best."""
    size, n = max(*case.totals, 2), sum(case.groups)
    short, long = (message(model, n, (n - 1, 0), k) for k in (1, size))
    beta = (long - short) / (size - 1)
    return short - beta, beta


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


def formula(case: Case, model: Model, name: str) -> Row:
    """The row by the closed form, in the alpha-beta model nearest to the machine."""
    entry, _ = resolve(case.collective, name)
    machine = line(case, model)
    if case.collective.startswith("inter_allgather"):
        return Row(name, entry.cost(*case.claimed, *machine, _stage_cost(name)))
    return Row(name, entry.cost(*case.claimed, *machine))


def simulated(case: Case, model: Model, name: str) -> Row:
    """The row by simulation of all ranks."""
    (alpha, beta), algorithm = line(case, model), name
    if beta > 0:
        algorithm = with_startup(case.collective, name, alpha / beta)
    timeline = case.schedule(algorithm).simulate(model)
    return Row(name, timeline.time, timeline.rounds, int(timeline.messages.sum()))


def startups(case: Case, model: Model, row: Row) -> float:
    """The part of a time that does not grow with the bytes.

    Twice the time less the time of twice the bytes leaves the start-ups, if a time is
    start-ups and a multiple of the bytes.
    """
    row_of = formula if row.formula else simulated
    return min(
        max(2 * row.time - row_of(case.doubled(), model, row.name).time, 0), row.time
    )
