"""The operations that can be measured, and the properties of their buffers.

Operations are those of the records that MPI has too, and redistribution.
"""

from __future__ import annotations

from ..collectives.collective import BETWEEN, BLOCK, BLOCKS, NOTHING, VECTOR
from ..collectives.records import operations, record_of
from ..schedules.names import WHERE
from ..spelling import unknown

#: no operation of MPI; measured between two groups only
REDISTRIBUTION = "redistribution"
#: contenders of a redistribution that people write by hand
BY_HAND = ("isend", "gather_bcast")


def mpi_operations(groups: int) -> list[str]:
    """The operations of MPI inside one group or between two."""
    return [name.lower() for name in operations(groups, on_mpi=True)]


def measured(groups: int) -> list[str]:
    """The operations to be measured inside one group or between two."""
    return [*mpi_operations(groups), *([REDISTRIBUTION] if groups > 1 else [])]


def is_vector(op: str) -> bool:
    """Whether each rank contributes a vector to a reduction, and not blocks."""
    return op != REDISTRIBUTION and record_of(op, BETWEEN).gives == VECTOR


def may_be_uneven(op: str) -> bool:
    """Whether the blocks of an operation may differ in size."""
    if op == REDISTRIBUTION:
        return False
    record = record_of(op, BETWEEN)
    return record.is_irregular and record.gives != VECTOR


def check(op: str, groups: tuple[int, ...]) -> None:
    """Refuse an operation that cannot be measured in the number of groups."""
    known = measured(len(groups))
    if op not in known:
        raise ValueError(unknown("operation", op, known, WHERE[len(groups)]))


def buffer_bytes(op: str, a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """The bytes of all buffers of a measurement on one machine, roughly.

    Data to be received count three times: in the receive buffer, as the expected data,
    and as the blocks from which the expected data are put together.
    """
    total = 0
    for local, remote in ((a, b), (b, a)) if b else ((a, a),):
        n = len(local)
        if op == REDISTRIBUTION:
            total += 3 * sum(remote) + sum(local)
            continue
        record = record_of(op, BETWEEN)
        if record.gives == NOTHING:
            continue
        if record.gives == BLOCKS and not record.is_rooted:
            total += sum(local) * len(remote) + 3 * n * sum(remote)
        elif record.gives == BLOCK and not record.is_rooted:
            total += n * (sum(local) + 3 * sum(remote))
        elif record.gives == VECTOR:
            total += 4 * n * max(local)
        else:  # of blocks, with a root
            total += 3 * sum(remote) + sum(local)
    return total
