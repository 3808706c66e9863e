"""Calls among several groups, and what they must give."""

from __future__ import annotations

import numpy as np

from between import Case, data
from isthmus.schedules import registry

OPERATIONS = ["Allgather", "Allgatherv", "Alltoall", "Alltoallv"]


def names(op):
    found = registry.algorithms("multi_" + op.lower().rstrip("v") + "v")
    staged = ["merged+circulant", "balanced+ring", "ring(size=400)"]
    return ["auto", *(a.name for a in found), *(staged if "gather" in op else [])]


def numbered(shape):
    """The ranks of each group, in the order of the groups' first ranks."""
    found = {}
    for rank, name in enumerate(shape):
        found.setdefault(name, []).append(rank)
    return list(found.values())


def others(shape, rank):
    return [r for ranks in numbered(shape) if rank not in ranks for r in ranks]


def call(comm, shape, op, count, turn=0):
    """The arguments of one rank, and what it must get."""
    me, there, v = comm.rank, others(shape, comm.rank), op.endswith("v")

    def block(i, j):
        n = count(i if "gather" in op else i + 2 * j) if v else count(1)
        return data(i if "gather" in op else i + 50 * j, n, turn=turn)

    got = [block(i, me) for i in there]
    wanted = np.concatenate([*got, np.empty(0, "i8")])
    out = np.full(len(wanted), -1)
    recv = [out, [len(x) for x in got]] if v else out
    if "gather" in op:
        return Case((block(me, 0), recv), out, wanted)
    sent = [block(me, j) for j in there]
    send = np.concatenate([*sent, np.empty(0, "i8")])
    return Case(([send, [len(x) for x in sent]] if v else send, recv), out, wanted)
