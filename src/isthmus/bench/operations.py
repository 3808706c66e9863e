"""The operations that can be measured.

Across two groups the root of a rooted operation is rank 0 of group A.
"""

from __future__ import annotations

from ..collectives.collective import BETWEEN, BLOCK, BLOCKS, NOTHING, VECTOR
from ..collectives.records import made_by, operations
from ..schedules.names import WHERE
from ..spelling import unknown

#: what is no operation of MPI, and only between groups
REDISTRIBUTION = "redistribution"
#: how people redistribute by hand
BY_HAND = ("isend", "gather_bcast")


def measured(groups: int) -> list[str]:
    """The operations that can be measured, of so many groups."""
    names = [x.lower() for x in operations(groups, on_mpi=True)]
    return [*names, REDISTRIBUTION] if groups > 1 else names


def is_vector(op: str) -> bool:
    """Whether every rank gives a vector, and not a block for each or of its own."""
    return op != REDISTRIBUTION and made_by(op, BETWEEN).gives == VECTOR


def may_be_uneven(op: str) -> bool:
    """Whether blocks may differ in size."""
    if op == REDISTRIBUTION:
        return False
    record = made_by(op, BETWEEN)
    return record.is_irregular and record.gives != VECTOR


def check(op: str, groups: tuple[int, ...]) -> None:
    """Refuse an operation that does not exist between or inside groups."""
    known = measured(len(groups))
    if op not in known:
        raise ValueError(unknown("operation", op, known, WHERE[len(groups)]))


def buffer_bytes(op: str, a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """Bytes of all buffers of a measurement on one machine, roughly: what is sent, and
    what is received three times, as it comes, as it must be, and as it is made."""
    total = 0
    for mine, theirs in ((a, b), (b, a)) if b else ((a, a),):
        n = len(mine)
        if op == REDISTRIBUTION:
            total += 3 * sum(theirs) + sum(mine)
            continue
        record = made_by(op, BETWEEN)
        if record.gives == NOTHING:
            continue
        if record.gives == BLOCKS and not record.is_rooted:
            total += sum(mine) * len(theirs) + 3 * n * sum(theirs)
        elif record.gives == BLOCK and not record.is_rooted:
            total += n * (sum(mine) + 3 * sum(theirs))
        elif record.gives == VECTOR:
            total += 4 * n * max(mine)
        else:  # of blocks, with a root
            total += 3 * sum(theirs) + sum(mine)
    return total
