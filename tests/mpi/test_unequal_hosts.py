"""Trees and rings for unequal hosts on MPI, told what was measured or made up."""

from __future__ import annotations

import socket
from dataclasses import replace

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from isthmus.choose.tuning import Origin, Tuning
from isthmus.mpi.context import context
from isthmus.mpi.costs.tuning import using
from isthmus.schedules.hosts import Hosts
from measured import measured
from support import agree

TREES = ("fastest_node_first", "speed_partitioned")


def pretend(c, n):
    """Let some hosts be slow."""
    betas = tuple(1e-9 * (10 if r % 3 == 1 else 1) for r in range(n))
    c.placement = replace(c.placement, hosts=Hosts((1e-6,) * n, betas))
    c.plans.clear()


@pytest.mark.mpi(5)
def test_between_groups(comm):
    second = comm.rank >= 2
    local = comm.Split(int(second))
    inter = isthmus.Intercomm(local.Create_intercomm(0, comm, 0 if second else 2))
    hosts = inter.probe_hosts()
    agree(comm, len(hosts.alphas) == comm.size)
    agree(comm, comm.bcast(hosts) == hosts)
    root = 1 if second else MPI.ROOT if comm.rank == 1 else MPI.PROC_NULL
    pretend(inter._context(), comm.size)
    for name in (*TREES, "auto"):
        data = np.full(33, 7.0 if root == MPI.ROOT else 0.0)
        inter.Bcast(data, root, algorithm=name)
        agree(comm, not second or (data == 7).all())
        total, own = np.zeros(33), np.full(33, float(comm.rank))
        ends = (own, None) if second else (None, total if root == MPI.ROOT else None)
        inter.Reduce(*ends, MPI.SUM, root, algorithm=name)
        agree(comm, root != MPI.ROOT or (total == 2 + 3 + 4).all())
        every = np.zeros((3, 5)) if root == MPI.ROOT else None
        ends = (own[:5], None) if second else (None, every)
        inter.Gather(*ends, root, algorithm=name)
        agree(comm, every is None or every[:, 0].tolist() == [2, 3, 4])
        mine = np.zeros(5)
        ends = (None, mine) if second else (every, None)
        inter.Scatter(*ends, root, algorithm=name)
        agree(comm, not second or (mine == comm.rank).all())
    inter.Free()
    local.Free()


@pytest.mark.mpi(5)
def test_auto_goes_by_the_hosts_of_a_tuning(comm, monkeypatch):
    monkeypatch.setattr(context, "node_ranks", lambda comm, per_node: [comm.rank])
    monkeypatch.setattr(socket, "gethostname", lambda: f"host{comm.rank}")
    slow = {f"host{r}": (1e-5 * (10 if r == 4 else 1), 1e-9) for r in range(5)}
    origin, machine = Origin("", "", "", "", 5, 5), measured(1e-5, 1e-9)
    for hosts in (slow, {"host0": (1e-5, 1e-9)}, {}):
        with using(Tuning(origin, machine, hosts)):
            ours = isthmus.Intracomm(comm.Dup())
            found = ours._context().placement.unequal_hosts
        agree(comm, (found is not None) == (len(hosts) == 5))
        agree(comm, found is None or found.alphas[4] == 1e-4)
        data = np.full(99, float(comm.rank))
        ours.Bcast(data, 2, algorithm="auto")
        agree(comm, (data == 2).all())
        # of so few bytes, the library's own call without them
        agree(
            comm,
            (ours._last_algorithm() != "library") == (len(hosts) == 5),
            ours._last_algorithm(),
        )
        ours.Free()


@pytest.mark.mpi(5)
def test_inside_a_group(comm):
    ours = isthmus.Intracomm(comm.Dup())
    ours.probe_hosts()
    for made_up in (False, True):
        if made_up:
            pretend(ours._context(), comm.size)
        for name in TREES:
            data = np.full(9, float(comm.rank))
            ours.Bcast(data, 3, algorithm=name)
            agree(comm, (data == 3).all())
        every = np.zeros((comm.size, 4))
        ours.Allgather(np.full(4, float(comm.rank)), every, algorithm="ordered_ring")
        agree(comm, every[:, 1].tolist() == list(range(comm.size)))
    ours.Free()
