"""One clock for all ranks of a communicator."""

from __future__ import annotations

import os
from pathlib import Path
from time import monotonic

import numpy as np
from mpi4py import MPI

#: messages to and fro, of which the quickest counts
TIMES = 20

now = monotonic


def _whose() -> str:
    """What tells clocks apart: processes of one running system share theirs, also from
    inside containers and network namespaces, but not from inside time namespaces."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/time')}"
    except OSError:
        return f"host {MPI.Get_processor_name()}"


def offset(comm: MPI.Intracomm) -> float:
    """What to add to this rank's clock to have that of rank 0.

    Nothing where all share one. Else it is taken from messages to and fro, right to
    half the time of the quickest of them.
    """
    if len(set(comm.allgather(_whose()))) == 1:
        return 0.0
    rank, found = comm.Get_rank(), 0.0
    for other in range(1, comm.Get_size()):
        if rank == 0:
            _answer(comm, other)
        elif rank == other:
            found = _ask(comm)
    return found


def _answer(comm: MPI.Intracomm, other: int) -> None:
    """Tell another rank the time, as often as it asks."""
    for _ in range(TIMES):
        comm.recv(None, other)
        comm.Send(np.array([now()]), other)


def _ask(comm: MPI.Intracomm) -> float:
    """The difference to rank 0, which read its clock half-way between."""
    best, found = float("inf"), 0.0
    answer = np.empty(1)
    for _ in range(TIMES):
        begin = now()
        comm.send(None, 0)
        comm.Recv(answer, 0)
        end = now()
        if end - begin < best:
            best, found = end - begin, float(answer[0]) - (begin + end) / 2
    return found
