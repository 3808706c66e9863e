"""The machine of a communicator, measured for a tuning file.

`isthmus tune` has more time than a first call, and measures as the probe does, with
longer messages and more turns: those inside a node, and those between nodes.
"""

from __future__ import annotations

import socket
from dataclasses import replace
from datetime import datetime, timezone

from mpi4py import MPI

from ... import __version__
from ...choose.tuning import NETWORK, Origin, Tuning
from ...cost.machine import Level, Machine
from ..native_classes import NativeIntracomm
from .hosts import probe_hosts
from .probe import complete, level_in_steps, library_in_steps
from .tuning import first_ranks, library_and_host

#: the longest message that is timed, and the turns
TUNE_MESSAGE_BYTES, TUNE_TURNS = 1 << 20, 8


def measure_tuning(comm: MPI.Intracomm) -> Tuning:
    """The machine of all ranks, and the costs of unequal hosts; equal on all ranks.

    Only one process of each node takes part in the messages between nodes.
    """
    rank, nodes = comm.Get_rank(), first_ranks(comm)
    node = NativeIntracomm(comm.Split(nodes[rank], rank))
    heads = NativeIntracomm(comm.Split(int(nodes[rank] != rank), rank))
    inside = _measure_level(node)
    between = _measure_level(heads) if nodes[rank] == rank else None
    node.Free()
    heads.Free()
    date = datetime.now(timezone.utc).isoformat(timespec="seconds")
    size, node_count = comm.Get_size(), len(set(nodes))
    origin = Origin(*library_and_host(), date, __version__, size, node_count)
    if inside is not None and between is not None:
        inside = replace(inside, size=origin.each)
    if between is not None:
        between = replace(between, changing=NETWORK.changing)
    levels = tuple(level for level in (inside, between) if level is not None)
    tuning = Tuning(origin, comm.bcast(Machine(levels)))
    machine = tuning.on(nodes)
    assert machine is not None, "nodes of the measurement"
    library = complete(library_in_steps(comm, machine, on_node=node_count == 1))
    library = comm.bcast(library)
    hosts, names = probe_hosts(comm, nodes), comm.allgather(socket.gethostname())
    host_costs: dict[str, tuple[float, float]] = {}
    if hosts.unequal:
        pairs = zip(hosts.alphas, hosts.betas, strict=True)
        host_costs = dict(zip(names, pairs, strict=True))
    machine = replace(tuning.machine, library=library)
    return replace(tuning, machine=machine, hosts=host_costs)


def _measure_level(comm: MPI.Intracomm) -> Level | None:
    """The costs of messages on a communicator; None for a single process."""
    if comm.Get_size() == 1:
        return None
    measurement = level_in_steps(comm, long_bytes=TUNE_MESSAGE_BYTES, turns=TUNE_TURNS)
    return complete(measurement)
