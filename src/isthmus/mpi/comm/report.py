"""What all ranks that waited too long waited for."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from ..context.attribute import lookup
from ..context.context import Context
from ..waiting.waiting import TimeLimit, until

SILENT = "says nothing: it was lost, or is somewhere else"


def stalled_report(comm: Any, seconds: float = 1.0) -> list[str]:
    """A line for each rank of a communicator, of both groups if there are two: where it
    waited too long and for whom, of those that call this within some seconds.

    Call it after `isthmus.Stalled` was raised; it needs no answer of anybody. Where not
    even the first call came to its end, there is only the own line.
    """
    found = lookup(comm, "context")
    if not isinstance(found, Context):
        return [getattr(found, "why", "no call was made")]
    c, tag = found.comm, found.tag_limit
    own = found.stalled or found.refused or "waits for nothing"
    said: dict[int, str] = {found.number: own}
    others = [r for r in range(c.Get_size()) if r != found.number]
    line = own.encode()
    sends = [c.Isend([line, MPI.BYTE], r, tag) for r in others]

    def listen() -> bool:
        for r in others:
            if r not in said and c.Iprobe(r, tag):
                said[r] = _read(c, r, tag)
        return len(said) == len(others) + 1

    until(listen, TimeLimit(seconds))
    MPI.Request.Testall(sends)
    numbers = range(c.Get_size())
    return [f"{found.who(r)}: {said.get(r, SILENT)}" for r in numbers]


def _read(comm: MPI.Intracomm, source: int, tag: int) -> str:
    status = MPI.Status()
    comm.Probe(source, tag, status)
    buffer = bytearray(status.Get_count(MPI.BYTE))
    comm.Recv([buffer, MPI.BYTE], source, tag)
    return buffer.decode()
