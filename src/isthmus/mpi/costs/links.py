"""The times of messages of many sizes: the costs in a tuning file.

`isthmus tune` has more time than a first call, so messages of many sizes are timed, by
all ranks together, before any algorithm is tried.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import datetime, timezone

import numpy as np
from mpi4py import MPI

from ... import __version__
from ...choose.estimate import MessageCosts
from ...choose.fit import Samples, machine
from ...choose.tuning import Origin, Tuning
from ..native_classes import NativeIntracomm
from .hosts import probe_hosts
from .probe import LIBRARY_PIECE_BYTES, shift, slowest_rank_seconds
from .tuning import first_ranks, library_and_host

#: the sizes of messages that are timed; no longer ones once a message takes
#: LONGEST_MESSAGE_SECONDS
SAMPLED_BYTES = (1, 1 << 8, 1 << 11, 1 << 14, 1 << 17, 1 << 20)
LONGEST_MESSAGE_SECONDS = 0.1
#: the numbers of ranks to which short messages go at once
FAN_RANKS = (1, 2, 4, 8)
#: messages are sent in turns of about SAMPLE_TURN_SECONDS; the fastest turn counts
SAMPLE_TURNS, SAMPLE_TURN_SECONDS, MAX_STEPS_PER_TURN = 5, 0.02, 200


def measure_tuning(comm: MPI.Intracomm) -> Tuning:
    """The costs of messages in the node of rank 0, between nodes, and of unequal hosts.

    Only one process of each node takes part in the messages between nodes. The result
    is equal on all ranks.
    """
    rank, nodes = comm.Get_rank(), first_ranks(comm)
    node = NativeIntracomm(comm.Split(nodes[rank], rank))
    heads = NativeIntracomm(comm.Split(int(nodes[rank] != rank), rank))
    inside = _measure_costs(node)
    between = _measure_costs(heads) if nodes[rank] == rank else None
    node.Free()
    heads.Free()
    date = datetime.now(timezone.utc).isoformat(timespec="seconds")
    size, node_count = comm.Get_size(), len(set(nodes))
    origin = Origin(*library_and_host(), date, __version__, size, node_count)
    hosts = probe_hosts(comm, nodes)
    names = comm.allgather(socket.gethostname())
    host_costs: dict[str, tuple[float, float]] = {}
    if hosts.unequal:
        pairs = zip(hosts.alphas, hosts.betas, strict=True)
        host_costs = dict(zip(names, pairs, strict=True))
    tuning: Tuning = comm.bcast(Tuning(origin, inside, between, host_costs))
    return tuning


def _measure_costs(comm: MPI.Intracomm) -> MessageCosts | None:
    """The costs of messages on a communicator; None for a single process."""
    if comm.Get_size() == 1:
        return None
    piece = LIBRARY_PIECE_BYTES.get(MPI.get_vendor()[0], 0)
    return machine(measure_samples(comm), piece)


def measure_samples(comm: MPI.Intracomm) -> Samples:
    """The times of messages by size, equal on all ranks."""
    p = comm.Get_size()
    contended: dict[int, float] = {}
    alone: dict[int, float] = {}
    for nbytes in SAMPLED_BYTES:
        for receiver, times in ((None, contended), (1, alone)):
            times[nbytes] = _step_seconds(comm, shift(comm, nbytes, receiver))
        if contended[nbytes] > LONGEST_MESSAGE_SECONDS:
            break
    fan = {}
    for ranks in (ranks for ranks in FAN_RANKS if ranks < p):
        fan[ranks] = _step_seconds(comm, _fan(comm, ranks))
    return Samples(p, contended, alone, fan)


def _step_seconds(comm: MPI.Intracomm, step: Callable[[], None]) -> float:
    """The seconds of a step, repeated as often as fits into a turn."""
    single = slowest_rank_seconds(comm, step, 1, turns=1)
    fitting = SAMPLE_TURN_SECONDS / max(single, 1e-7)
    steps_per_turn = int(min(max(fitting, 1), MAX_STEPS_PER_TURN))
    turns = SAMPLE_TURNS if single < LONGEST_MESSAGE_SECONDS else 2
    return slowest_rank_seconds(comm, step, steps_per_turn, turns)


def _fan(comm: MPI.Intracomm, ranks: int) -> Callable[[], None]:
    """A step in which each rank sends a short message to each of the next ranks."""
    p, rank = comm.Get_size(), comm.Get_rank()
    sent, received = np.zeros(1, np.uint8), np.zeros(ranks, np.uint8)
    sources = [(received[d - 1 : d], (rank - d) % p) for d in range(1, ranks + 1)]
    targets = [(rank + d) % p for d in range(1, ranks + 1)]

    def step() -> None:
        requests = [comm.Irecv(place, source, 0) for place, source in sources]
        requests += [comm.Isend(sent, target, 0) for target in targets]
        MPI.Request.Waitall(requests)

    return step
