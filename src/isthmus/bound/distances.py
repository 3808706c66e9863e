"""The distances of algorithms from the optimum: every algorithm beside the bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

from ..collectives.records import schedule
from ..cost.machine import AlphaBeta, Machine
from ..schedules.registry import Algorithm, algorithms, find
from .demands import Problem, problem
from .steps import LeastSteps, startups, whole
from .transfer import transfer

#: the factor from sizes to long data; divisible by all numbers up to 10, so that blocks
#: are cut without a remainder
LONG_DATA_FACTOR = 2520
#: machines on which only start-ups take time, and only elements
STARTUPS_ONLY, ELEMENTS_ONLY = AlphaBeta(1.0, 0.0), AlphaBeta(0.0, 1.0)
#: sizes that are numbers of ranks, or the rank of the root
RANK_SIZES = ("p", "q", "root")


@dataclass(frozen=True)
class AlgorithmDistance:
    """An algorithm's start-ups, and the transfer times in elements.

    `transfer` is for data that can be cut at will, `whole` for indivisible elements.
    """

    name: str
    startups: float
    transfer: float
    whole: float


@dataclass(frozen=True)
class Bounds:
    """The least start-ups, and the least transfer times of data and of whole elements.

    The transfer time is None if the linear program took too long.
    """

    startups: LeastSteps
    transfer: float | None
    whole: LeastSteps


def _larger(sizes: dict[str, Any], times: int) -> dict[str, Any]:
    """The sizes times a factor, except numbers of ranks and the root."""

    def grown(size: Any) -> Any:
        return [grown(x) for x in size] if isinstance(size, list) else size * times

    return {
        name: size if name in RANK_SIZES else grown(size)
        for name, size in sizes.items()
    }


def _time(collective: str, name: str, model: Machine, sizes: dict[str, Any]) -> float:
    """The time of an algorithm on a machine, with pieces chosen for the machine.

    Pieces are short if only elements take time, and long if only start-ups do:
    otherwise the distance would be that of a badly set algorithm.
    """
    own_name, *stage_names = name.split("+")
    entries = [
        find(collective, own_name),
        *(find("allgatherv", x) for x in stage_names),
    ]
    option = "(startup=1)" if model is ELEMENTS_ONLY else "(startup=1e15)"
    algorithm_names = [x.name + option * ("startup" in x.options) for x in entries]
    return schedule(collective, "+".join(algorithm_names), **sizes).simulate(model).time


def _names(entry: Algorithm) -> tuple[str, ...]:
    """The algorithm's name; if staged, also with the stage for unequal blocks."""
    return (entry.name, f"{entry.name}+circulant") if entry.staged else (entry.name,)


def rows(collective: str, sizes: dict[str, Any]) -> Iterator[AlgorithmDistance]:
    """The distances of all algorithms without node memory that fit the sizes."""
    long_sizes = _larger(sizes, LONG_DATA_FACTOR)
    entries = (
        entry
        for entry in algorithms(collective)
        if not entry.node_memory and entry.name != "library"
    )
    for name in (name for entry in entries for name in _names(entry)):
        try:
            yield AlgorithmDistance(
                name,
                _time(collective, name, STARTUPS_ONLY, sizes),
                _time(collective, name, ELEMENTS_ONLY, long_sizes) / LONG_DATA_FACTOR,
                _time(collective, name, ELEMENTS_ONLY, sizes),
            )
        except ValueError:
            continue  # the algorithm is for groups of a different size


def bounds(
    collective: str,
    sizes: dict[str, Any],
    known: list[AlgorithmDistance],
    ports: int = 1,
    seconds: float = 20.0,
) -> Bounds:
    """The bounds of a case, each by a search of about `seconds`.

    No bound is above the time of a known algorithm, which ends the search early.
    """
    case: Problem = problem(collective, **sizes)
    fewest_known = {
        name: min((getattr(row, name) for row in known), default=inf)
        for name in ("startups", "whole")
    }
    least_transfer = transfer(case, ports, seconds)
    return Bounds(
        startups(case, ports, seconds, fewest_known["startups"]),
        least_transfer,
        whole(case, least_transfer or 0.0, ports, seconds, fewest_known["whole"]),
    )
