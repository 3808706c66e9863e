"""A report of all ranks after a time limit: where each rank waits, and for whom.

After `isthmus.Stalled` no collective call is possible. So each rank sends a line to all
other ranks, and takes the lines that arrive in time.
"""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from ..context.attribute import lookup
from ..context.context import Context
from ..waiting.waiting import TimeLimit, until

SILENT_RANK = "says nothing: it was lost, or is somewhere else"


def stalled_report(comm: Any, seconds: float = 1.0) -> list[str]:
    """A line for each rank, of both groups if there are two: where the rank waited too
    long, and for whom.

    Call `stalled_report` after `isthmus.Stalled` was raised. No rank need answer: ranks
    that do not call within `seconds` are reported as silent. If not even the first call
    on the communicator came to its end, the own line is the only one.
    """
    context = lookup(comm, "context")
    if not isinstance(context, Context):
        return [getattr(context, "why", "no call was made")]
    private, tag = context.comm, context.tag_limit
    ranks = range(private.Get_size())
    own_line = context.stalled or context.refused or "waits for nothing"
    lines: dict[int, str] = {context.number: own_line}
    peers = [rank for rank in ranks if rank != context.number]
    encoded = own_line.encode()
    sends = [private.Isend([encoded, MPI.BYTE], peer, tag) for peer in peers]

    def receive_lines() -> bool:
        for peer in peers:
            if peer not in lines and private.Iprobe(peer, tag):
                lines[peer] = _receive_line(private, peer, tag)
        return len(lines) == len(ranks)

    until(receive_lines, TimeLimit(seconds))
    MPI.Request.Testall(sends)
    return [f"{context.who(rank)}: {lines.get(rank, SILENT_RANK)}" for rank in ranks]


def _receive_line(comm: MPI.Intracomm, source: int, tag: int) -> str:
    status = MPI.Status()
    comm.Probe(source, tag, status)
    buffer = bytearray(status.Get_count(MPI.BYTE))
    comm.Recv([buffer, MPI.BYTE], source, tag)
    return buffer.decode()
