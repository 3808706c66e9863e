"""The costs of messages of each host, measured in pairs by one process of each host.

The costs decide which hosts are slow, so the costs of equal hosts must vary by less
than MIN_UNEQUAL_RATIO. A single message of 128 KiB varies more: a shaped link lets 64
KiB through at once after a pause, and a process that waits for a processor loses
milliseconds. Long messages are therefore as long as needed to outweigh both, go to and
fro several times, and the median counts. Of short messages the least time counts: on
two cores the median of 15 times was 16 µs on a part of eight equal hosts, and 267 µs on
the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np
from mpi4py import MPI

from ...schedules.hosts import Hosts
from ..native_classes import NativeIntracomm

#: the bytes of a short message, and how often it goes to and fro
SHORT_PING_BYTES, SHORT_PINGS = 1, 15
#: the bytes of the first long message, the ratio of the next one, and the longest
FIRST_LONG_PING_BYTES, LONG_PING_RATIO, LONGEST_PING_BYTES = 1 << 17, 4, 1 << 23
#: messages get longer until they take so many seconds to and fro
LONG_PING_SECONDS = 0.01
#: the seconds of all long messages of a pair, and how many they are at the most
PAIR_SECONDS, MAX_LONG_PINGS = 0.1, 7
#: the most rounds in which hosts meet, and the seconds after which no round follows;
#: but the first rounds always take place, since a slow partner makes a fast host look
#: slow
MAX_PAIR_ROUNDS, PAIR_ROUNDS_SECONDS, MIN_PAIR_ROUNDS = 8, 2.0, 3


def probe_hosts(comm: MPI.Intracomm, nodes: Sequence[int]) -> Hosts:
    """The start-up time and the time per byte of each rank's host, equal on all ranks.

    In each round every host exchanges messages with a partner, all pairs at once. The
    cost of a host is the least over its partners. A process sends a fixed number of
    messages, whatever the number of hosts.
    """
    rank = comm.Get_rank()
    heads = NativeIntracomm(comm.Split(int(nodes[rank] != rank), rank))
    head_costs = _measure_costs(heads) if nodes[rank] == rank else None
    heads.Free()
    head_costs = comm.bcast(head_costs)
    places = {node: i for i, node in enumerate(sorted(set(nodes)))}
    alphas, betas = zip(*(head_costs[places[node]] for node in nodes), strict=True)
    return Hosts(alphas, betas)


def _measure_costs(comm: MPI.Intracomm) -> list[tuple[float, float]]:
    """The start-up time and the time per byte of each rank; of a single rank, zeros."""
    hosts, rank = comm.Get_size(), comm.Get_rank()
    least = np.array((np.inf, np.inf))
    seconds, begin = np.zeros(1), perf_counter()
    # numbers of partners add up to t, so no host is without a partner twice in a row
    for t in range(1, min(hosts, MAX_PAIR_ROUNDS) + 1):
        partner = (t - rank) % hosts
        if partner != rank:
            least = np.minimum(least, _measure_pair(comm, partner))
        seconds[0] = perf_counter() - begin
        comm.Allreduce(MPI.IN_PLACE, seconds, MPI.MAX)
        if t >= MIN_PAIR_ROUNDS and seconds[0] > PAIR_ROUNDS_SECONDS:
            break
    alpha, beta = np.where(np.isfinite(least), least, 0.0).tolist()
    costs: list[tuple[float, float]] = comm.allgather((alpha, beta))
    return costs


def _measure_pair(comm: MPI.Intracomm, partner: int) -> tuple[float, float]:
    """The seconds of a short message, and of a byte of a long message."""
    short = _one_way_seconds(comm, partner, SHORT_PING_BYTES, SHORT_PINGS, np.min)
    nbytes = FIRST_LONG_PING_BYTES
    while True:
        # also to use up what a link lets through at once after a pause
        single = _one_way_seconds(comm, partner, nbytes, 1)
        if 2 * single >= LONG_PING_SECONDS or nbytes == LONGEST_PING_BYTES:
            break
        nbytes = min(nbytes * LONG_PING_RATIO, LONGEST_PING_BYTES)
    pings = int(min(max(PAIR_SECONDS / (2 * single), 1), MAX_LONG_PINGS))
    long = _one_way_seconds(comm, partner, nbytes, pings)
    # the time per byte is above zero even if the short messages were late
    return short, max(long - short, long / 10) / nbytes


def _one_way_seconds(
    comm: MPI.Intracomm,
    partner: int,
    nbytes: int,
    pings: int,
    average: Callable[[np.ndarray], float] = np.median,
) -> float:
    """The seconds of a message, as an average over several times to and fro.

    Both partners get an equal result, so that both decide alike on further messages.
    """
    data, is_first = np.zeros(nbytes, np.uint8), comm.Get_rank() < partner
    directions = (comm.Send, comm.Recv) if is_first else (comm.Recv, comm.Send)
    seconds = np.empty(pings)
    for k in range(pings):
        begin = perf_counter()
        for move in directions:
            move(data, partner)
        seconds[k] = perf_counter() - begin
    result = np.array([average(seconds) / 2])
    if is_first:  # whose clock covers both ways; the partner's covers waiting as well
        comm.Send(result, partner)
    else:
        comm.Recv(result, partner)
    return float(result[0])
