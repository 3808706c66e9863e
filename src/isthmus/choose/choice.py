"""The choice of `auto`: an algorithm, from the sizes of a call and a machine.

Communicators, predictions, pictures and the tour ask `choice`: the candidate of the
least time wins (see `times`). It looks only at values that all ranks of a call know,
since ranks that choose differently would hang. Inside a group the MPI library's own
call is a candidate, and assumed to choose well among the algorithms of MPI libraries;
between groups a communicator tries the call (see `tried`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, TypeAlias

import numpy as np

from ..algorithms.parts.stages import stage_for
from ..collectives.collective import (
    BETWEEN,
    BLOCKS,
    INSIDE,
    NOTHING,
    VECTOR,
    Collective,
    Sizes,
)
from ..collectives.records import OF_MPI
from ..cost.machine import Machine
from ..schedules.hosts import MIN_UNEQUAL_RATIO, Hosts
from ..schedules.registry import algorithms, named
from . import times, unequal_hosts
from .times import MARGIN

#: the MPI library's own call as the outcome of a choice
LIBRARY_NAME = "library"
#: for fewer bytes in all, nothing beats the library's own call inside a group
SHORT_BYTES = 1 << 16
#: up to this size slow links cost little where start-ups are equal: with two of eight
#: hosts at a tenth of 200 Mbit/s the libraries' own Bcast, Reduce and Gather of 1 KiB
#: took 0.3 to 0.9 times the time of isthmus, since a link passes so much in a burst
SHORT_ON_SLOW_LINKS_BYTES = 1 << 12
#: the most bytes that a C int can count
MAX_INT = (1 << 31) - 1
#: the margin in shared memory if the library does not cut long blocks into pieces: its
#: loss on short blocks says little about long ones (measured with Open MPI)
MARGIN_OF_UNCUT_BLOCKS = 0.65

#: a machine, or a function that measures a machine: called where costs decide, and not
#: for short calls inside a group
Costs: TypeAlias = Machine | Callable[[], Machine]


@dataclass(frozen=True)
class Choice:
    """An algorithm, and the reason for the choice."""

    name: str
    why: str
    #: the best algorithm of isthmus, where the library's own call is chosen
    own: str = ""

    @property
    def algorithm(self) -> str:
        """The best algorithm of isthmus, for calls without a call of the library."""
        return self.own or self.name

    def __str__(self) -> str:
        return f"{self.name}, {self.why}"


def check(collective: str, name: str, commutative: bool = True) -> None:
    """Refuse an unknown algorithm, or an algorithm that needs a commutative operator
    if the operator is not."""
    entry = named(collective, name)
    if entry.commutative and not commutative:
        raise ValueError(
            f"{name!r} combines in any order, and the operator is not commutative"
        )


def choice(
    record: Collective,
    sizes: Sizes,
    machine: Costs,
    *,
    is_ordered: bool = False,
    hosts: Hosts | None = None,
) -> Choice:
    """The algorithm of a collective, with the reason.

    Sizes are in bytes, named as in the record; equal blocks inside a group are `p` and
    `k`, and a reduction between groups is known by `p`, `q` and `m`. If `is_ordered`,
    only algorithms that combine in rank order are candidates. `hosts` are those of the
    ranks of a rooted call, if unequal.
    """
    if record.gives == NOTHING:
        return Choice(LIBRARY_NAME, "which is one call")
    if record.groups == INSIDE and record.name in OF_MPI:
        return _inside(record, sizes, machine, is_ordered, hosts)
    only = _only_candidate(record)
    if only is not None:
        return Choice(only, "as no rank knows all sizes")
    costs = machine if isinstance(machine, Machine) else machine()
    if record.name not in OF_MPI:
        candidates = _claims(record, sizes, costs, is_ordered)
    elif record.is_rooted and hosts is not None:
        candidates = _simulated(record.name, sizes, costs, is_ordered, hosts)
    else:
        if record.combines and "m" not in sizes:
            sizes = _of_vector(record, sizes)
        candidates = times.candidates(record, sizes, costs, is_ordered)
    return _cheapest(candidates, _words(sizes))


def _only_candidate(record: Collective) -> str | None:
    """The algorithm where a rank knows too little of the sizes for a choice."""
    if not record.is_irregular or record.name not in OF_MPI:
        return None
    if record.is_rooted:
        return "linear"
    if record.gives == BLOCKS:
        return "largest_first" if record.groups == BETWEEN else "rotated"
    return None


def _of_vector(record: Collective, sizes: Sizes) -> Sizes:
    """The sizes of a reduction to blocks, by the groups and the vector."""
    p, q = record.ranks(sizes)
    vector = sum(sizes["a"]) if "a" in sizes else p * sizes["ka"]
    return {"p": p, "q": q, "m": int(vector)}


def _claims(
    record: Collective, sizes: Sizes, machine: Machine, is_ordered: bool
) -> times.Times:
    """The times that the algorithms of a program's own collective claim."""
    ranks = record.ranks(sizes)
    amounts = [sizes[name] for name in ("m", "k", "ka", "kb") if name in sizes]
    n = ranks if record.groups == BETWEEN else (sum(ranks),)
    claims = {
        entry.name: entry.cost(*n, *amounts, machine.alpha, machine.beta)
        for entry in algorithms(record.name)
        if entry.needs(sum(ranks)) and not (is_ordered and entry.commutative)
    }
    if not claims:
        raise ValueError(f"no algorithm of {record.name} fits groups of {ranks}")
    return claims


def _simulated(
    collective: str, sizes: Sizes, machine: Machine, is_ordered: bool, hosts: Hosts
) -> times.Times:
    """The times of a rooted collective's algorithms on unequal hosts."""
    ranks = {name: sizes[name] for name in ("q", "p", "root") if name in sizes}
    nbytes = sizes["m"] if "m" in sizes else sizes["k"]
    known = hosts, nbytes, machine.startup_bytes, not is_ordered
    return unequal_hosts.times(collective, *known, **ranks)


# -- inside a group


def _inside(
    record: Collective,
    sizes: Sizes,
    machine: Costs,
    is_ordered: bool,
    hosts: Hosts | None,
) -> Choice:
    """The choice beside the library's own call, which needs no costs where data are
    short or an int cannot count them."""
    (p,) = record.ranks(sizes)
    if record.name == "alltoallv":
        return _alltoallv(p, sizes, machine)
    total, largest = _bytes(p, sizes)
    case, own = f"for {_words(sizes)}", _for_short(record, p, total, is_ordered)
    is_short = total < SHORT_BYTES
    is_irregular = "counts" in sizes
    is_simple = p == 1 or (p == 2 and (is_irregular or not is_short))
    if record.name == "allgatherv" and is_simple:
        return Choice("ring", "which is one message each way")
    if largest > MAX_INT and (record.is_rooted or record.name in _FOR_GIANTS):
        return Choice(_FOR_GIANTS.get(record.name, own), f"{case}, more than an int")
    if hosts is not None and record.is_rooted:
        is_short = _is_short_on_links(largest, hosts)
    elif record.is_rooted and record.name != "bcast":
        return Choice(LIBRARY_NAME, case, own)  # as good as any on equal hosts
    if p <= 2 or is_short:
        return Choice(LIBRARY_NAME, case, own)
    costs = machine if isinstance(machine, Machine) else machine()
    if hosts is not None and record.is_rooted:
        contest = _contest_on_unequal_hosts(record, sizes, costs, is_ordered, hosts)
    else:
        contest = times.contest(record, sizes, costs, is_ordered)
    best = _if_clearly_faster(*contest, case, costs)
    # of equal estimates of an allgather the simpler algorithm
    is_left = record.name == "allgatherv" and best.name == LIBRARY_NAME
    return replace(best, own=own) if is_left else best


def _bytes(p: int, sizes: Sizes) -> tuple[int, int]:
    """The bytes of all blocks or of the vector, and those of the largest block; none
    where a rank does not know the sizes."""
    if "counts" in sizes:
        group = times.group_of(sizes["counts"])
        return group.total, group.largest
    if "m" in sizes:
        return sizes["m"], sizes["m"]
    block = sizes.get("k", 0)
    return p * block, block


#: the algorithms for blocks or vectors that an int cannot count, if there are others
#: for short ones
_FOR_GIANTS = {"allgatherv": "blocked_ring", "bcast": "circulant"}


def _for_short(record: Collective, p: int, total: int, is_ordered: bool) -> str:
    """The algorithm in place of the library's own call, which needs no costs."""
    if record.name == "allgatherv":
        return stage_for(p, total)
    if record.name == "reduce" and total >= SHORT_BYTES and not is_ordered:
        return "circulant"
    if record.name == "reduce_scatter":
        return "pairwise" if is_ordered else "bruck"
    if record.is_rooted:
        return "binomial" if record.gives == VECTOR else "linear"
    return "doubling" if record.combines else "rotated"


def _alltoallv(p: int, sizes: Sizes, machine: Costs) -> Choice:
    """The choice by the largest block, for which ranks ask only if that may pay."""
    costs = machine if isinstance(machine, Machine) else machine()
    if not times.asks(p, costs):
        return Choice(LIBRARY_NAME, f"on {p} processes", "rotated")
    largest = sizes["k"] if "k" in sizes else int(np.max(sizes["table"]))
    return _cheapest(times.alltoallv(p, largest, costs), f"{p} blocks of {largest}")


def _is_short_on_links(nbytes: int, hosts: Hosts) -> bool:
    """Whether a message is so short that slow links take no longer than others, on
    hosts with equal start-ups."""
    if nbytes > SHORT_ON_SLOW_LINKS_BYTES:
        return False
    return max(hosts.alphas) <= MIN_UNEQUAL_RATIO * min(hosts.alphas)


def _contest_on_unequal_hosts(
    record: Collective, sizes: Sizes, machine: Machine, is_ordered: bool, hosts: Hosts
) -> times.Contest:
    ours = _simulated(record.name, sizes, machine, is_ordered, hosts)
    if record.gives != VECTOR:
        # MPICH 5.0.2 takes the binomial algorithm, Open MPI 5.0.11 on few processes the
        # linear one: where the library's algorithm is the better one, ours is hardly
        # slower
        return ours, max(ours["linear"], ours["binomial"])
    library = ours["binomial"]
    if not is_ordered:
        # Rabenseifner's algorithm for long vectors: a reduce-scatter in few rounds and
        # a gather, which are a scatter and an allgather backwards
        bcast = (
            ours
            if record.name == "bcast"
            else _simulated("bcast", sizes, machine, is_ordered, hosts)
        )
        library = min(library, bcast["scatter_allgather"])
    return ours, library


def _if_clearly_faster(
    ours: times.Times, library: float, case: str, machine: Machine
) -> Choice:
    """The best algorithm if clearly faster than the library's call, else the call.

    The call is no candidate on a machine without a description of such calls.
    """
    best = min(ours, key=lambda name: ours[name])
    level, calls = machine.levels[-1], machine.library
    shares_memory = level.together > 0 and level.changing <= 1
    is_uncut = shares_memory and calls is not None and not calls.piece_bytes
    if calls is None:
        library = inf
    why = (
        f"{case}: {_listed({**ours, LIBRARY_NAME: library})}, as messages take "
        f"{1e6 * machine.alpha:.1f} µs and {1e9 * machine.beta:.3f} ns a byte"
    )
    if ours[best] <= (MARGIN_OF_UNCUT_BLOCKS if is_uncut else MARGIN) * library:
        return Choice(best, why)
    return Choice(LIBRARY_NAME, why, best)


# -- reasons


def _cheapest(candidates: times.Times, case: str) -> Choice:
    """The algorithm of the least time; the reason names the case and all times."""
    best = min(candidates, key=lambda name: candidates[name])
    return Choice(best, f"for {case}: {_listed(candidates)}")


def _listed(candidates: times.Times) -> str:
    return ", ".join(f"{name} {1e6 * t:.0f} µs" for name, t in candidates.items())


def _words(sizes: Sizes) -> str:
    """The sizes of a call, by name."""
    return ", ".join(f"{name} = {_value(size)}" for name, size in sizes.items())


def _value(size: Any) -> str:
    if isinstance(size, int):
        return str(size)
    if np.ndim(size[0] if isinstance(size, Sequence) else 0):
        return f"{len(size)} groups"
    group = times.group_of(size)
    return f"{group.total} bytes in {group.n} blocks, the largest {group.largest}"
