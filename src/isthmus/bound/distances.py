"""Every algorithm beside the bounds of a case: how far it is from optimal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

from ..collectives.records import schedule
from ..cost.alphabeta import AlphaBeta
from ..schedules.registry import Algorithm, algorithms, find
from .demands import Problem, problem
from .steps import Fewest, startups, whole
from .transfer import transfer

#: sizes are taken so many times for the time of long data; all up to 10 divide it
LONG = 2520
#: where only start-ups count, and where only elements do
STARTUPS, ELEMENTS = AlphaBeta(1.0, 0.0), AlphaBeta(0.0, 1.0)
#: sizes that say how many ranks there are, or which one is the root
RANKS = ("p", "q", "root")


@dataclass(frozen=True)
class Row:
    """An algorithm: its start-ups, the elements' time of data that can be cut at will,
    in multiples of the sizes given, and of elements that cannot."""

    name: str
    startups: float
    transfer: float
    whole: float


@dataclass(frozen=True)
class Bounds:
    """The least start-ups, the least transfer time of data that can be cut at will, and
    of whole elements; None where it took too long to find out."""

    startups: Fewest
    transfer: float | None
    whole: Fewest


def _larger(sizes: dict[str, Any], times: int) -> dict[str, Any]:
    """The sizes, but for the ranks, so many times as large."""

    def grown(size: Any) -> Any:
        return [grown(x) for x in size] if isinstance(size, list) else size * times

    return {
        name: size if name in RANKS else grown(size) for name, size in sizes.items()
    }


def _time(collective: str, name: str, model: AlphaBeta, sizes: dict[str, Any]) -> float:
    """With short pieces where only elements count, with long ones where only start-ups
    do, if the algorithm or its stage asks for that."""
    first, *stage = name.split("+")
    entries = [find(collective, first), *(find("allgatherv", x) for x in stage)]
    option = "(startup=1)" if model is ELEMENTS else "(startup=1e15)"
    told = [x.name + option * ("startup" in x.options) for x in entries]
    return schedule(collective, "+".join(told), **sizes).simulate(model).time


def _names(entry: Algorithm) -> tuple[str, ...]:
    """With its own stage, if it has one, and with the one for unequal blocks."""
    return (entry.name, f"{entry.name}+circulant") if entry.staged else (entry.name,)


def rows(collective: str, sizes: dict[str, Any]) -> Iterator[Row]:
    """Every algorithm without node memory that works for these sizes."""
    long = _larger(sizes, LONG)
    entries = (
        entry
        for entry in algorithms(collective)
        if not entry.node_memory and entry.name != "library"
    )
    for name in (name for entry in entries for name in _names(entry)):
        try:
            yield Row(
                name,
                _time(collective, name, STARTUPS, sizes),
                _time(collective, name, ELEMENTS, long) / LONG,
                _time(collective, name, ELEMENTS, sizes),
            )
        except ValueError:
            # made for groups of other sizes
            continue


def bounds(
    collective: str,
    sizes: dict[str, Any],
    known: list[Row],
    ports: int = 1,
    seconds: float = 20.0,
) -> Bounds:
    """The bounds of a case, each found in about so many seconds; no bound is above what
    a known algorithm takes."""
    found: Problem = problem(collective, **sizes)
    best = {
        name: min((getattr(row, name) for row in known), default=inf)
        for name in ("startups", "whole")
    }
    least = transfer(found, ports, seconds)
    return Bounds(
        startups(found, ports, seconds, best["startups"]),
        least,
        whole(found, least or 0.0, ports, seconds, best["whole"]),
    )
