"""The operations that can be measured, and what each must move at the least.

Across two groups the root of a rooted operation is rank 0 of group A.
"""

from __future__ import annotations

from collections.abc import Sequence

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


def must_move(
    op: str, a: tuple[int, ...], b: tuple[int, ...], hosts: Sequence[int] | None = None
) -> list[int]:
    """For each host, bytes that must enter or must leave it, whichever are more.

    No algorithm needs less: a link passes them one after the other, each way. `a` and
    `b` are the sizes of the blocks of both groups; without `b`, inside one group.
    `hosts` says where each rank is, as numbers from 0 on; else each has its own.
    """
    where = range(len(a) + len(b)) if hosts is None else hosts
    placed = where[: len(a)], where[len(a) :]
    each = [
        _through(op, h, (a, b), placed) if b else _inside(op, h, a, placed[0])
        for h in range(max(where) + 1)
    ]
    return [max(x) for x in each]


def _inside(
    op: str, h: int, a: tuple[int, ...], hosts: Sequence[int]
) -> tuple[int, int]:
    """What must enter a host and leave it, inside one group."""
    if op == "bcast":  # of rank 0
        alone = len(set(hosts)) == 1
        own = hosts[0] == h
        return (0, 0) if alone else (0, a[0]) if own else (a[0], 0)
    here, n = list(hosts).count(h), len(a)
    if op == "allreduce":  # all hosts but one pass on every byte, in and out
        most = len(set(hosts))
        share = round(2 * (most - 1) / most * a[0]) if here else 0
        return share, share
    if op.startswith("reduce_scatter"):  # the parts of its ranks; all but those
        own_parts = a[0] * here // n
        return (own_parts, a[0] - own_parts) if 0 < here < n else (0, 0)
    if op.startswith("alltoall"):
        near = sum(k for k, at in zip(a, hosts, strict=True) if at == h)
        return (sum(a) - near) * here, near * (n - here)
    return _blocks(h, a, hosts, hosts)


def _blocks(
    h: int, sizes: tuple[int, ...], owners: Sequence[int], readers: Sequence[int]
) -> tuple[int, int]:
    """Everyone's block to all readers: once to each host, and once from where it is."""
    own = sum(n for n, at in zip(sizes, owners, strict=True) if at == h)
    needs = any(at == h for at in readers)
    wanted = any(at != h for at in readers)
    return (sum(sizes) - own) * needs, own * wanted


def _through(
    op: str,
    h: int,
    sizes: tuple[tuple[int, ...], tuple[int, ...]],
    placed: tuple[Sequence[int], Sequence[int]],
) -> tuple[int, int]:
    """What must enter a host and leave it, between two groups."""
    (a, b), (at_a, at_b) = sizes, placed
    has = [h in x for x in placed]
    root = at_a[0] == h
    if op == "barrier":
        return 0, 0
    if op == "redistribution":  # what A has leaves it, what B gets enters it
        alone = [*at_a, *at_b].count(h) == 1  # else we do not know who meets whom
        mine = sum(n for n, x in zip((*a, *b), (*at_a, *at_b), strict=True) if x == h)
        return (mine * has[1], mine * has[0]) if alone else (0, 0)
    if op == "allreduce":
        n = _summed(a[0], set(at_a), set(at_b))
        return n, n
    if op.startswith("reduce_scatter"):  # of the sums, only the parts of its own ranks
        n = a[0]
        parts = [x.count(h) / len(x) for x in map(list, placed)]
        return 0, round(sum(n * (1 - parts[1 - i]) for i in (0, 1) if has[i]))
    if op in ("bcast", "reduce"):
        n = a[0] if op == "bcast" else b[0]
        ends = n * any(x != h for x in at_b) * root, n * (has[1] and not root)
        return ends if op == "reduce" else ends[::-1]
    if op in ("gather", "gatherv", "scatter", "scatterv"):
        near = sum(n for n, x in zip(b, at_b, strict=True) if x == h)
        return (sum(b) - near) * root, near * (not root)
    if op.startswith("alltoall"):
        far = [sum(x != h for x in y) for y in placed]
        leaving = sum(
            n * far[1 - i]
            for i in (0, 1)
            for n, x in zip(sizes[i], placed[i], strict=True)
            if x == h
        )
        entering = sum(
            n * (len(placed[1 - i]) - far[1 - i])
            for i in (0, 1)
            for n, x in zip(sizes[i], placed[i], strict=True)
            if x != h
        )
        return entering, leaving
    ways = _blocks(h, a, at_a, at_b), _blocks(h, b, at_b, at_a)
    return ways[0][0] + ways[1][0], ways[0][1] + ways[1][1]


def _summed(n: int, a: set[int], b: set[int]) -> int:
    """Each sum is put together on one host and goes to all of the other group: what
    that takes, shared by all hosts."""
    crossings = len(a) + len(b) - 1 - bool(a & b)
    return round(2 * crossings / len(a | b) * n)
