"""Communicators made from ours are ours, and everything is given back."""

from __future__ import annotations

import resource

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from groups import ALGORITHMS, FEW, SHAPES, expected, pair, pairs, same, values
from sampling import LONG
from support import agree, opened_port

pytestmark = pytest.mark.mpi(*(SHAPES if LONG else FEW))


def works(inter, comm=None):
    """Whether an exchange of ranks between the two groups is right."""
    assert type(inter) is isthmus.Intercomm
    n = inter.Get_remote_size()
    recv = np.empty(n, "i4")
    for name in ("auto", "segmented"):
        inter.Allgather(np.array([inter.rank], "i4"), recv, algorithm=name)
        assert recv.tolist() == list(range(n))
    return True


def test_what_an_intercommunicator_makes(comm):
    for groups in pairs(comm):
        inter = groups.ours
        for copy in (inter.Dup(), inter.Clone(), inter.Split(0, inter.rank)):
            assert works(copy)
            copy.Free()
        copy, request = inter.Idup()
        request.Wait()
        assert works(copy)
        copy.Free()
        merged = inter.Merge(comm.rank < groups.p)
        assert type(merged) is isthmus.Intracomm and merged.size == comm.size
        merged.Free()
        made = inter.Create(inter.Get_group())
        assert works(made)
        made.Free()
        again = isthmus.Intercomm.fromhandle(inter.handle)
        assert type(again) is isthmus.Intercomm and again == inter
        assert type(isthmus.Intercomm.f2py(inter.py2f())) is isthmus.Intercomm
        if hasattr(MPI.Comm, "fromint"):  # since mpi4py 4.1
            assert type(isthmus.Intercomm.fromint(inter.toint())) is isthmus.Intercomm


def test_what_an_intracommunicator_makes(comm):
    ours = isthmus.Intracomm(comm)
    assert ours == comm and ours.size == comm.size
    low = comm.rank < SHAPES[comm.size][0][0]
    local = ours.Split(0 if low else 1, comm.rank)
    kinds = [local, ours.Dup(), ours.Create(comm.group), ours.Create_group(comm.group)]
    kinds.append(ours.Split_type(MPI.COMM_TYPE_SHARED))
    assert all(type(x) is isthmus.Intracomm for x in kinds)
    leader = SHAPES[comm.size][0][0] if low else 0
    inter = local.Create_intercomm(0, ours, leader, 4)
    assert works(inter)
    inter.Free()
    for x in kinds:
        x.Free()
    assert ours.Split(MPI.UNDEFINED) == MPI.COMM_NULL


def test_the_worlds_survive_the_free_of_their_views(comm):
    """A view is null after it, as mpi4py's own communicators are."""
    for world in (MPI.COMM_WORLD, MPI.COMM_SELF):
        view = isthmus.Intracomm(world)
        view.free()
        assert view == MPI.COMM_NULL and world.allreduce(1) == world.size


@pytest.mark.mpi(3)
def test_accept_and_connect(comm):
    local = isthmus.Intracomm(comm).Split(0 if comm.rank < 2 else 1)
    port = opened_port(comm)
    inter = local.Accept(port) if comm.rank < 2 else local.Connect(port)
    assert works(inter)
    inter.Disconnect()
    if comm.rank == 0:
        MPI.Close_port(port)
    local.Free()


def memory_kib():
    """The largest resident size so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.mpi(3, timeout=240)
def test_many_calls_leak_nothing(comm):
    groups = pair(comm, 2)
    inter, n = groups.ours, len(groups.there)
    names = ["auto", *ALGORITHMS]
    rng = np.random.default_rng(3)
    sizes = rng.integers(0, 2000, 3000 if LONG else 1100)
    before, full = 0, 700  # after so many, nothing that is kept grows any more
    for turn, k in enumerate(sizes.tolist()):
        if turn == full:
            before = memory_kib()
        name = names[turn % len(names)]
        send, recv = values(comm.rank, k), np.empty(k * n)
        if turn % 10 == 0:
            inter.Iallgather(send, recv, algorithm=name).Wait()
        else:
            inter.Allgather(send, recv, algorithm=name)
    grown = memory_kib() - before
    agree(comm, same(recv, expected(groups, [k] * comm.size)))
    print(f"grew by {grown} KiB in the last {len(sizes) - full} calls")
    agree(comm, grown < 512, f"grew by {grown} KiB")
    groups.free()


@pytest.mark.mpi(2, timeout=240)
def test_communicators_are_given_back(comm):
    """MPICH has 2048 of them, and each turn takes four."""
    held = [comm.Dup() for _ in range(1800 * (MPI.get_vendor()[0] == "MPICH"))]
    for _ in range(80 if held else 50):
        groups = pair(comm, 1)
        recv = np.empty(len(groups.there))
        groups.ours.Allgather(np.ones(1), recv)
        groups.free()
    for other in held:
        other.Free()
    agree(comm, bool((recv == 1).all()))


def test_nothing_is_freed_twice_and_exit_is_clean(comm):
    """A communicator left alive, with a context, a plan, a running operation done."""
    groups = pair(comm, SHAPES[comm.size][0][0])
    recv = np.empty(3 * len(groups.there))
    groups.ours.Allgather(values(comm.rank, 3), recv)
    request = groups.ours.Allgather_init(
        values(comm.rank, 3), recv, algorithm="segmented"
    )
    request.Start()
    request.Wait()
