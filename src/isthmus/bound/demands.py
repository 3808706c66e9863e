"""The demands of a collective: the data that each process must have in the end.

Every collective here is a set of multicasts, whatever the algorithm: data of one
process that others must have. A sum is a multicast backwards: reversed in time, a
reduction hands every part of the result from the process that gets it to all that
contribute, so it takes as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from ..collectives.records import COLLECTIVES
from ..schedules.names import described
from ..spelling import unknown

#: the most processes of all groups together: linear programs of more take too long
MAX_BOUND_RANKS = 12


@dataclass(frozen=True)
class Demand:
    """Elements that one process has and others must have."""

    source: int
    targets: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class Problem:
    """The demands of n processes; of sums, reversed in time."""

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


def _problem(n: int, demands: Sequence[Demand], reverse: bool = False) -> Problem:
    if n > MAX_BOUND_RANKS:
        raise ValueError(
            f"{n} processes: a bound is found for {MAX_BOUND_RANKS} at the most"
        )
    nonempty = [x for x in demands if x.size and x.targets]
    return Problem(n, tuple(nonempty), reverse)


def _others(n: int, r: int) -> tuple[int, ...]:
    return tuple(i for i in range(n) if i != r)


def _to_other_groups(groups: Sequence[Sequence[int]], reverse: bool) -> Problem:
    """Each process's block, to all processes of the other groups."""
    bases = [0, *accumulate(map(len, groups))]
    n = bases[-1]
    demands = []
    for i, counts in enumerate(groups):
        others = tuple(r for r in range(n) if not bases[i] <= r < bases[i + 1])
        for x, k in enumerate(counts):
            demands.append(Demand(bases[i] + x, others, k))
    return _problem(n, demands, reverse)


def _table(rows: Sequence[Sequence[int]]) -> Problem:
    n = len(rows)
    entries = [(i, j, k) for i, row in enumerate(rows) for j, k in enumerate(row)]
    return _problem(n, [Demand(i, (j,), k) for i, j, k in entries if i != j])


def _between(ab: Sequence[Sequence[int]], ba: Sequence[Sequence[int]]) -> Problem:
    p, q = len(ab), len(ba)
    rows = [[0] * p + list(row) for row in ab] + [list(row) + [0] * q for row in ba]
    return _table(rows)


def problem(collective: str, **sizes: Any) -> Problem:
    """The problem of a collective, with sizes as `isthmus.schedule` takes them."""
    record = COLLECTIVES.get(collective)
    if record is None:
        raise ValueError(
            unknown("collective", collective, sorted(PROBLEM_OF_COLLECTIVE))
        )
    if collective not in PROBLEM_OF_COLLECTIVE:
        known = ", ".join(map(described, PROBLEM_OF_COLLECTIVE))
        raise ValueError(
            f"{described(collective)} has no bound here; there are: {known}"
        )
    if record.example.keys() != sizes.keys():
        takes, got = ", ".join(record.example), ", ".join(sizes)
        raise ValueError(f"{collective} takes {takes}; got {got}")
    case: Problem = PROBLEM_OF_COLLECTIVE[collective](**sizes)
    return case


def _equal(p: int, q: int, ka: int, kb: int) -> tuple[list[int], list[int]]:
    return [ka] * p, [kb] * q


def _rooted(n: int, root: int, m: int, reverse: bool) -> Problem:
    return _problem(n, [Demand(root, _others(n, root), m)], reverse)


def _each(counts: Sequence[int], root: int, out: bool) -> Problem:
    """A block from the root to every other process, or to the root from each."""
    other_blocks = [(i, k) for i, k in enumerate(counts) if i != root]
    demands = [
        Demand(root, (i,), k) if out else Demand(i, (root,), k) for i, k in other_blocks
    ]
    return _problem(len(counts), demands)


def _inside(counts: Sequence[int], reverse: bool = False) -> Problem:
    n = len(counts)
    return _problem(
        n, [Demand(i, _others(n, i), k) for i, k in enumerate(counts)], reverse
    )


PROBLEM_OF_COLLECTIVE: dict[str, Any] = {
    "inter_allgather": lambda **s: _to_other_groups(_equal(**s), False),
    "inter_allgatherv": lambda a, b: _to_other_groups([a, b], False),
    "inter_reduce_scatter": lambda a, b: _to_other_groups([a, b], True),
    "inter_reduce_scatter_block": lambda **s: _to_other_groups(_equal(**s), True),
    "inter_alltoall": lambda p, q, ka, kb: _between([[ka] * q] * p, [[kb] * p] * q),
    "inter_alltoallv": lambda ab, ba: _between(ab, ba),
    "inter_bcast": lambda q, m: _rooted(q + 1, 0, m, False),
    "inter_reduce": lambda q, m: _rooted(q + 1, 0, m, True),
    "inter_gather": lambda q, k: _each([0] + [k] * q, 0, False),
    "inter_gatherv": lambda counts: _each([0, *counts], 0, False),
    "inter_scatter": lambda q, k: _each([0] + [k] * q, 0, True),
    "inter_scatterv": lambda counts: _each([0, *counts], 0, True),
    "multi_allgatherv": lambda groups: _to_other_groups(groups, False),
    "allgatherv": lambda counts: _inside(counts),
    "reduce_scatter": lambda counts: _inside(counts, True),
    "bcast": lambda p, m, root: _rooted(p, root, m, False),
    "reduce": lambda p, m, root: _rooted(p, root, m, True),
    "gatherv": lambda counts, root: _each(counts, root, False),
    "scatterv": lambda counts, root: _each(counts, root, True),
    "alltoall": lambda p, k: _table([[k] * p] * p),
    "alltoallv": lambda table: _table(table),
}
