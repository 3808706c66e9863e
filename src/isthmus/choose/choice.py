"""The choice of `auto` for any collective, from sizes in bytes and a machine.

Without a communicator, as in `predict`, the choice is that of a communicator before a
trial, on equal hosts, without shared nodes.
"""

from __future__ import annotations

import numpy as np

from ..collectives.collective import (
    BETWEEN,
    BLOCK,
    INSIDE,
    NOTHING,
    VECTOR,
    Collective,
    Sizes,
)
from ..collectives.records import OF_MPI
from ..cost.machine import Machine
from ..schedules.registry import algorithms
from . import between, choose, inside, several
from .choose import Choice

#: the choice where isthmus has no candidate beside the MPI library's own call
_NATIVE_CALL = Choice("library", "as isthmus has no better one")
#: names of sizes in elements, in the order of the arguments of a closed form
_AMOUNTS = ("m", "k", "ka", "kb")


def choice(record: Collective, sizes: Sizes, machine: Machine) -> Choice | None:
    """The algorithm of a collective, with the reason.

    None where the choice depends on values of several ranks, which only a communicator
    can collect.
    """
    if record.name not in OF_MPI:
        return by_cost(record, sizes, 1, machine)
    if record.gives == NOTHING:
        return _NATIVE_CALL
    if record.groups == INSIDE:
        return _inside(record, sizes, machine)
    if record.groups == BETWEEN:
        return _between(record, sizes, machine)
    if "groups" not in sizes:
        return Choice("rotated", "as blocks may differ")
    counts = [np.array(group, np.int64) for group in sizes["groups"]]
    return several.allgatherv(counts, machine)


def _between(record: Collective, sizes: Sizes, machine: Machine) -> Choice | None:
    if record.is_rooted and record.gives == VECTOR:
        return between.rooted_vector(record.name, sizes["q"], sizes["m"], machine)
    if record.is_rooted and record.is_irregular:
        return Choice("linear", "as only the root knows all sizes")
    if record.is_rooted:
        return between.rooted_blocks(record.name, sizes["q"], sizes["k"], machine)
    p, q = record.ranks(sizes)
    if record.gives == VECTOR:
        m = sizes["m"] if record.gets == VECTOR else _vector(sizes)
        return between.reduction(record.name, p, q, m, machine, commutative=True)
    if record.gives == BLOCK:
        a = sizes.get("a") or [sizes["ka"]] * p
        b = sizes.get("b") or [sizes["kb"]] * q
        largest = max(*a, *b)
        groups = p, q, sum(a), sum(b), largest, record.is_irregular, machine
        return Choice(choose.inter_allgatherv(*groups), "without node memory")
    if record.is_irregular:
        return Choice("largest_first", "as blocks may differ")
    return between.alltoall(p, q, max(sizes["ka"], sizes["kb"]), machine)


def _vector(sizes: Sizes) -> int:
    """The bytes of the vector of a Reduce_scatter, from the blocks of group A."""
    if "a" in sizes:
        return int(sum(sizes["a"]))
    return int(sizes["p"] * sizes["ka"])


def _inside(record: Collective, sizes: Sizes, machine: Machine) -> Choice | None:
    if record.is_rooted and (record.gives != VECTOR or record.combines):
        return _NATIVE_CALL
    (p,) = record.ranks(sizes)
    if record.gives == BLOCK:
        counts = np.array(sizes["counts"], np.int64)
        return choose.allgatherv(counts, lambda: machine, True)
    if record.is_rooted:
        comparison = inside.bcast(p, sizes["m"], lambda: machine)
    elif record.combines and record.gets == VECTOR:
        comparison = inside.allreduce(p, sizes["m"], lambda: machine, True)
    elif record.combines:
        counts = np.array(sizes["counts"], np.int64)
        comparison = inside.reduce_scatter(counts, lambda: machine, True)
    elif record.is_irregular:
        return None
    else:
        comparison = inside.alltoall(p, sizes["k"], lambda: machine)
    own_choice, is_library_faster = comparison
    return Choice("library", own_choice.why) if is_library_faster else own_choice


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
    return between.cheapest(times, f"{record.name} of {sizes}")
