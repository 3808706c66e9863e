"""What `auto` takes: the choice for any collective, of sizes in bytes and a machine.

Who asks without a communicator, as `predict` does, gets what a communicator takes where
nothing was tried, no nodes are shared and all hosts are alike.
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
from . import between, choose, inside, several
from .by_cost import by_cost
from .choose import Choice
from .estimate import Machine

#: the MPI library's own call, where nothing of ours is a candidate
_LIBRARY = Choice("library", "as isthmus has no better one")


def choice(record: Collective, sizes: Sizes, machine: Machine) -> Choice | None:
    """The algorithm of a collective and why; None where no rank alone could say, as
    only a communicator can ask the others."""
    if record.name not in OF_MPI:
        return by_cost(record, sizes, 1, machine)
    if record.gives == NOTHING:
        return _LIBRARY
    if record.groups == INSIDE:
        return _inside(record, sizes, machine)
    if record.groups == BETWEEN:
        return _between(record, sizes, machine)
    if "groups" not in sizes:
        return Choice("rotated", "as blocks may differ")
    counts = [np.array(x, np.int64) for x in sizes["groups"]]
    return several.allgatherv(counts, machine)


def _between(record: Collective, sizes: Sizes, machine: Machine) -> Choice | None:
    if record.is_rooted and record.gives == VECTOR:
        return between.whole(record.name, sizes["q"], sizes["m"], machine)
    if record.is_rooted and record.is_irregular:
        return Choice("linear", "as only the root knows all sizes")
    if record.is_rooted:
        return between.blocks(record.name, sizes["q"], sizes["k"], machine)
    p, q = record.ranks(sizes)
    if record.gives == VECTOR:
        m = sizes["m"] if record.gets == VECTOR else _vector(sizes)
        return between.combined(record.name, p, q, m, machine, commutative=True)
    if record.gives == BLOCK:
        a = sizes.get("a") or [sizes["ka"]] * p
        b = sizes.get("b") or [sizes["kb"]] * q
        largest = max(*a, *b)
        groups = p, q, sum(a), sum(b), largest, record.is_irregular, machine
        return Choice(choose.inter_allgatherv(*groups), "without node memory")
    if record.is_irregular:
        return Choice("largest_first", "as blocks may differ")
    return between.exchange(p, q, max(sizes["ka"], sizes["kb"]), machine)


def _vector(sizes: Sizes) -> int:
    """The bytes of a vector that is cut into the blocks of a group."""
    if "a" in sizes:
        return int(sum(sizes["a"]))
    return int(sizes["p"] * sizes["ka"])


def _inside(record: Collective, sizes: Sizes, machine: Machine) -> Choice | None:
    if record.is_rooted and (record.gives != VECTOR or record.combines):
        return _LIBRARY
    (p,) = record.ranks(sizes)
    if record.gives == BLOCK:
        counts = np.array(sizes["counts"], np.int64)
        return choose.allgatherv(counts, lambda: machine, True, machine.small)
    if record.is_rooted:
        weighed = inside.bcast(p, sizes["m"], lambda: machine, machine.small)
    elif record.combines and record.gets == VECTOR:
        weighed = inside.allreduce(p, sizes["m"], lambda: machine, True, machine.small)
    elif record.combines:
        counts = np.array(sizes["counts"], np.int64)
        weighed = inside.reduce_scatter(counts, lambda: machine, True, machine.small)
    elif record.is_irregular:
        return None
    else:
        weighed = inside.alltoall(p, sizes["k"], lambda: machine, machine.small)
    ours, is_left = weighed
    return Choice("library", ours.why) if is_left else ours
