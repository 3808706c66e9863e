"""The choice of `auto`: an algorithm, from the sizes of a call and a machine.

Communicators, predictions and the tour ask `choice`: the candidate of the least time
wins (see `times`). It looks only at values that all ranks of a call know, since ranks
that choose differently would hang. Inside a group the MPI library's own call is a
candidate, and assumed to choose well among the algorithms of MPI libraries; between
groups a communicator tries the call (see `tried`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
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
from . import times
from .times import LIBRARY_NAME as LIBRARY_NAME

#: for fewer bytes in all, nothing beats the library's own call inside a group
SHORT_BYTES = 1 << 16
#: up to this size slow links cost little where start-ups are equal: with two of eight
#: hosts at a tenth of 200 Mbit/s the libraries' own Bcast, Reduce and Gather of 1 KiB
#: took 0.3 to 0.9 times the time of isthmus, since a link passes so much in a burst
SHORT_ON_SLOW_LINKS_BYTES = 1 << 12
#: the most bytes that a C int can count
MAX_INT = (1 << 31) - 1

#: a machine, or a function that measures a machine: called where costs decide, and not
#: for short calls inside a group
Costs: TypeAlias = Machine | Callable[[], Machine]


@dataclass(frozen=True)
class Choice:
    """An algorithm, and the reason for the choice."""

    name: str
    #: the reason, or what puts it into words: a call has no time for words unread
    reason: str | Callable[[], str]
    #: the best algorithm of isthmus, where the library's own call is chosen
    own: str = ""

    @property
    def algorithm(self) -> str:
        """The best algorithm of isthmus, for calls without a call of the library."""
        return self.own or self.name

    def __str__(self) -> str:
        reason = self.reason if isinstance(self.reason, str) else self.reason()
        return f"{self.name}, {reason}"


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
    by_size = _without_costs(record, sizes, is_ordered, hosts)
    if by_size is not None:
        return by_size
    costs = machine if isinstance(machine, Machine) else machine()
    if record.name in OF_MPI:
        seconds = times.candidates(record, sizes, costs, is_ordered, hosts)
    else:
        seconds = _claims(record, sizes, costs, is_ordered)
    best = min(seconds, key=lambda name: seconds[name])
    reason = partial(_reason, sizes, seconds, costs)
    if best != LIBRARY_NAME:
        return Choice(best, reason)
    ours = (name for name in seconds if name != LIBRARY_NAME)
    return Choice(best, reason, min(ours, key=lambda name: seconds[name]))


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


# -- choices that need no costs


def _without_costs(
    record: Collective, sizes: Sizes, is_ordered: bool, hosts: Hosts | None
) -> Choice | None:
    """The choice where data are short, or an int cannot count them, or ranks know too
    little of the sizes; None where costs decide."""
    if record.name not in OF_MPI or record.name == "alltoallv":
        return None
    if record.gives == NOTHING:
        return Choice(LIBRARY_NAME, "which is one call")
    if record.groups != INSIDE:
        only = _only_candidate(record)
        return Choice(only, "as no rank knows all sizes") if only else None
    (p,) = record.ranks(sizes)
    total, largest = _bytes(p, sizes)
    own = _for_short(record, p, total, is_ordered)
    is_short = total < SHORT_BYTES
    is_simple = p == 1 or (p == 2 and ("counts" in sizes or not is_short))
    if record.name == "allgatherv" and is_simple:
        return Choice("ring", "which is one message each way")
    if largest > MAX_INT and (record.is_rooted or record.name in _FOR_GIANTS):
        name = _FOR_GIANTS.get(record.name, own)
        return Choice(name, "for more bytes than an int can count")
    if hosts is not None:
        is_short = _is_short_on_links(largest, hosts)
    elif record.is_rooted and record.name != "bcast":
        is_short = True  # on equal hosts the library's call is as good as any
    if p <= 2 or is_short:
        return Choice(LIBRARY_NAME, partial(_words, sizes), own)
    return None


def _only_candidate(record: Collective) -> str | None:
    """The algorithm where a rank knows too little of the sizes for a choice."""
    if not record.is_irregular:
        return None
    if record.is_rooted:
        return "linear"
    if record.gives == BLOCKS:
        return "largest_first" if record.groups == BETWEEN else "rotated"
    return None


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


def _is_short_on_links(nbytes: int, hosts: Hosts) -> bool:
    """Whether a message is so short that slow links take no longer than others, on
    hosts with equal start-ups."""
    if nbytes > SHORT_ON_SLOW_LINKS_BYTES:
        return False
    return max(hosts.alphas) <= MIN_UNEQUAL_RATIO * min(hosts.alphas)


# -- reasons


def _reason(sizes: Sizes, seconds: times.Times, machine: Machine) -> str:
    """The times of all candidates, and the costs behind them."""
    listed = ", ".join(f"{name} {1e6 * t:.0f} µs" for name, t in seconds.items())
    return (
        f"{_words(sizes)}: {listed}, as messages take {1e6 * machine.alpha:.1f} µs and "
        f"{1e9 * machine.beta:.3f} ns a byte"
    )


def _words(sizes: Sizes) -> str:
    """The sizes of a call, by name."""
    values = (f"{name} = {_value(size)}" for name, size in sizes.items())
    return f"for {', '.join(values)}"


def _value(size: Any) -> str:
    if isinstance(size, int):
        return str(size)
    if isinstance(size, Sequence) and isinstance(size[0], Sequence | np.ndarray):
        return f"{len(size)} lists"
    group = times.group_of(size)
    return f"{group.total} bytes in {group.n} blocks, the largest {group.largest}"
