"""The operations that can be measured, and what each must move at the least.

Across two groups the root of a rooted operation is rank 0 of group A.
"""

from __future__ import annotations

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
INSIDE = ("bcast", "allgather", "allgatherv")
#: those with a persistent form, by the number of groups
PERSISTENT = {1: ("allgather", "allgatherv"), 2: ACROSS}
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
        raise ValueError(f"no operation {op!r}; known: {', '.join(known)}")


def must_move(op: str, a: tuple[int, ...], b: tuple[int, ...]) -> list[int]:
    """For each rank, bytes that must enter or must leave it, whichever are more.

    No algorithm needs less: a link passes them one after the other, each way. `a` and
    `b` are the sizes of the blocks of both groups; without `b`, inside one group.
    """
    return _across(op, a, b) if b else _inside(op, a)


def _inside(op: str, a: tuple[int, ...]) -> list[int]:
    if op == "bcast":
        return [a[0] if len(a) > 1 else 0] * len(a)
    # Who has nothing to receive may still have its own block to send.
    return [max(sum(a) - own, own if len(a) > 1 else 0) for own in a]


def _across(op: str, a: tuple[int, ...], b: tuple[int, ...]) -> list[int]:
    p, q = len(a), len(b)
    if op == "barrier":
        return [0] * (p + q)
    if op == "redistribution":  # what A has leaves it, what B gets enters it
        return [*a, *b]
    if op == "allreduce":  # each way, all but one must pass every element on
        return [round(2 * (p + q - 1) / (p + q) * a[0])] * (p + q)
    if op.startswith("reduce_scatter"):  # nobody keeps a part of its vector
        return [a[0]] * (p + q)
    if op == "bcast":
        return [a[0], *[0] * (p - 1), *[a[0]] * q]
    if op == "reduce":
        return [b[0], *[0] * (p - 1), *b]
    if op in ("gather", "gatherv", "scatter", "scatterv"):
        return [sum(b), *[0] * (p - 1), *b]
    if op.startswith("alltoall"):
        sent = [q * k for k in a] + [p * k for k in b]
        received = [sum(b)] * p + [sum(a)] * q
        return [max(pair) for pair in zip(sent, received, strict=True)]
    return [max(k, sum(b)) for k in a] + [max(k, sum(a)) for k in b]
