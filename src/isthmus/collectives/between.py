"""Schedules of the collectives between two groups that have no root."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..schedules.ir import Index, Program
from ..schedules.layout import Blocks, Even, GroupBlocks, Rows, Side
from ..schedules.registry import Algorithm
from ..schedules.schedule import Made
from ..verify import contracts_between as contracts
from ..verify.contracts import Contract
from .sizes import checked, counts_of, uneven

#: what rank r of its group does, if the two sides are its own and the other
Between = Callable[[Index, Side, Side], Program]


def _between(
    a: GroupBlocks, b: GroupBlocks, contract: Contract, program: Between
) -> Made:
    """A collective of two groups, of a program for one rank or for all of a group."""
    sides = Side(0, a), Side(a.n, b)

    def of(r: Index) -> Program:
        mine = int(np.ravel(r)[0] >= a.n)
        here, there = sides[mine], sides[1 - mine]
        return program(r - here.base, here, there)

    return Made(contract, of, (range(a.n), range(a.n, a.n + b.n)))


def _ranks(p: int, q: int) -> tuple[Even, Even]:
    """Two groups in which a rank has nothing of its own to be found."""
    return Even(checked("p", p, 1), 0), Even(checked("q", q, 1), 0)


def _inter_allreduce(entry: Algorithm, _: None, *, p: int, q: int, m: int) -> Made:
    checked("m", m, 0)
    contract = contracts.inter_allreduce(p, q, m, entry.commutative)

    def program(r: Index, here: Side, there: Side) -> Program:
        return entry.program(r, here, there, m)

    return _between(*_ranks(p, q), contract, program)


def _scattered(entry: Algorithm, a: GroupBlocks, b: GroupBlocks) -> Made:
    if a.total != b.total:
        raise ValueError(
            f"the blocks of A are {a.total} elements together, those of B {b.total}: "
            "must be the same"
        )
    contract = contracts.inter_reduce_scatter(
        counts_of(a), counts_of(b), entry.commutative
    )
    return _between(a, b, contract, entry.program)


def _inter_reduce_scatter(
    entry: Algorithm, _: None, *, a: Sequence[int], b: Sequence[int]
) -> Made:
    return _scattered(entry, uneven("a", a), uneven("b", b))


def _inter_reduce_scatter_block(
    entry: Algorithm, _: None, *, p: int, q: int, ka: int, kb: int
) -> Made:
    a = Even(checked("p", p, 1), checked("ka", ka, 0))
    b = Even(checked("q", q, 1), checked("kb", kb, 0))
    return _scattered(entry, a, b)


def _inter_alltoall(
    entry: Algorithm, _: None, *, p: int, q: int, ka: int, kb: int
) -> Made:
    a, b = _ranks(p, q)
    checked("ka", ka, 0)
    checked("kb", kb, 0)
    contract = contracts.inter_alltoallv(np.full((p, q), ka), np.full((q, p), kb))

    def program(r: Index, here: Side, there: Side) -> Program:
        sent, received = (ka, kb) if here.base == 0 else (kb, ka)
        send, recv = Even(there.n, sent, "send"), Even(there.n, received)
        return entry.program(r, here, there, send, recv)

    return _between(a, b, contract, program)


def rows_of(name: str, rows: Sequence[Sequence[int]]) -> np.ndarray:
    """A table of counts, checked."""
    table = np.array(rows, np.int64)
    if table.ndim != 2 or table.size == 0:
        raise ValueError(f"{name} must be a table: a row for each sender")
    checked(f"a count in {name}", int(table.min()), 0)
    return table


def offsets(table: np.ndarray) -> np.ndarray:
    """Where the blocks of each row begin, and where the last ends."""
    return np.pad(np.cumsum(table, 1), ((0, 0), (1, 0)))


def _inter_alltoallv(
    entry: Algorithm,
    _: None,
    *,
    ab: Sequence[Sequence[int]],
    ba: Sequence[Sequence[int]],
) -> Made:
    to_b, to_a = rows_of("ab", ab), rows_of("ba", ba)
    if to_b.shape != to_a.shape[::-1]:
        raise ValueError(f"ab is {to_b.shape}, ba {to_a.shape}: must be p×q and q×p")
    sent = offsets(to_b), offsets(to_a)
    received = offsets(to_a.T), offsets(to_b.T)

    def program(r: Index, here: Side, there: Side) -> Program:
        mine = int(here.base > 0)
        blocks: tuple[Blocks, Blocks]
        blocks = Rows(sent[mine], r, "send"), Rows(received[mine], r)
        return entry.program(r, here, there, *blocks)

    contract = contracts.inter_alltoallv(to_b, to_a)
    return _between(*_ranks(*to_b.shape), contract, program)


def _inter_barrier(entry: Algorithm, _: None, *, p: int, q: int) -> Made:
    contract = contracts.inter_barrier(p, q)
    return _between(*_ranks(p, q), contract, entry.program)


BUILDERS: dict[str, Any] = {
    "inter_allreduce": _inter_allreduce,
    "inter_reduce_scatter": _inter_reduce_scatter,
    "inter_reduce_scatter_block": _inter_reduce_scatter_block,
    "inter_alltoall": _inter_alltoall,
    "inter_alltoallv": _inter_alltoallv,
    "inter_barrier": _inter_barrier,
}
