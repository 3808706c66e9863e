"""Calls that are made again: what is known by its objects is the same call."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from mpi4py import MPI

from groups import FEW, expected, pairs, same, values
from isthmus.mpi import again, keys
from isthmus.mpi.agreement import Agreement
from isthmus.mpi.context import PLANS
from isthmus.mpi.keys import Known, spec
from support import agree

pytestmark = pytest.mark.mpi(*FEW)


def root_of(groups):
    """What this rank gives as root if that is rank 0 of the first group."""
    if groups.world.rank == 0:
        return MPI.ROOT
    return 0 if 0 in groups.there else MPI.PROC_NULL


def test_calls_that_take_turns_are_known_by_their_objects(comm, monkeypatch):
    """From the third time on, nothing is looked up by value."""
    for groups in pairs(comm):
        n, root = len(groups.there), root_of(groups)
        one = values(comm.rank, 5), np.empty(5 * n)
        two = values(comm.rank, 7), [np.empty(7 * n), [7] * n]
        data = np.zeros(3)
        calls = [
            lambda one=one, x=groups.ours: x.Allgather(*one),
            lambda two=two, x=groups.ours: x.Allgatherv(*two),
            lambda data=data, root=root, x=groups.ours: x.Bcast(data, root),
            groups.ours.Barrier,
        ]
        for call in calls * 2:
            call()
        one[1][:], two[1][0][:] = -1, -1
        with monkeypatch.context() as patch:
            patch.setattr(again.Again, "_unknown", None)
            for call in calls:
                call()
        agree(comm, same(one[1], expected(groups, [5] * comm.size)))
        agree(comm, same(two[1][0], expected(groups, [7] * comm.size)))


def test_a_new_array_in_the_place_of_an_old_one_is_another_call(comm):
    """Python gives new objects the identity of dead ones."""
    for groups in pairs(comm):
        root, identities = root_of(groups), set()
        for k in np.random.default_rng(1).integers(2, 9, 30).tolist():
            data = np.full(k, float(k) if root == MPI.ROOT else -1.0)
            for _ in range(3):
                groups.ours.Bcast(data, root)
            agree(comm, root < 0 or bool((data == k).all()))
            identities.add(id(data))
            del data  # so that the next one may take its place
        agree(comm, len(identities) < 30)


def test_counts_that_change_in_their_list(comm):
    for groups in pairs(comm):
        n = len(groups.there)
        send, recv, counts = values(comm.rank, 9), np.empty(9 * n), [0] * n
        for k in [4, 4, 4, 9, 9, 9, 4]:
            counts[:] = [k] * n
            recv[:] = -1
            groups.ours.Allgatherv([send, k], [recv, counts])
            agree(comm, same(recv[: k * n], expected(groups, [k] * comm.size)))
            agree(comm, bool((recv[k * n :] == -1).all()))


def parts(rng, total, n):
    """A number as the sum of some others."""
    cuts = np.sort(rng.integers(0, total + 1, n - 1))
    return np.diff(cuts, prepend=0, append=total).tolist()


def test_what_others_receive_may_change(comm):
    """A rank may pass the very same while others do not: then all must ask again."""
    for groups in pairs(comm):
        rng, me, n = np.random.default_rng(5), groups.local.rank, comm.size
        send, rooms = values(comm.rank, 12), [np.empty(k) for k in range(13)]
        sums = np.sum([values(i, 12) for i in groups.there], axis=0)
        choices = [
            (parts(rng, 12, groups.p), parts(rng, 12, n - groups.p)) for _ in range(4)
        ]
        for turn, pick in enumerate(rng.integers(0, 4, 60)):
            mine = choices[pick][comm.rank >= groups.p]
            start, count = sum(mine[:me]), mine[me]
            if turn % 7 == comm.rank:  # another array, which nobody knows
                rooms[count] = np.empty(count)
            rooms[count][:] = -1
            for _ in range(turn % 3):
                groups.ours.Reduce_scatter(send, rooms[count])
            groups.ours.Reduce_scatter(send, rooms[count])
            agree(comm, same(rooms[count], sums[start : start + count]), f"turn {turn}")


def test_counts_that_no_longer_fit(comm):
    """They are an error everywhere, and later calls are right again."""
    for groups in pairs(comm):
        n = groups.local.size
        send, recv = values(comm.rank, 6 * comm.size), np.empty(6 * comm.size)
        sums = np.sum([values(i, 6 * comm.size) for i in groups.there], axis=0)
        right = [0] * n
        right[0] = 6 * comm.size
        whole = recv[: right[groups.local.rank]]
        for _ in range(2):
            for _ in range(3):
                groups.ours.Reduce_scatter(send, whole, right)
                agree(comm, same(whole, sums[: len(whole)]))
            late = comm.rank == comm.size - 1  # one rank of the last group sends less
            with pytest.raises(ValueError, match="elements, and group"):
                groups.ours.Reduce_scatter(send[:-1] if late else send, whole)


def test_what_is_agreed_is_agreed_by_all(comm):
    agreement = Agreement(comm)
    one, two = agreement.number("one"), agreement.number("two")
    assert one != two and one == agreement.number("one")
    assert agreement.same(one)
    assert not agreement.same(0)
    other = np.zeros(1, "i8")  # a message of another call must stay where it is
    request = comm.Isend(np.full(1, 7), (comm.rank + 1) % comm.size, tag=3)
    assert agreement.same(one)
    comm.Recv(other, (comm.rank - 1) % comm.size, tag=3)
    request.Wait()
    assert other == 7
    for rank in range(comm.size):
        assert not agreement.same(two if comm.rank == rank else one)
        assert not agreement.same(0 if comm.rank == rank else one)
        assert not agreement.same(one if comm.rank == rank else 0)
    for k in range(3 * PLANS):
        assert agreement.number(k) > two
    assert agreement.number("one") > two  # a number never means something else
    agreement.free()


@pytest.mark.mpi(5)
def test_counts_that_change_in_their_array(comm):
    """Of the counts it is the values that count, in whatever they come."""
    for groups in pairs(comm, {5: [(3, 2)]}):
        send, recv = values(comm.rank, 6), np.empty(6)
        sums = np.sum([values(i, 6) for i in groups.there], axis=0)
        counts = np.zeros(groups.local.size, "i4")
        for first in (6, 6, 6, 0, 0, 0, 6):
            counts[0], counts[-1] = first, 6 - first
            k = int(counts[groups.local.rank])
            recv[:] = -1
            groups.ours.Reduce_scatter(send, [recv, k, MPI.DOUBLE], counts)
            agree(comm, same(recv[:k], sums[:k]) and bool((recv[k:] == -1).all()))


def test_nothing_is_known_of_a_communicator_that_is_freed(comm):
    for groups in pairs(comm):
        ours = type(groups.ours)(groups.native.Dup())
        send, recv = values(comm.rank, 3), np.empty(3 * len(groups.there))
        for _ in range(3):
            ours.Allgather(send, recv)
        known = ours._context().known
        assert known.calls
        ours.Free()
        assert not known.calls


@pytest.mark.mpi(1)
def test_an_array_is_not_kept_alive_and_its_calls_go_with_it(comm):
    known, array, other = Known(), np.zeros(3), np.zeros(3)
    known.keep(("Bcast", id(array)), (array, 0), print)
    known.keep(("Bcast", id(other)), ([other, [3]], 0), print)
    del array
    gc.collect()
    assert list(known.calls) == [("Bcast", id(other))]
    del other
    gc.collect()
    assert not known.calls and not known._alive


@pytest.mark.mpi(1)
@pytest.mark.parametrize(
    "argument",
    [
        bytearray(8),
        [np.zeros(4), np.array([4])],
        [np.zeros(4), [np.int64(4)]],
        [np.zeros(4), MPI.DOUBLE.Create_contiguous(2)],
        [[np.zeros(4)], [4]],
    ],
    ids=["memory that may move", "an array", "not an int", "a derived type", "deep"],
)
def test_what_may_change_is_not_known(comm, argument):
    known = Known()
    known.keep(("Bcast", 1), (argument, 0), print)
    assert not known.calls


@pytest.mark.mpi(1)
def test_only_so_many_calls_are_known(comm):
    known, arrays = Known(), [np.zeros(1) for _ in range(3 * keys.MOST)]
    for array in arrays:
        known.keep(("Bcast", id(array)), (array, 0), print)
    assert 0 < len(known.calls) <= keys.MOST
    assert known.calls.keys() == known._alive.keys()


@pytest.mark.mpi(1)
def test_different_arguments_are_known_by_different_things(comm):
    a, b, byte, real = np.zeros(4), np.zeros(4), MPI.BYTE, MPI.DOUBLE
    arguments = [
        a,
        b,
        None,
        [a, [1, 2]],
        [a, [2, 1]],
        [b, [1, 2]],
        [a, (1, 2)],
        [a, 1, 2],
        [a, (1, 2), real],
        [a, ([1, 2], [3, 4]), [byte, real]],
        [a, ([1, 2], [3, 4]), [real, byte]],
        [a, ([1, 2], [4, 3]), [byte, real]],
        [a, ([1, 2], [3, 4]), real],
        [a, [1, 2], [3, 4], [byte, real]],
        [1, 2],
        [2, 1],
        [],
        [a],
        [a, real],
        [a, byte],
        [a, (5, 0), [real]],
    ]
    assert len({spec(x) for x in arguments}) == len(arguments)
