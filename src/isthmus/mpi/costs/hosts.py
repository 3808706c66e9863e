"""What messages of each host cost, measured by one process of each host in pairs.

What is measured decides which hosts are slow, so that of equal hosts must vary by less
than MIN_UNEQUAL_RATIO. One message of 128 KiB does not do that: a shaped link lets 64
KiB through at once after a pause, and a process that waits for a processor loses
milliseconds. So messages are as long as it takes to be long against both, they go to
and fro several times, and the median counts. Of short ones the least does: on two cores
the median of 15 to and fro was 16 µs on some of eight equal hosts and 267 on others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np
from mpi4py import MPI

from ...schedules.hosts import Hosts

#: bytes of short messages, and how often they go to and fro
SHORT_BYTES, SHORT_TIMES = 1, 15
#: bytes of the first long message, by what the next one is longer, and the longest
FIRST_LONG_BYTES, LONGER, LONGEST_BYTES = 1 << 17, 4, 1 << 23
#: seconds: a long message takes so long to and fro, and all of a size so long in all
LONG_SECONDS, PAIR_SECONDS = 0.01, 0.1
#: of a size, how often messages go to and fro at the most
LONG_TIMES = 7
#: in so many rounds at the most a host meets others; no more after so many seconds, but
#: for the first few: a slow partner makes a fast host look slow
ROUNDS, LIMIT_SECONDS, LEAST_ROUNDS = 8, 2.0, 3


def probe_hosts(comm: MPI.Intracomm, nodes: Sequence[int]) -> Hosts:
    """Start-up time and time per byte of the host of each rank, the same on all ranks.

    In each round every host exchanges messages with one other, all pairs at once; what
    a host takes is the least of what it took with any. So a process sends a fixed
    number of messages, however many hosts there are.
    """
    rank = comm.Get_rank()
    heads = MPI.Intracomm(comm.Split(int(nodes[rank] != rank), rank))
    costs_of_heads = _costs(heads) if nodes[rank] == rank else None
    heads.Free()
    costs = comm.bcast(costs_of_heads)
    places = {node: i for i, node in enumerate(sorted(set(nodes)))}
    each = [costs[places[node]] for node in nodes]
    return Hosts(*(tuple(x) for x in zip(*each, strict=True)))


def _costs(comm: MPI.Intracomm) -> list[tuple[float, float]]:
    """Both times of every rank; of one alone, nothing to speak of."""
    h, i = comm.Get_size(), comm.Get_rank()
    best = np.array((np.inf, np.inf))
    spent, begin = np.zeros(1), perf_counter()
    # t from 1 to h: nobody is its own partner in two rounds that follow each other
    for t in range(1, min(h, ROUNDS) + 1):
        partner = (t - i) % h
        if partner != i:
            best = np.minimum(best, _with(comm, partner))
        spent[0] = perf_counter() - begin
        comm.Allreduce(MPI.IN_PLACE, spent, MPI.MAX)
        if t >= LEAST_ROUNDS and spent[0] > LIMIT_SECONDS:
            break
    short, byte = np.where(np.isfinite(best), best, 0.0).tolist()
    gathered: list[tuple[float, float]] = comm.allgather((short, byte))
    return gathered


def _with(comm: MPI.Intracomm, partner: int) -> tuple[float, float]:
    """The time of a short message and that of a byte of a long one."""
    short = _one_way(comm, partner, SHORT_BYTES, SHORT_TIMES, np.min)
    nbytes = FIRST_LONG_BYTES
    while True:
        # what a link lets through at once after a pause goes first
        once = _one_way(comm, partner, nbytes, 1)
        if 2 * once >= LONG_SECONDS or nbytes == LONGEST_BYTES:
            break
        nbytes = min(nbytes * LONGER, LONGEST_BYTES)
    times = int(min(max(PAIR_SECONDS / (2 * once), 1), LONG_TIMES))
    long = _one_way(comm, partner, nbytes, times)
    # a byte takes something, however late the short messages were
    return short, max(long - short, long / 10) / nbytes


def _one_way(
    comm: MPI.Intracomm,
    partner: int,
    nbytes: int,
    times: int,
    average: Callable[[np.ndarray], float] = np.median,
) -> float:
    """The time of a message, as an average of some that go to and fro; the same for
    both, who so do the same next."""
    data, is_first = np.zeros(nbytes, np.uint8), comm.Get_rank() < partner
    ends = (comm.Send, comm.Recv) if is_first else (comm.Recv, comm.Send)
    taken = np.empty(times)
    for k in range(times):
        begin = perf_counter()
        for end in ends:
            end(data, partner)
        taken[k] = perf_counter() - begin
    half = np.array([average(taken) / 2])
    if is_first:  # it has seen all of every message, the other one waits before
        comm.Send(half, partner)
    else:
        comm.Recv(half, partner)
    return float(half[0])
