"""Faults of other libraries that must not exist here, each by its name."""

from __future__ import annotations

from mmap import PAGESIZE
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

from groups import ALGORITHMS, FEW, NAMES, expected, pair, pairs, same, values
from support import agree

pytestmark = pytest.mark.mpi(*FEW)


def test_equal_signatures_of_different_types(comm):
    """Open MPI 5.0 counts in the sender's units and fails with MPI_ERR_TRUNCATE."""
    couple = MPI.INT.Create_contiguous(2).Commit()
    for groups in pairs(comm):
        n = len(groups.there)
        send = values(comm.rank, 4, "i4")
        spec = [send, 2, couple] if comm.rank % 2 else [send, 4, MPI.INT]
        wanted = expected(groups, [4] * comm.size, "i4")
        for name in NAMES:
            recv = np.empty(4 * n, "i4")
            into = (
                [recv, [2] * n, couple] if comm.rank % 3 else [recv, [4] * n, MPI.INT]
            )
            groups.ours.Allgatherv(spec, into, algorithm=name)
            agree(comm, same(recv, wanted), name)
            recv[:] = -1
            groups.ours.Iallgatherv(spec, into, algorithm=name).Wait()
            agree(comm, same(recv, wanted), f"I {name}")
    couple.Free()


def test_absolute_addresses_in_large_groups(comm):
    """Open MPI 5.0 fails with MPI_ERR_INTERN where a block is at MPI.BOTTOM."""
    for groups in pairs(comm):
        send = values(comm.rank, 3)
        there = MPI.DOUBLE.Create_hindexed([3], [MPI.Get_address(send)]).Commit()
        recv = np.empty(3 * len(groups.there))
        groups.ours.Allgather([MPI.BOTTOM, 1, there], recv)
        agree(comm, same(recv, expected(groups, [3] * comm.size)))
        there.Free()


def test_in_place_is_refused(comm):
    """MPICH 5.0 hangs on all ranks, Open MPI 5.0 raises MPI_ERR_ARG."""
    for groups in pairs(comm):
        room = np.zeros(2 * len(groups.there))
        for form in ("Allgather", "Iallgather", "Allgather_init"):
            with pytest.raises(ValueError, match="IN_PLACE"):
                getattr(groups.ours, form)(MPI.IN_PLACE, room)


def test_a_count_beyond_the_buffer_is_refused(comm):
    """Both libraries read and write past the end."""
    for groups in pairs(comm):
        n = len(groups.there)
        with pytest.raises(ValueError, match="needs bytes"):
            groups.ours.Allgather([np.zeros(4), 50, MPI.DOUBLE], np.zeros(50 * n))
        with pytest.raises(ValueError, match="needs bytes"):
            groups.ours.Allgatherv(np.zeros(4), [np.zeros(4 * n), [5] * n])


@pytest.mark.parametrize("sent", [3, 5])
def test_too_little_and_too_much_are_told_to_everyone(comm, monkeypatch, sent):
    """Both libraries return no error, or raise on one rank and hang the rest."""
    monkeypatch.setenv("ISTHMUS_CHECK", "1")
    for groups in pairs(comm):
        n = len(groups.there)
        last = comm.rank == comm.size - 1
        for form in ("Allgather", "Allgatherv", "Iallgather", "Allgatherv_init"):
            with pytest.raises(ValueError, match=f"sends {8 * sent} bytes") as caught:
                call = getattr(groups.ours, form)
                call(np.zeros(sent if last else 4), np.zeros(4 * n))
            texts = comm.allgather(str(caught.value))
            assert len(set(texts)) == 1


def test_wrong_receive_counts_of_one_rank_are_told_to_everyone(comm, monkeypatch):
    """Both libraries raise MPI_ERR_TRUNCATE on that rank alone."""
    monkeypatch.setenv("ISTHMUS_CHECK", "1")
    for groups in pairs(comm):
        n = len(groups.there)
        counts = [4] * n
        if comm.rank == 0:
            counts[-1] = 2
        with pytest.raises(ValueError, match="group A rank 0 expects 16"):
            groups.ours.Allgatherv(np.zeros(4), [np.zeros(4 * n), counts])


def test_nonblocking_calls_after_an_ibcast(comm):
    """After an Ibcast between groups both libraries hang in the next nonblocking call.

    mpi4py passes count 0 where the root is MPI.PROC_NULL, and their tags part. Ours
    use no such call: they work on a communicator that the library has poisoned.
    """
    for groups in pairs(comm):
        low = comm.rank < groups.p
        root = (MPI.ROOT if groups.local.rank == 0 else MPI.PROC_NULL) if low else 0
        box = np.full(1, 5.0 if comm.rank == 0 else 0)
        native = groups.native.Dup()
        poisoned = type(groups.ours)(native)
        request = native.Ibcast(box, root)
        request.Wait()
        for name in ALGORITHMS:
            recv = np.empty(3 * len(groups.there))
            requests = [
                poisoned.Iallgather(values(comm.rank, 3), recv, algorithm=name),
            ]
            MPI.Request.Waitall(requests)
            agree(comm, same(recv, expected(groups, [3] * comm.size)), name)
        native.Free()


def test_one_way_traffic_leaves_the_other_side_untouched(comm):
    """MPICH's own scheme: one group sends nothing, the other's buffer must stay."""
    for groups in pairs(comm):
        low = comm.rank < groups.p
        for giving in (True, False):
            k = 6 if low is giving else 0
            theirs = 0 if low is giving else 6
            counts = [6 if (i < groups.p) is giving else 0 for i in range(comm.size)]
            for name in NAMES:
                recv = np.full(6 * len(groups.there), -3.0)
                spec = [recv, theirs, MPI.DOUBLE]
                groups.ours.Allgather(values(comm.rank, k), spec, algorithm=name)
                wanted = np.full_like(recv, -3)
                wanted[: theirs * len(groups.there)] = expected(groups, counts)
                agree(comm, same(recv, wanted), name)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="there is no /proc")
def test_persistent_sums_give_their_memory_back(comm):
    """Open MPI 5.0 keeps the scratch memory of each that is freed: of 32 KiB, 20 KB of
    a Reduce, 33 KB of an Allreduce and 260 KB of a Reduce_scatter_block."""
    groups = pair(comm, 1)
    send, recv = np.ones(4096), np.empty(4096)

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * PAGESIZE

    def grown(times: int) -> int:
        before = resident()
        for _ in range(times):
            request = groups.ours.Allreduce_init(send, recv, algorithm="doubling")
            request.Start()
            request.Wait()
            request.Free()
        return resident() - before

    grown(20)
    more = grown(100)
    agree(comm, more < 100 * send.nbytes / 4, f"{more} bytes more")
    groups.free()


def test_seven_makes_of_an_intercommunicator(comm):
    """The shapes MPICH tests: halves, dup, split, without rank 0, from a group."""
    import isthmus

    for groups in pairs(comm):
        inter = groups.ours
        makes = [
            inter,
            inter.Dup(),
            inter.Split(0, inter.rank),
            inter.Split(0, -inter.rank),
        ]
        made = inter.Create(inter.Get_group())
        for x in [*makes, made]:
            assert type(x) is isthmus.Intercomm
            for k in (1, 2, 32, 4096):
                recv = np.empty(k * x.Get_remote_size(), "i4")
                wanted = np.empty_like(recv)
                send = values(comm.rank, k, "i4")
                MPI.Intercomm.Allgather(x, send, wanted)
                x.Allgather(send, recv)
                agree(comm, same(recv, wanted))
                x.Allgather(send, recv, algorithm="balanced")
                agree(comm, same(recv, wanted))
        for x in [*makes[1:], made]:
            x.Free()
