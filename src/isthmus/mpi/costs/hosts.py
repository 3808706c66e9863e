"""What messages of each host cost, measured by one process of each host in pairs."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np
from mpi4py import MPI

from ...schedules.hosts import Hosts

#: bytes of a short and of a long message, and how often they go
SHORT, LONG = (1, 10), (1 << 17, 1)
#: in so many rounds at the most a host meets others; no more after so many seconds, but
#: for the first few: a slow partner makes a fast host look slow
ROUNDS, LIMIT, LEAST = 8, 2.0, 3


def probe_hosts(comm: MPI.Intracomm, nodes: Sequence[int]) -> Hosts:
    """Start-up time and time per byte of the host of each rank, the same on all ranks.

    In each round every host exchanges messages with one other, all pairs at once; what
    a host takes is the least of what it took with any. So a process sends a fixed
    number of messages, however many hosts there are.
    """
    rank = comm.Get_rank()
    heads = MPI.Intracomm(comm.Split(int(nodes[rank] != rank), rank))
    found = _rows(heads) if nodes[rank] == rank else None
    heads.Free()
    rows = comm.bcast(found)
    places = {node: i for i, node in enumerate(sorted(set(nodes)))}
    each = [rows[places[node]] for node in nodes]
    return Hosts(*(tuple(x) for x in zip(*each, strict=True)))


def _rows(comm: MPI.Intracomm) -> list[tuple[float, float]]:
    """Both times of every rank; of one alone, nothing to speak of."""
    h, i = comm.Get_size(), comm.Get_rank()
    best = np.array((np.inf, np.inf))
    spent, begin = np.zeros(1), perf_counter()
    # t from 1 to h: nobody is its own partner in two rounds that follow each other
    for t in range(1, min(h, ROUNDS) + 1):
        partner = (t - i) % h
        if partner != i:
            times = [_one_way(comm, partner, *x) for x in (SHORT, LONG)]
            best = np.minimum(best, times)
        spent[0] = perf_counter() - begin
        comm.Allreduce(MPI.IN_PLACE, spent, MPI.MAX)
        if t >= LEAST and spent[0] > LIMIT:
            break
    short, long = np.where(np.isfinite(best), best, 0.0).tolist()
    # a byte takes something, however late the short messages were
    byte = max(long - short, long / 10) / LONG[0]
    gathered: list[tuple[float, float]] = comm.allgather((short, byte))
    return gathered


def _one_way(comm: MPI.Intracomm, partner: int, nbytes: int, times: int) -> float:
    """The time of a message, of some that go to and fro."""
    data = np.zeros(nbytes, np.uint8)
    ends = (
        (comm.Send, comm.Recv) if comm.Get_rank() < partner else (comm.Recv, comm.Send)
    )
    # what a link lets through at once after a pause goes first
    comm.Sendrecv(data, partner, 0, data.copy(), partner, 0)
    begin = perf_counter()
    for _ in range(times):
        for end in ends:
            end(data, partner)
    return (perf_counter() - begin) / (2 * times)
