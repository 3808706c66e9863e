"""Messages of many sizes on a communicator, timed by all its ranks together: what
`isthmus tune` knows of a machine before it tries algorithms."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone

import numpy as np
from mpi4py import MPI

from ... import __version__
from ...choose.estimate import MessageCosts
from ...choose.fit import Samples, machine
from ...choose.tuning import Origin, Tuning
from .hosts import probe_hosts
from .probe import PIECES, shift, worst
from .tuning import here, nodes_of, shared

#: bytes of messages; no longer ones once a message takes ENOUGH seconds
SIZES = (1, 1 << 8, 1 << 11, 1 << 14, 1 << 17, 1 << 20)
ENOUGH = 0.1
#: to how many ranks short messages go at once
FAN = (1, 2, 4, 8)
#: messages are sent in so many turns of about SLICE seconds; the fastest turn counts
TURNS, SLICE, MOST = 5, 0.02, 200


def measured(comm: MPI.Intracomm) -> Tuning:
    """What messages cost in the node of rank 0, and between one process of each node,
    and of each host where these are unequal; the same on all ranks."""
    rank, nodes = comm.Get_rank(), nodes_of(comm)
    node = MPI.Intracomm(comm.Split(nodes[rank], rank))
    heads = MPI.Intracomm(comm.Split(int(nodes[rank] != rank), rank))
    inside = _cost(node)
    between = _cost(heads) if nodes[rank] == rank else None
    node.Free()
    heads.Free()
    date = datetime.now(timezone.utc).isoformat(timespec="seconds")
    origin = Origin(*here(), date, __version__, comm.Get_size(), len(set(nodes)))
    far, hosts = between and shared(between, nodes), probe_hosts(comm, nodes)
    names = comm.allgather(socket.gethostname())
    each = dict(zip(names, zip(hosts.alphas, hosts.betas, strict=True), strict=True))
    told: Tuning = comm.bcast(
        Tuning(origin, inside, far, each if hosts.unequal else {})
    )
    return told


def _cost(comm: MPI.Intracomm) -> MessageCosts | None:
    """What messages cost on a communicator; None for one process alone."""
    if comm.Get_size() == 1:
        return None
    # into what pieces this MPI library cuts blocks, if it is known to do so
    piece = PIECES.get(MPI.get_vendor()[0], 0)
    return machine(samples(comm), piece)


def samples(comm: MPI.Intracomm) -> Samples:
    """The times of messages, the same on all ranks."""
    p = comm.Get_size()
    contended: dict[int, float] = {}
    alone: dict[int, float] = {}
    for n in SIZES:
        for everyone, times in ((True, contended), (False, alone)):
            with shift(comm, n, None if everyone else 1) as step:
                times[n] = _seconds(comm, step)
        if contended[n] > ENOUGH:
            break
    fan = {}
    for k in (k for k in FAN if k < p):
        with _fan(comm, k) as step:
            fan[k] = _seconds(comm, step)
    return Samples(p, contended, alone, fan)


def _seconds(comm: MPI.Intracomm, step: Callable[[], None]) -> float:
    """The time of a step; as many in a row as their time allows."""
    once = worst(comm, step, 1, turns=1)
    times = int(min(max(SLICE / max(once, 1e-7), 1), MOST))
    return worst(comm, step, times, TURNS if once < ENOUGH else 2)


@contextmanager
def _fan(comm: MPI.Intracomm, k: int) -> Iterator[Callable[[], None]]:
    """A short message to each of the next k ranks, from every rank."""
    p, r = comm.Get_size(), comm.Get_rank()
    out, into = np.zeros(1, np.uint8), np.zeros(k, np.uint8)
    near = range(1, k + 1)
    steps = [
        *(comm.Recv_init(into[d - 1 : d], (r - d) % p, 0) for d in near),
        *(comm.Send_init(out, (r + d) % p, 0) for d in near),
    ]

    def step() -> None:
        MPI.Prequest.Startall(steps)
        MPI.Request.Waitall(steps)

    yield step
    for request in steps:
        request.Free()
