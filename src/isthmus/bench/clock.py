"""A common clock for all ranks of a communicator.

Recorded messages have a time at the sender and a time at the receiver, and a comparison
needs both from a common clock. Hosts have clocks of their own, so each rank adds to its
clock an offset to the clock of rank 0.
"""

from __future__ import annotations

import os
from pathlib import Path
from time import monotonic

import numpy as np
from mpi4py import MPI

#: messages to and fro, of which the quickest counts, since nothing delayed it
CLOCK_ROUND_TRIPS = 20

now = monotonic


def _clock_identity() -> str:
    """A text that is equal on ranks with a common clock.

    Processes of one running system share its clock, also from inside containers and
    network namespaces, but not from inside time namespaces.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/time')}"
    except OSError:
        return f"host {MPI.Get_processor_name()}"


def offset(comm: MPI.Intracomm) -> float:
    """The seconds to add to this rank's clock to have the clock of rank 0; collective.

    Zero where all ranks share a clock. Otherwise the offset comes from messages to and
    fro, and is right to half the time of the quickest round trip.
    """
    if len(set(comm.allgather(_clock_identity()))) == 1:
        return 0.0
    own_rank, own_offset = comm.Get_rank(), 0.0
    for rank in range(1, comm.Get_size()):
        if own_rank == 0:
            _send_time(comm, rank)
        elif own_rank == rank:
            own_offset = _offset_to_rank_0(comm)
    return own_offset


def _send_time(comm: MPI.Intracomm, rank: int) -> None:
    """Answer each question of a rank with the time of rank 0."""
    for _ in range(CLOCK_ROUND_TRIPS):
        comm.recv(None, rank)
        comm.Send(np.array([now()]), rank)


def _offset_to_rank_0(comm: MPI.Intracomm) -> float:
    """The offset by the quickest round trip; rank 0 is assumed to have read its clock
    half-way through."""
    shortest, best_offset = float("inf"), 0.0
    answer = np.empty(1)
    for _ in range(CLOCK_ROUND_TRIPS):
        begin = now()
        comm.send(None, 0)
        comm.Recv(answer, 0)
        end = now()
        if end - begin < shortest:
            shortest = end - begin
            best_offset = float(answer[0]) - (begin + end) / 2
    return best_offset
