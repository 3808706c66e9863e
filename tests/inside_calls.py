"""Calls of every collective inside a group, and what they must give."""

from __future__ import annotations

from functools import reduce

import numpy as np
from mpi4py import MPI

from between import Case, data
from isthmus.collectives.records import record_of
from isthmus.schedules import registry

SUMS = ["Allreduce", "Reduce_scatter", "Reduce_scatter_block"]
EXCHANGES = ["Alltoall", "Alltoallv"]
ROOTED = ["Reduce", "Gather", "Gatherv", "Scatter", "Scatterv"]
OPERATIONS = [*SUMS, *EXCHANGES]
OPTIONS = {"Alltoall": ["bruck(radix=3)"], "Alltoallv": ["bruck(radix=3)"]}
OPTIONS["Reduce_scatter"] = ["circulant(n=3)"]
#: how many elements a block has, by its number
KINDS = {
    "equal": lambda i: 4,
    "zeros": lambda i: 3 * i % 5,
    "giant": lambda i: 1201 if i == 1 else 1,
    "long": lambda i: 997,
    "empty": lambda i: 0,
}


def first(wrong: list[list[str]]) -> str:
    """The first of all faults, if there are some."""
    return next((x for faults in wrong for x in faults), "")


def names(op: str, commutative: bool = True, n: int = 4) -> list[str]:
    """The algorithms for an operation in a group of n, some with options."""
    found = registry.algorithms(record_of(op, 1).name)
    fit = (a for a in found if a.needs(n))
    ours = [a.name for a in fit if commutative or not a.commutative]
    return ["auto", *ours, *(OPTIONS.get(op, []) if commutative else [])]


def sums(group, op, count, by=MPI.SUM, combine=np.add, in_place=False, turn=0):
    """The arguments of a sum, and what a rank must get."""
    p, r = group.size, group.rank
    counts = [count(i if op == "Reduce_scatter" else 1) for i in range(p)]
    n = count(1) if op == "Allreduce" else sum(counts)
    every = reduce(combine, (data(i, n, turn=turn) for i in range(p)))
    start = 0 if op == "Allreduce" else sum(counts[:r])
    size = n if op == "Allreduce" else counts[r]
    wanted, mine = every[start : start + size], data(r, n, turn=turn)
    more = (counts, by) if op == "Reduce_scatter" else (by,)
    if in_place:
        out = mine.copy()
        return Case((MPI.IN_PLACE, out, *more), out[:size], wanted), mine
    out = np.full(size, -1)
    return Case((mine, out, *more), out, wanted), mine


def exchanges(group, op, count, in_place=False, turn=0):
    """The arguments of an exchange, and what a rank must get; in place, blocks of two
    ranks are of one size."""
    p, r = group.size, group.rank

    def block(i, j):
        n = count(1) if op == "Alltoall" else count(i + j if in_place else i + 2 * j)
        return data(i + 50 * j, n, turn=turn)

    sent, got = [block(r, j) for j in range(p)], [block(i, r) for i in range(p)]
    mine, wanted = np.concatenate(sent), np.concatenate(got)
    out = mine.copy() if in_place else np.full(len(wanted), -1)
    send, recv = MPI.IN_PLACE if in_place else mine, out
    if op == "Alltoallv":
        recv = [out, [len(x) for x in got]]
        send = send if in_place else [mine, [len(x) for x in sent]]
    return Case((send, recv), out, wanted), mine


def gathers(group, op, count, turn=0):
    """The arguments of an Allgather or Allgatherv, and what a rank must get."""
    counts = [count(i if op.endswith("v") else 1) for i in range(group.size)]
    parts = [data(i, n, turn=turn) for i, n in enumerate(counts)]
    out = np.full(sum(counts), -1)
    spec = [out, counts] if op.endswith("v") else out
    return Case((parts[group.rank], spec), out, np.concatenate(parts))


def bcast(group, count, root, turn=0):
    """The arguments of a Bcast, and what a rank must get."""
    wanted = data(root, count(1), turn=turn)
    out = wanted.copy() if group.rank == root else np.full(len(wanted), -1)
    return Case((out, root), out, wanted)


def rooted(group, op, count, root, in_place=False, by=MPI.SUM, combine=np.add, turn=0):
    """The arguments of a call with a root, what a rank must get, and what must be in
    its receive buffer before."""
    p, r = group.size, group.rank
    is_v, is_root = op.endswith("v"), r == root
    counts = [count(i if is_v else 1) for i in range(p)]
    if op == "Reduce":
        parts = [data(i, count(1), turn=turn) for i in range(p)]
        wanted, own, rest = reduce(combine, parts), parts[r], (by, root)
    elif op.startswith("Gather"):
        parts = [data(i, n, turn=turn) for i, n in enumerate(counts)]
        wanted, own, rest = np.concatenate(parts), parts[r], (root,)
    else:
        parts = [data(root + 50 * i, n, turn=turn) for i, n in enumerate(counts)]
        whole, out = np.concatenate(parts), np.full(counts[r], -1)
        send = None if not is_root else [whole, counts] if is_v else whole
        if is_root and in_place:
            return Case((send, MPI.IN_PLACE, root), whole, whole.copy()), whole.copy()
        return Case((send, out, root), out, parts[r]), out.copy()
    if not is_root:
        return Case((own, None, *rest)), np.empty(0)
    out = np.full(len(wanted), -1)
    if in_place and op == "Reduce":
        out[:] = own
    elif in_place:
        start = sum(counts[:r])
        out[start : start + counts[r]] = own
    send = MPI.IN_PLACE if in_place else own
    recv = [out, counts] if is_v else out
    return Case((send, recv, *rest), out, wanted), out.copy()
