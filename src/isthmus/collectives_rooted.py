"""Schedules of a root and the leaves of another group: Bcast, Reduce, Gather, Scatter.

The other processes of the root's group take no part. So these are collectives of n =
q + 1 vertices: vertex 0 is the root, and leaf j of the q is vertex j + 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import contracts_rooted as contracts
from .ir import Index, Program
from .layout import Even, Leaves, Uneven
from .registry import resolve
from .schedules import Schedule
from .sizes import checked, counts_of, uneven


def _groups(n: int) -> tuple[range, range]:
    """The root, and the leaves."""
    return range(1), range(1, n)


def _whole(collective: str, full: str, q: int, m: int) -> Schedule:
    """All of m elements, from the root or to it."""
    entry, _ = resolve(collective, full)
    n = checked("q", q, 1) + 1
    checked("m", m, 0)
    if collective == "inter_bcast":
        contract = contracts.bcast(m)
    else:
        contract = contracts.reduce(n, m, entry.commutative)

    def program(v: Index) -> Program:
        return entry.program(n, v, m)

    return Schedule(collective, full, contract, program, _groups(n))


def _blocks(collective: str, full: str, group: Even | Uneven) -> Schedule:
    """A block of each leaf, from the root or to it."""
    entry, _ = resolve(collective, full)
    blocks, counts = Leaves(group), counts_of(group)
    gathers = collective.startswith("inter_gather")
    contract = (contracts.gatherv if gathers else contracts.scatterv)(counts)

    def program(v: Index) -> Program:
        return entry.program(blocks.n, v, blocks)

    return Schedule(collective, full, contract, program, _groups(blocks.n))


def _even(q: int, k: int) -> Even:
    return Even(checked("q", q, 1), checked("k", k, 0))


def _inter_bcast(full: str, *, q: int, m: int) -> Schedule:
    return _whole("inter_bcast", full, q, m)


def _inter_reduce(full: str, *, q: int, m: int) -> Schedule:
    return _whole("inter_reduce", full, q, m)


def _inter_gather(full: str, *, q: int, k: int) -> Schedule:
    return _blocks("inter_gather", full, _even(q, k))


def _inter_scatter(full: str, *, q: int, k: int) -> Schedule:
    return _blocks("inter_scatter", full, _even(q, k))


def _inter_gatherv(full: str, *, counts: Sequence[int]) -> Schedule:
    return _blocks("inter_gatherv", full, uneven("counts", counts))


def _inter_scatterv(full: str, *, counts: Sequence[int]) -> Schedule:
    return _blocks("inter_scatterv", full, uneven("counts", counts))


BUILDERS: dict[str, Any] = {
    "inter_bcast": _inter_bcast,
    "inter_reduce": _inter_reduce,
    "inter_gather": _inter_gather,
    "inter_gatherv": _inter_gatherv,
    "inter_scatter": _inter_scatter,
    "inter_scatterv": _inter_scatterv,
}
