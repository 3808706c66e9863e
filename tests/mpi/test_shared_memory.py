"""Memory that the ranks of a node share: who comes late, who fails, who has none."""

from __future__ import annotations

import os
import sys
import time
from threading import Barrier, Lock, Thread
from types import SimpleNamespace

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from groups import SHAPES, pair, pairs, same
from isthmus.mpi.buffers import node_memory
from isthmus.mpi.buffers.node_memory import NodeMemory, RootedTurns, fence_lock
from isthmus.mpi.plan.cache import Plans
from isthmus.mpi.waiting.waiting import TimeLimit, until
from sampling import LONG
from support import agree

pytestmark = pytest.mark.mpi(5)
#: for what also depends on how many there are; with groups of one size
SIZES = (2, 4, 5) if LONG else (5,)
MORE = {**SHAPES, 4: [(2, 2), (1, 3)]}


class Sum:
    """A call, in one form; most are sums of vectors."""

    def call(self, times=1, note="", **more):
        """Make the call, and see that it is right."""
        for k in range(times):
            self.recv[:] = 0
            self.make(**more)
            ok = same(self.recv, self.wanted)
            agree(self.groups.world, ok, f"{type(self).__name__} {note} call {k}")

    def summed(self, total, dtype):
        """What the other group has in all."""
        vectors = [self.of(i, total, dtype) for i in self.groups.there]
        combine = np.max if self.op is MPI.MAX else np.sum
        return combine(vectors, axis=0).astype(dtype)

    @staticmethod
    def of(rank, total, dtype):
        # no sum of 5 overflows in a byte: MPI leaves to the library what it is then
        return np.random.default_rng([rank, total]).integers(0, 25, total).astype(dtype)


class All(Sum):
    """Allreduce of vectors of this many elements."""

    def __init__(self, groups, total, seed=0, dtype="f8", op=MPI.SUM):
        self.groups, self.op = groups, op
        self.send = self.of(groups.world.rank, total, dtype)
        self.recv, self.wanted = np.empty(total, dtype), self.summed(total, dtype)

    def make(self, **more):
        self.groups.ours.Allreduce(self.send, self.recv, self.op, **more)


class Vector(Sum):
    """Reduce_scatter of vectors of this many elements, cut in a way of each group, in
    equal parts (seed 0), or all for one rank (below)."""

    def __init__(self, groups, total, seed, dtype="f8", op=MPI.SUM):
        self.groups, self.op = groups, op
        me, n = groups.local.rank, groups.local.size
        rng = np.random.default_rng(abs(seed))
        cuts = np.sort(rng.integers(0, total + 1, n - 1))
        if seed < 0:  # all of it for one
            cuts = np.where(np.arange(n - 1) < -seed % n, 0, total)
        if seed == 0:
            cuts = np.arange(1, n) * (total // n)
        self.counts = np.diff(cuts, prepend=0, append=total).tolist()
        self.send = self.of(groups.world.rank, total, dtype)
        self.recv = np.empty(self.counts[me], dtype)
        start = sum(self.counts[:me])
        self.wanted = self.summed(total, dtype)[start : start + self.counts[me]]

    def make(self, **more):
        counts = list(self.counts)
        self.groups.ours.Reduce_scatter(self.send, self.recv, counts, self.op, **more)


def test_of_one_group_only_others_change(comm):
    """What the other group receives may change while the own passes the very same."""
    for groups in pairs(comm):
        one, two = Vector(groups, 24, 1), Vector(groups, 24, 2)
        for _ in range(3):
            one.call(3, algorithm="node_aware")
            (one if comm.rank < groups.p else two).call(3, algorithm="node_aware")


@pytest.mark.mpi(*SIZES)
@pytest.mark.parametrize("who", ["first", "last", "all but the first"])
def test_counts_that_do_not_fit_are_an_error_everywhere(comm, who):
    """Nothing is received then; and the next calls are right again."""
    odd = {
        "first": comm.rank == 0,
        "last": comm.rank == comm.size - 1,
        "all but the first": comm.rank > 0,
    }[who]
    for groups in pairs(comm, MORE):
        right, more = Vector(groups, 24, 0), Vector(groups, 36, 0)
        for _ in range(2):
            right.call(3)
            call = more if odd else right
            call.recv[:] = -1
            with pytest.raises(isthmus.MismatchError, match="elements, and group"):
                groups.ours.Reduce_scatter(call.send, call.recv, call.counts)
            agree(comm, (call.recv == -1).all(), "was written to")


@pytest.mark.parametrize("op", [MPI.PROD, MPI.MIN, MPI.BXOR, MPI.LAND])
def test_operators(comm, op):
    """Also where rounding would tell their order: that of ranks."""
    for groups in pairs(comm):
        dtype = "f8" if op in (MPI.PROD, MPI.MIN) else "i8"
        send = np.arange(1, 7).astype(dtype) * (comm.rank + 1)
        counts = [6] + [0] * (groups.local.size - 1)
        recv, wanted = (np.empty(counts[groups.local.rank], dtype) for _ in range(2))
        groups.native.Reduce_scatter(send, wanted, counts, op)
        for _ in range(3):
            groups.ours.Reduce_scatter(send, recv, counts, op)
            agree(comm, same(recv, wanted))
        recv, wanted = np.empty_like(send), np.empty_like(send)
        groups.native.Allreduce(send, wanted, op)
        groups.ours.Allreduce(send, recv, op)
        agree(comm, same(recv, wanted))


def test_some_come_late(comm):
    for groups in pairs(comm):
        rng = np.random.default_rng(comm.rank)
        one, two = Vector(groups, 24, 1), Vector(groups, 24, 2)
        for _ in range(4):
            for call in (one, two):
                for _ in range(4):
                    time.sleep(rng.uniform(0, 0.004))
                    call.make(algorithm="node_aware")
                call.call(algorithm="node_aware")


@pytest.mark.parametrize("pending", [False, True])
def test_who_waits_lets_messages_go_on(comm, pending):
    """A rank that is still to come may wait for what a rank that waits sends piece by
    piece, as it does of elements with gaps; also where a message for another call has
    come to the one that waits, which MPI finds without going on."""
    last, tag = comm.size - 1, 7
    gaps = MPI.DOUBLE.Create_vector(1 << 18, 1, 2).Commit()
    for groups in pairs(comm):
        one = All(groups, 24)
        one.call(2, algorithm="node_aware")
        own = groups.ours._context().comm
        ring = (own.rank + 1) % own.size, (own.rank - 1) % own.size
        if pending:
            own.send(comm.rank, ring[0], tag)
            comm.Barrier()
        for k in range(3):
            long = np.full(1 << 19, k + 1.0 if comm.rank == 0 else 0.0)
            request = comm.Isend([long, 1, gaps], last) if comm.rank == 0 else None
            if comm.rank == last:
                comm.Recv([long, 1, gaps], 0)
                assert (long[::2] == k + 1).all()
            groups.ours.Allreduce(one.send, one.recv, algorithm="node_aware")
            if request:
                request.Wait()
            agree(comm, same(one.recv, one.wanted))
        if pending:
            own.recv(None, ring[1], tag)
    gaps.Free()


@pytest.mark.mpi(*SIZES)
def test_who_waits_lets_other_calls_go_on(comm):
    """A rank that is still to come may wait for a call that goes on in rounds."""
    late = comm.rank == comm.size - 1
    for groups in pairs(comm, MORE):
        one, two = All(groups, 24), Vector(groups, 3000, 2)
        for _ in range(5):
            two.recv[:] = 0
            request = groups.ours.Ireduce_scatter(
                two.send, two.recv, two.counts, algorithm="direct"
            )
            if late:
                request.Wait()
            groups.ours.Allreduce(one.send, one.recv, algorithm="node_aware")
            request.Wait()
            agree(comm, same(one.recv, one.wanted) and same(two.recv, two.wanted))


def test_no_file_is_left(comm):
    mine = f"isthmus-{os.getpid()}-"
    left = [x for x in os.listdir(node_memory._SHARED_FOLDER) if x.startswith(mine)]
    agree(comm, not left, str(left))


def test_overlapping_buffers_that_come_later(comm):
    """Values say nothing of places, which are looked at in every call."""
    for groups in pairs(comm):
        n = len(groups.there)
        room = np.zeros(5 * n)
        for _ in range(2):
            for name in ("node_aware", None):
                groups.ours.Allgather(np.zeros(3), np.empty(3 * n), algorithm=name)
                for send, recv in (
                    (room[:3], room[1:][: 3 * n]),
                    (room[2:5], room[: 3 * n]),
                ):
                    with pytest.raises(ValueError, match="overlap"):
                        groups.ours.Allgather(send, recv, algorithm=name)


def cross(fence):
    """Let nothing pass a fence."""
    fence.release()
    fence.acquire()


def numbered(number):
    """A call, as far as it takes turns."""
    half = number % node_memory.HALVES
    return SimpleNamespace(number=number, half=half, turn=None)


def come(segment, half, code, meeting, ranges, fence):
    """Come to a meeting, and wait for the others."""
    cross(fence)
    word, reads = segment.arrive(half, code, meeting, ranges)
    assert until(lambda: all(read() == word * n for read, n in reads), TimeLimit(30.0))
    cross(fence)


def test_what_ranks_say_at_a_meeting_is_heard(comm):
    """By groups that share a half, each of which says as much as it likes."""
    n, me, rng = comm.size, comm.rank, np.random.default_rng(4)
    memory = NodeMemory(comm, range(n), [1 << 12])
    segment, turns, fence = memory.segments[0], memory.turns, fence_lock()
    for k in range(300 if LONG else 60):
        groups = np.split(np.arange(n), [rng.integers(n + 1)])
        lengths = rng.integers(1, node_memory.SAID_BYTES + 1, 2)
        said = [
            rng.bytes(length)
            for length in lengths[(np.arange(n) >= len(groups[0])).astype(int)]
        ]
        mine = next(x.tolist() for x in groups if me in x)
        if rng.integers(20) == me:
            time.sleep(0.0005)
        assert until(lambda k=k: turns.is_free(numbered(k)), TimeLimit(30.0))
        cross(fence)
        half = segment.halves[k % node_memory.HALVES]
        first, size = segment.said_at(mine[0]), len(said[me])
        start = first + mine.index(me) * size
        half[start : start + size] = said[me]
        come(segment, k % 2, k, 0, segment.ranges(mine), fence)
        heard = bytes(half[first : first + size * len(mine)])
        cross(fence)
        turns.end(numbered(k))
        agree(comm, heard == b"".join(said[i] for i in mine), f"{k}: {heard!r}")
    memory.free()


def test_who_has_not_come_to_a_meeting_is_named(comm):
    """At any meeting of a call, though words of earlier ones are there."""
    n, me = comm.size, comm.rank
    memory = NodeMemory(comm, range(n), [1 << 12])
    segment, fence = memory.segments[0], fence_lock()
    everyone = segment.ranges(range(n))
    for meeting in range(5):
        if me < n - 1:
            segment.arrive(0, 7, meeting, everyone)
        comm.Barrier()
        missing = segment.not_come(0, 7, meeting, everyone)
        agree(comm, missing == [n - 1], f"{meeting}: {missing}")
        come(segment, 0, 7, meeting, everyone, fence)
        missing = segment.not_come(0, 7, meeting, everyone)
        agree(comm, not missing, f"{meeting}: {missing}")
        comm.Barrier()
    memory.free()


def test_types_of_other_names(comm):
    for groups in pairs(comm):
        send, recv = np.full(4, comm.rank), np.zeros(4, "i8")
        kind = MPI.INT64_T if comm.rank else MPI.LONG
        for _ in range(3):
            groups.ours.Allreduce([send, kind], [recv, kind], algorithm="node_aware")
            agree(comm, (recv == sum(groups.there)).all(), f"{recv}")
            recv[:] = -1


def test_what_is_written_before_a_meeting_is_there_after_it(comm):
    """Whoever is how late: as many meetings as find out whether memory is seen in the
    order in which it was written."""
    n, me, rng = comm.size, comm.rank, np.random.default_rng(3)
    memory = NodeMemory(comm, range(n), [1 << 12])
    segment, turns, fence = memory.segments[0], memory.turns, fence_lock()
    words, number, everyone = 64, 0, segment.ranges(range(n))
    for turn in range(1500 if LONG else 250):
        if rng.integers(200) == me:
            time.sleep(0.0005)
        call = numbered(number)
        assert until(lambda call=call: turns.is_free(call), TimeLimit(30.0))
        cross(fence)
        half = number % node_memory.HALVES
        rows = np.frombuffer(segment.halves[half], "i8", n * words).reshape(n, words)
        rows[me] = turn * n + me
        come(segment, half, number, 1, everyone, fence)
        assert (rows == turn * n + np.arange(n)[:, None]).all(), turn
        come(segment, half, number, 2, everyone, fence)
        rows[me] = -1
        come(segment, half, number, 3, everyone, fence)
        assert (rows == -1).all(), turn
        cross(fence)
        turns.end(call)
        number += 1
        if turn % 5 == 0:  # a call that does not use the memory
            turns.end(numbered(number))
            number += 1
        del rows
    memory.free()


@pytest.mark.mpi(1)
def test_a_call_by_messages_does_not_hide_the_root_before_it(comm):
    """Root 0 is still in a half when root 1, which made a call by messages meanwhile,
    comes to the half: seen as a hang of the next test, in one run of forty."""
    memory = memoryview(bytearray(node_memory.segment_bytes(3, 64)))
    segments = [node_memory.Segment(memory, range(3), place) for place in range(3)]
    first, second, remote = (RootedTurns(x, [2]) for x in segments)
    calls = {}
    for name, root, number in (("in", 0, 0), ("messages", 1, 0), ("next", 1, 2)):
        for turns in (remote, (first, second)[root]):
            turns.begin(call := numbered(number), root)
            calls[turns, name] = call
    assert remote.is_free(calls[remote, "in"]) and first.is_free(calls[first, "in"])
    remote.end(calls[remote, "in"])
    for turns in (remote, second):
        turns.end(calls[turns, "messages"])
    assert not remote.is_free(calls[remote, "next"])
    assert remote.not_ended(calls[remote, "next"]) == [0]
    assert not second.is_free(calls[second, "next"])
    first.end(calls[first, "in"])
    assert remote.is_free(calls[remote, "next"])
    assert second.is_free(calls[second, "next"])


def test_roots_take_turns_in_memory_that_only_the_others_count(comm):
    """Calls of random roots, each of which knows its own calls only; some are made
    without the memory, and ended before those that came before."""
    n, me, rng = comm.size, comm.rank, np.random.default_rng(5)
    p = 2
    memory = NodeMemory(comm, range(n), [64, 1 << 12])
    turns, fence = RootedTurns(memory.segments[1], range(p, n)), fence_lock()
    segment, numbers = turns.segment, [0] * p
    late = None
    for k in range(600 if LONG else 150):
        root, uses = int(rng.integers(p)), rng.random() < 0.8
        delay = rng.random(n) < 0.02
        if me < p and me != root:
            continue  # it has no part in the call
        number, numbers[root] = numbers[root], numbers[root] + 1
        turns.begin(call := numbered(number), root)
        if delay[me]:
            time.sleep(0.0005)
        if not uses:
            if late is None and me >= p and k % 3 == 0:
                late = call  # which others need not wait for
            else:
                turns.end(call)
            continue
        if late is not None and late.half == call.half:
            turns.end(late)
            late = None
        assert until(lambda call=call: turns.is_free(call), TimeLimit(30.0)), k
        cross(fence)
        code = number * n + root
        members = segment.ranges([root, *range(p, n)])
        data = np.frombuffer(segment.halves[call.half], "i8", 1)
        if me == root:
            data[0] = k
        come(segment, call.half, code, 1, members, fence)
        assert data[0] == k, (k, data[0])
        come(segment, call.half, code, 2, members, fence)
        turns.end(call)
        del data
    agree(comm, True)
    memory.free()


@pytest.mark.parametrize("fails", ["_file", "_mapped"])
def test_without_shared_memory(comm, monkeypatch, fails):
    """If only one rank cannot have it, as where processes are in containers."""

    def refuse(*args):
        raise OSError

    for groups in pairs(comm):
        with monkeypatch.context() as patch:
            if comm.rank == (comm.size - 1 if fails == "_mapped" else 0):
                patch.setattr(node_memory, fails, refuse)
            nodes = groups.ours._context().nodes
        agree(comm, nodes == tuple(range(comm.size)))
        for kind in (All, Vector):
            for name in ("auto", "node_aware"):
                kind(groups, 24, 1).call(2, algorithm=name)
    test_no_file_is_left(comm)


@pytest.mark.mpi(5)
def test_long_data_of_a_root_go_down_a_chain_that_comes_to_each_node_once(
    comm, monkeypatch
):
    monkeypatch.setenv("ISTHMUS_PER_NODE", "2")
    groups = pair(comm, 1)
    names = {64: "native", (1 << 14) + 8: "node_aware", 1 << 22: "chain"}
    for nbytes, name in names.items():
        data = np.zeros(nbytes // 8)
        role = 0 if comm.rank else MPI.ROOT
        ours = groups.ours
        data[:] = comm.rank == 0
        ours.Bcast(data, role)
        agree(comm, ours._last_algorithm() == name, ours._last_algorithm())
        agree(comm, bool((data == 1).all()))
    groups.free()


@pytest.mark.mpi(2)
def test_two_threads_may_end_calls_at_once(comm):
    """The caller and our own thread do, in calls beside each other."""
    memory, errors = NodeMemory(comm, range(2), [64]), []
    numbers, start = iter(range(100_000)), Barrier(2)
    lock = Lock()

    def run():
        start.wait()
        try:
            while True:
                with lock:
                    number = next(numbers)
                memory.turns.end(numbered(number))
        except StopIteration:
            pass
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=run) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    sys.setswitchinterval(interval)
    comm.Barrier()
    free = [memory.turns.is_free(numbered(k)) for k in (100_000, 100_001)]
    agree(comm, not errors and all(free), f"{errors} {free}")
    agree(comm, not memory.turns.is_free(numbered(100_002)))
    comm.Barrier()
    memory.free()


@pytest.mark.mpi(1)
def test_plans_are_kept_by_two_threads_at_once(comm):
    """An irregular call looks its second plan up where it is advanced."""

    class Small:
        nbytes = 10

    plans, errors = Plans(most_plans=5, most_bytes=1000), []

    def run(seed):
        rng = np.random.default_rng(seed)
        try:
            for k in rng.integers(0, 12, 20_000).tolist():
                plans.find(k, Small)
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=run, args=(k,)) for k in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    sys.setswitchinterval(interval)
    assert not errors and len(plans) <= 5 and plans.nbytes == 10 * len(plans)
