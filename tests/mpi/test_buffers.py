"""Buffers: ways to say them that are seldom, their types and their sizes."""

from __future__ import annotations

import array

import numpy as np
import pytest
from mpi4py import MPI

from groups import FEW, expected, pairs, same, values
from sampling import some
from support import agree

pytestmark = pytest.mark.mpi(*FEW)


def test_forms_of_a_vector(comm):
    for groups in pairs(comm):
        n = len(groups.there)
        inter, native = groups.ours, groups.native
        send = values(comm.rank, 3)
        stride = [4 * i for i in range(n)]
        packed = [
            lambda b: b,
            lambda b: [b, MPI.DOUBLE],
            lambda b: [b, 3],
            lambda b: [b, [3] * n],
            lambda b: [b, np.array([3] * n)],
            lambda b: [b, ([3] * n, None)],
            lambda b: [b, [3] * n, MPI.DOUBLE],
        ]
        with_gaps = [
            lambda b: [b, ([3] * n, stride)],
            lambda b: [b, (3, 4), "d"],
            lambda b: [b, [3] * n, stride, MPI.DOUBLE],
            lambda b: [b, [3] * n, np.array(stride), MPI.DOUBLE],
        ]
        cases = [(3 * n, x) for x in packed] + [(4 * n, x) for x in with_gaps]
        for name in ("auto", "merged"):
            for size, spec in cases:
                mine, other = np.full(size, -1.0), np.full(size, -1.0)
                native.Allgatherv(send, spec(other))
                inter.Allgatherv(send, spec(mine), algorithm=name)
                agree(comm, same(mine, other), f"{name}: {mine} is not {other}")


@pytest.mark.parametrize("owner", [np.array, bytearray, memoryview, array.array])
def test_memory_of_another_size_is_another_call(comm, owner):
    """Whatever kind of object has it: a call is known by its bytes."""
    for groups in pairs(comm):
        n = len(groups.there)
        for size in (8, 24, 16, 8, 24):
            mine = np.full(size, 10 + comm.rank, "u1")
            room = np.zeros(size * n, "u1")
            send = array.array("B", mine) if owner is array.array else owner(mine)
            groups.ours.Allgather(send, room)
            wanted = np.repeat(np.array(groups.there, "u1") + 10, size)
            agree(comm, same(room, wanted), f"{size}: {room}")


def test_types_of_messages_are_freed(comm):
    """A type is made for every message that is not one run of bytes."""
    gaps = MPI.DOUBLE.Create_vector(1 << 13, 1, 2).Commit()
    for groups in pairs(comm):
        n = len(groups.there)
        send, room = np.ones(1 << 14), np.zeros(n << 14)
        numbers = []
        for _ in range(3):
            for _ in range(20):
                groups.ours.Allgatherv(
                    [send, 1, gaps], [room, [1] * n, gaps], algorithm="segmented"
                )
            types = [MPI.BYTE.Create_contiguous(3) for _ in range(4)]
            numbers.append(sorted(x.py2f() for x in types))
            for x in types:
                x.Free()
        agree(comm, numbers[1] == numbers[2], f"{numbers}")
    gaps.Free()


def test_a_type_may_be_freed_after_the_call_and_its_handle_reused(comm):
    for groups in pairs(comm):
        n = len(groups.there)
        send = values(comm.rank, 12, "i4")
        for blocks in (1, 2, 3, 1):
            datatype = MPI.INT.Create_vector(2, blocks, 4).Commit()
            mine, other = np.empty(2 * blocks * n, "i4"), np.empty(2 * blocks * n, "i4")
            groups.native.Allgather([send, 1, datatype], other)
            groups.ours.Allgather([send, 1, datatype], mine)
            datatype.Free()
            agree(comm, same(mine, other))


def test_empty_messages(comm):
    for groups in pairs(comm):
        n = len(groups.there)
        low = comm.rank < groups.p
        send = [None, 0, MPI.INT] if low else values(comm.rank, 2, "i4")
        recv = np.empty(2 * n, "i4") if low else [None, 0, MPI.INT]
        for name in ("auto", "merged"):
            groups.ours.Allgather(send, recv, algorithm=name)
            wanted = expected(groups, [2] * comm.size, "i4")
            agree(comm, not low or same(recv, wanted), name)


@pytest.mark.mpi(2, timeout=180)
def test_more_than_two_gib(comm):
    """One form under each library, or both."""
    for groups in pairs(comm):
        n = (1 << 31) + 24
        send = np.zeros(n, "u1")
        send[[0, n // 2, n - 1]] = 3 + comm.rank
        recv = np.empty(n, "u1")
        calls = [
            lambda: groups.ours.Allgather(send, recv),
            lambda: groups.ours.Iallgather(send, recv).Wait(),
        ]
        for call in some(calls, 2, MPI.get_vendor()[0] == "Open MPI"):
            recv[[0, 5, n // 2, n - 1]] = 99
            call()
            other = 3 + 1 - comm.rank
            found = recv[[0, 5, n // 2, n - 1]].tolist()
            agree(comm, found == [other, 0, other, other], str(found))
