"""The demands of a collective: the data that each process must have in the end.

For a bound, a collective is a set of multicasts, whatever the algorithm: data of a
process that further processes must have. A sum is a multicast backwards: reversed in
time, a reduction sends every part of the result from the receiving process to all
contributors, and takes as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..collectives.collective import BLOCKS, NOTHING, SEVERAL, VECTOR, Collective
from ..collectives.records import COLLECTIVES
from ..schedules.names import described
from ..spelling import unknown
from ..verify.contracts import Demand as Needs

#: the most processes of all groups together; larger linear programs take too long
MAX_BOUND_RANKS = 12


@dataclass(frozen=True)
class Demand:
    """A multicast: elements that a source has and all targets must have."""

    source: int
    targets: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class Problem:
    """The demands of n processes; if `reversed`, those of sums, backwards in time."""

    n: int
    demands: tuple[Demand, ...]
    reversed: bool = False

    @property
    def port(self) -> int:
        """The most elements that a process must send, or receive, by any algorithm."""
        sent = [0] * self.n
        received = [0] * self.n
        for x in self.demands:
            sent[x.source] += x.size
            for target in x.targets:
                received[target] += x.size
        return max(*sent, *received)


def has_bound(record: Collective) -> bool:
    """Whether a collective is a set of multicasts, forwards or backwards.

    The whole sum for many processes is neither, because data go both ways, and a
    barrier has no data.
    """
    if record.gives == NOTHING or (record.groups == SEVERAL and record.gives == BLOCKS):
        return False
    return not (record.combines and record.gets == VECTOR and not record.is_rooted)


def problem(collective: str, **sizes: Any) -> Problem:
    """The demands of a collective, with sizes as for `isthmus.schedule`."""
    known = [name for name, record in COLLECTIVES.items() if has_bound(record)]
    record = COLLECTIVES.get(collective)
    if record is None:
        raise ValueError(unknown("collective", collective, sorted(known)))
    if collective not in known:
        raise ValueError(
            f"{described(collective)} has no bound here; there are: "
            f"{', '.join(map(described, known))}"
        )
    if record.example.keys() != sizes.keys():
        takes, got = ", ".join(record.example), ", ".join(sizes)
        raise ValueError(f"{collective} takes {takes}; got {got}")
    n = sum(record.ranks(sizes))
    if n > MAX_BOUND_RANKS:
        raise ValueError(
            f"{n} processes: a bound is found for {MAX_BOUND_RANKS} at the most"
        )
    demands = _demands(record.promise(sizes).demand(), is_sum=record.combines)
    return Problem(
        n, tuple(x for x in demands if x.size and x.targets), record.combines
    )


def _demands(demand: Needs, *, is_sum: bool) -> Iterator[Demand]:
    """Each need of a contract as a multicast; for a sum backwards, from the receiving
    process to all contributors."""
    if isinstance(demand, np.ndarray):
        for i, j in np.argwhere(demand).tolist():
            if i != j:
                yield Demand(i, (j,), int(demand[i, j]))
        return
    for need in (x for x in demand if x.size):
        sources, targets = (
            [r for ranks in x for r in ranks] for x in (need.sources, need.targets)
        )
        if is_sum:
            sources, targets = targets, sources
        (source,) = sources
        yield Demand(source, tuple(r for r in targets if r != source), need.size)
