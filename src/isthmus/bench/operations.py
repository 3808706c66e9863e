"""The operations that can be measured.

Across two groups the root of a rooted operation is rank 0 of group A.
"""

from __future__ import annotations

from ..schedules.names import WHERE
from ..spelling import unknown

#: those of MPI between two groups
MPI_ACROSS = (
    "barrier",
    "bcast",
    "reduce",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "allreduce",
    "reduce_scatter",
    "reduce_scatter_block",
)
ACROSS = (*MPI_ACROSS, "redistribution")
#: those that isthmus has inside one group
INSIDE = (
    "bcast",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "allreduce",
    "reduce_scatter",
    "reduce_scatter_block",
)
#: those with a persistent form, by the number of groups
PERSISTENT = {1: INSIDE[1:], 2: ACROSS}
#: how people redistribute by hand
BY_HAND = ("isend", "gather_bcast")
#: those of a vector, and not of a block for each rank
VECTOR = ("bcast", "reduce", "allreduce", "reduce_scatter", "reduce_scatter_block")
#: those whose blocks may differ in size
UNEVEN = ("gatherv", "scatterv", "allgatherv", "alltoallv", "alltoallw")


def check(op: str, groups: tuple[int, ...]) -> None:
    """Refuse an operation that does not exist between or inside groups."""
    known = INSIDE if len(groups) == 1 else ACROSS
    if op not in known:
        raise ValueError(unknown("operation", op, known, WHERE[len(groups)]))


def buffer_bytes(op: str, a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """Bytes of all buffers of a measurement on one machine, roughly: what is sent, and
    what is received three times, as it comes, as it must be, and as it is made."""
    total = 0
    for mine, theirs in ((a, b), (b, a)) if b else ((a, a),):
        n = len(mine)
        if op == "barrier":
            continue
        if op.startswith("alltoall"):
            total += sum(mine) * len(theirs) + 3 * n * sum(theirs)
        elif op.startswith("allgather"):
            total += n * (sum(mine) + 3 * sum(theirs))
        elif op in VECTOR:
            total += 4 * n * max(mine)
        else:  # with a root, and a redistribution
            total += 3 * sum(theirs) + sum(mine)
    return total
