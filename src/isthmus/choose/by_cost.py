"""Which algorithm of a collective of which there is only a record."""

from __future__ import annotations

from ..collectives.collective import BETWEEN, Collective, Sizes
from ..schedules.registry import algorithms
from .between import cheapest
from .choose import Choice
from .estimate import Machine

#: sizes that are amounts, in the order in which a closed form takes them
_AMOUNTS = ("m", "k", "ka", "kb")


def by_cost(
    record: Collective,
    sizes: Sizes,
    unit: int,
    machine: Machine,
    *,
    is_ordered: bool = False,
) -> Choice:
    """The cheapest algorithm by the time that each claims, of sizes in elements of
    `unit` bytes; only those that combine in rank order, where that matters."""
    ranks = record.ranks(sizes)
    amounts = [unit * sizes[name] for name in _AMOUNTS if name in sizes]
    n = ranks if record.groups == BETWEEN else (sum(ranks),)
    times = {
        entry.name: entry.cost(*n, *amounts, machine.alpha, machine.beta)
        for entry in algorithms(record.name)
        if entry.needs(sum(ranks)) and not (is_ordered and entry.commutative)
    }
    if not times:
        raise ValueError(f"no algorithm of {record.name} fits groups of {ranks}")
    return cheapest(times, f"{record.name} of {sizes}")
