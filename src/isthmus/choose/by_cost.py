"""The default algorithm of a collective without a rule of isthmus, by its record."""

from __future__ import annotations

from ..collectives.collective import BETWEEN, Collective, Sizes
from ..cost.machine import Machine
from ..schedules.registry import algorithms
from .between import cheapest
from .choose import Choice

#: names of sizes in elements, in the order of the arguments of a closed form
_AMOUNTS = ("m", "k", "ka", "kb")


def by_cost(
    record: Collective,
    sizes: Sizes,
    unit: int,
    machine: Machine,
    *,
    is_ordered: bool = False,
) -> Choice:
    """The cheapest algorithm by claimed times, of sizes in elements of `unit` bytes.

    If `is_ordered`, only of algorithms that combine in rank order.
    """
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
