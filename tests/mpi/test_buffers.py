"""mpi4py's buffer specifications in all their forms."""

from __future__ import annotations

import array
from itertools import product

import numpy as np
import pytest
from mpi4py import MPI

from groups import FEW, NAMES, STAGES, expected, pairs, same, values
from isthmus.mpi.plan import compile as compiling
from sampling import some
from support import agree

pytestmark = pytest.mark.mpi(*FEW)

REGULAR = ["auto", "segmented", "balanced", "segmented+library"]


def test_forms_of_a_block(comm):
    for groups in pairs(comm):
        n = len(groups.there)
        inter, native = groups.ours, groups.native
        data = values(comm.rank, 6, "i4")
        room = np.empty((n, 4), "i4")
        sends = [
            data[:4],
            [data, 4],
            [data[:4], MPI.INT],
            [data[:4], "i"],
            [data, 4, MPI.INT],
            [data, (4, 0), MPI.INT],
            [data, 4, 0, "i4"],
            (data, 4, MPI.INT),
            array.array("i", data[:4].tolist()),
            data[:4].tobytes(),
            memoryview(data[:4]),
        ]
        recvs = [room, [room, MPI.INT], [room, 4, MPI.INT], [room, (4, 0), "i"]]
        wanted = expected(groups, [4] * comm.size, "i4").reshape(n, 4)
        for turn, name in enumerate(REGULAR):
            for send, recv in some(product(sends, recvs), 3, turn):
                room[:] = -1
                inter.Allgather(send, recv, algorithm=name)
                agree(comm, same(room, wanted), f"{name} {send} {recv}")
        displaced = [data, (3, 2), MPI.INT]
        mine, other = np.empty((n, 3), "i4"), np.empty((n, 3), "i4")
        inter.Allgather(displaced, mine)
        native.Allgather(displaced, other)
        agree(comm, same(mine, other), "a displaced block")


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
        for turn, name in enumerate(NAMES + STAGES):
            for size, spec in some(cases, 3, turn):
                mine, other = np.full(size, -1.0), np.full(size, -1.0)
                native.Allgatherv(send, spec(other))
                inter.Allgatherv(send, spec(mine), algorithm=name)
                agree(comm, same(mine, other), f"{name}: {mine} is not {other}")


def test_derived_types(comm):
    """Types with gaps, on either side, in every form."""
    gapped = MPI.INT.Create_vector(3, 1, 2).Commit()
    backwards = MPI.INT.Create_indexed([1, 1], [1, 0]).Commit()
    dense = MPI.INT.Create_contiguous(3).Commit()
    for groups in pairs(comm):
        n = len(groups.there)
        send = values(comm.rank, 24, "i4")
        cases = (
            ([send, 2, gapped], lambda b: [b, 6, MPI.INT]),
            ([send[:6], 6, MPI.INT], lambda b: [b, 2, gapped]),
            ([send, 2, gapped], lambda b: [b, 2, gapped]),
            ([send[:6], 3, backwards], lambda b: [b, 6, MPI.INT]),
            ([send[:6], 2, dense], lambda b: [b, 6, MPI.INT]),
            ([send[:6], 6, MPI.INT], lambda b: [b, 2, dense]),
        )
        for turn, name in enumerate(NAMES + STAGES, groups.p):
            for sent, received in some(cases, 3, turn):
                mine, other = np.full(12 * n, -1, "i4"), np.full(12 * n, -1, "i4")
                groups.native.Allgather(sent, received(other))
                groups.ours.Allgather(sent, received(mine), algorithm=name)
                agree(comm, same(mine, other), f"{name}: {mine} is not {other}")
                mine[:] = -1
                groups.ours.Iallgather(sent, received(mine), algorithm=name).Wait()
                agree(comm, same(mine, other), f"I {name}: {mine} is not {other}")
                mine[:] = -1
                request = groups.ours.Allgather_init(
                    sent, received(mine), algorithm=name
                )
                for _ in range(2):
                    request.Start()
                    request.Wait()
                request.Free()
                agree(comm, same(mine, other), f"init {name}: {mine} is not {other}")
    for datatype in (gapped, backwards, dense):
        datatype.Free()


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


def test_absolute_addresses(comm):
    for groups in pairs(comm):
        n = len(groups.there)
        one, two = values(comm.rank, 2), values(comm.rank + 50, 3)
        places = [MPI.Get_address(x) for x in (one, two)]
        datatype = MPI.DOUBLE.Create_hindexed([2, 3], places).Commit()
        for name in NAMES:
            mine = np.empty(5 * n)
            parts = [(values(i, 2), values(i + 50, 3)) for i in groups.there]
            other = np.concatenate([x for both in parts for x in both])
            groups.ours.Allgather([MPI.BOTTOM, 1, datatype], mine, algorithm=name)
            agree(comm, same(mine, other), name)
        datatype.Free()


def test_empty_messages(comm):
    for groups in pairs(comm):
        n = len(groups.there)
        low = comm.rank < groups.p
        send = [None, 0, MPI.INT] if low else values(comm.rank, 2, "i4")
        recv = np.empty(2 * n, "i4") if low else [None, 0, MPI.INT]
        for name in NAMES:
            groups.ours.Allgather(send, recv, algorithm=name)
            wanted = expected(groups, [2] * comm.size, "i4")
            agree(comm, not low or same(recv, wanted), name)


def test_memory_beside_the_blocks_is_left_alone(comm):
    for groups in pairs(comm):
        n = len(groups.there)
        displs = [5 * i + 1 for i in range(n)]
        for name in NAMES + STAGES:
            recv = np.full(5 * n + 2, -7.0)
            send = values(comm.rank, 3)
            groups.ours.Allgatherv(send, [recv, ([3] * n, displs)], algorithm=name)
            touched = np.zeros(len(recv), bool)
            for d in displs:
                touched[d : d + 3] = True
            agree(comm, (recv[~touched] == -7).all() and (recv[touched] != -7).all())


def test_long_messages_are_cut(comm, monkeypatch):
    """The path of messages over 2 GiB, taken from 100 bytes on."""
    monkeypatch.setattr(compiling, "LONGEST_MESSAGE_BYTES", 100)
    for groups in pairs(comm):
        n = len(groups.there)
        send = values(comm.rank, 97)
        displs = [100 * i for i in range(n)]
        for name in NAMES:
            mine, other = np.full(100 * n, -1.0), np.full(100 * n, -1.0)
            groups.native.Allgatherv(send, [other, ([97] * n, displs)])
            groups.ours.Allgatherv(send, [mine, ([97] * n, displs)], algorithm=name)
            agree(comm, same(mine, other), name)
            mine[:] = -1
            request = groups.ours.Iallgatherv(
                send, [mine, ([97] * n, displs)], algorithm=name
            )
            request.Wait()
            agree(comm, same(mine, other), f"I {name}")


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
