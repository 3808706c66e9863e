"""Schedules of a root and the leaves of another group: Bcast, Reduce, Gather, Scatter.

The other processes of the root's group take no part. So these are collectives of n =
q + 1 vertices: vertex 0 is the root, and leaf j of the q is vertex j + 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..schedules.layout import Even, Leaves, Uneven
from ..schedules.registry import Algorithm
from ..schedules.schedule import Made
from ..verify import contracts_rooted as contracts
from .sizes import checked, counts_of, uneven

#: from the counts of the leaves to what the collective promises
Promise = Callable[[Sequence[int]], contracts.Contract]


def _groups(n: int) -> tuple[range, range]:
    """The root, and the leaves."""
    return range(1), range(1, n)


def _inter_bcast(entry: Algorithm, _: None, *, q: int, m: int) -> Made:
    n = checked("q", q, 1) + 1
    contract = contracts.bcast(checked("m", m, 0))
    return Made(contract, lambda v: entry.program(n, v, m), _groups(n))


def _inter_reduce(entry: Algorithm, _: None, *, q: int, m: int) -> Made:
    n = checked("q", q, 1) + 1
    contract = contracts.reduce(n, checked("m", m, 0), entry.commutative)
    return Made(contract, lambda v: entry.program(n, v, m), _groups(n))


def _blocks(entry: Algorithm, group: Even | Uneven, promise: Promise) -> Made:
    """A block of each leaf, from the root or to it."""
    blocks, contract = Leaves(group), promise(counts_of(group))
    n = blocks.n
    return Made(contract, lambda v: entry.program(n, v, blocks), _groups(n))


def _even(q: int, k: int) -> Even:
    return Even(checked("q", q, 1), checked("k", k, 0))


def _inter_gather(entry: Algorithm, _: None, *, q: int, k: int) -> Made:
    return _blocks(entry, _even(q, k), contracts.gatherv)


def _inter_scatter(entry: Algorithm, _: None, *, q: int, k: int) -> Made:
    return _blocks(entry, _even(q, k), contracts.scatterv)


def _inter_gatherv(entry: Algorithm, _: None, *, counts: Sequence[int]) -> Made:
    return _blocks(entry, uneven("counts", counts), contracts.gatherv)


def _inter_scatterv(entry: Algorithm, _: None, *, counts: Sequence[int]) -> Made:
    return _blocks(entry, uneven("counts", counts), contracts.scatterv)


BUILDERS: dict[str, Any] = {
    "inter_bcast": _inter_bcast,
    "inter_reduce": _inter_reduce,
    "inter_gather": _inter_gather,
    "inter_gatherv": _inter_gatherv,
    "inter_scatter": _inter_scatter,
    "inter_scatterv": _inter_scatterv,
}
