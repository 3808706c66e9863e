"""Calls in memory that all ranks share."""

from __future__ import annotations

import gc
import os
import time
import weakref
from functools import partial

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from groups import SHAPES, pairs, same
from isthmus.mpi import board, laid
from sampling import LONG, some
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


class Block(Sum):
    """Reduce_scatter_block, of vectors that are about as long."""

    def __init__(self, groups, total, seed=0, dtype="f8", op=MPI.SUM):
        self.groups, self.op = groups, op
        me, n = groups.local.rank, groups.local.size
        total = -(-total // (n * len(groups.there))) * n * len(groups.there)
        self.send, each = self.of(groups.world.rank, total, dtype), total // n
        self.recv = np.empty(each, dtype)
        self.wanted = self.summed(total, dtype)[me * each : (me + 1) * each]

    def make(self, **more):
        self.groups.ours.Reduce_scatter_block(self.send, self.recv, self.op, **more)


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


class Gathered(Sum):
    """Allgatherv of up to so many elements each."""

    def __init__(self, groups, total, seed=1, dtype="f8"):
        self.groups = groups
        n, me = groups.world.size, groups.world.rank
        sizes = np.random.default_rng([abs(seed), total]).integers(0, total + 1, n)
        if seed <= 0:  # all the same, or all by one of each group
            at = [0, groups.p] if seed else range(n)
            sizes = np.where(np.isin(range(n), at), total, 0)
        self.send = self.of(me, sizes[me], dtype)
        parts = [self.of(i, sizes[i], dtype) for i in groups.there]
        self.counts = [len(x) for x in parts]
        self.wanted = np.concatenate(parts)
        self.recv = np.empty_like(self.wanted)

    def make(self, **more):
        self.groups.ours.Allgatherv(self.send, [self.recv, list(self.counts)], **more)


class Same(Gathered):
    """Allgather of so many elements each."""

    def __init__(self, groups, total, seed=0, dtype="f8"):
        super().__init__(groups, total, 0, dtype)

    def make(self, **more):
        self.groups.ours.Allgather(self.send, self.recv, **more)


class Swapped(Sum):
    """Alltoallv of about so many elements each, with gaps between the blocks."""

    def __init__(self, groups, total, seed=1, dtype="f8"):
        self.groups = groups
        me, n, there = groups.world.rank, groups.world.size, groups.there
        sizes = np.random.default_rng([abs(seed), total]).integers(0, total + 1, (n, n))
        sizes //= n
        if seed <= 0:
            sizes[:] = total if seed == 0 else 0
            sizes[0, -1] = total
        out = [self.of(n * me + i, sizes[me, i], dtype) for i in there]
        back = [self.of(n * i + me, sizes[i, me], dtype) for i in there]
        self.counts = [len(x) for x in out], [len(x) for x in back]
        self.gap = 3 if seed else 0
        self.send, self.wanted = (self.spaced(x) for x in (out, back))
        self.recv = np.empty_like(self.wanted)

    def spaced(self, parts):
        gap = np.zeros(self.gap, parts[0].dtype)
        return np.concatenate([x for part in parts for x in (part, gap)])

    def places(self, counts):
        return [sum(counts[:i]) + i * self.gap for i in range(len(counts))]

    def make(self, **more):
        sides = zip((self.send, self.recv), self.counts, strict=True)
        given = [[x, (list(n), self.places(n))] for x, n in sides]
        self.groups.ours.Alltoallv(*given, **more)


class Equal(Swapped):
    """Alltoall of blocks of so many elements."""

    def __init__(self, groups, total, seed=0, dtype="f8"):
        super().__init__(groups, total, 0, dtype)

    def make(self, **more):
        self.groups.ours.Alltoall(self.send, self.recv, **more)


class Typed(Swapped):
    """The same as Alltoallw."""

    def make(self, **more):
        given = []
        for x, n in zip((self.send, self.recv), self.counts, strict=True):
            at = [i * x.itemsize for i in self.places(n)]
            types = [MPI.Datatype.fromcode(x.dtype.char)] * len(n)
            given.append([x, (list(n), at), types])
        self.groups.ours.Alltoallw(*given, **more)


SUMS = [Vector, Block, All]
MOVED = [Gathered, Same, Equal]
#: these are not done in memory that all share, as not all know how much they move
OTHERS = [Swapped, Typed]


def shares(groups):
    """The rooms in memory that calls on these groups share, which all ranks know."""
    found = groups.ours._context().all_agree.board
    rooms = [] if found is None else sorted(x for x, y in found._rooms.items() if y)
    assert groups.world.allgather(rooms) == [rooms] * groups.world.size
    return rooms


@pytest.fixture
def small(monkeypatch):
    """Rooms that soon are too small for a vector."""
    monkeypatch.setattr(laid, "SHORT", 1 << 8)
    monkeypatch.setattr(laid, "LONG", 1 << 9)


@pytest.mark.parametrize("total", some([0, 8192, 1, 60, 8193, (1 << 17) + 1], 4))
def test_any_size_and_then_another(comm, total):
    for groups in pairs(comm, turn=total):
        for seed in (1, 2, 0, -1) if total < 9000 else (1, -2):
            Vector(groups, total, seed).call(3)
        All(groups, total).call(3)
        Gathered(groups, total, -1).call(3)
        assert shares(groups) == [laid._room(comm.size, 8 * total)]
        for kind in (Block, *MOVED, *OTHERS):
            kind(groups, total, 1).call(2)
            kind(groups, total, 0).call(2)


def test_long_blocks_of_one_receiver_each_go_in_messages(comm):
    for groups in pairs(comm):
        Equal(groups, laid.SHORT // 8 + 1).call(2)
        assert shares(groups) == []
        Equal(groups, laid.SHORT // 8).call(2)
        assert len(shares(groups)) == 1


@pytest.mark.mpi(*SIZES)
def test_vectors_that_take_several_turns(comm, small, monkeypatch):
    """With parts of any size, elements of 1 to 16 bytes, some of them with turns that
    leave nothing for a rank."""
    for groups in pairs(comm, MORE):
        for turn in range(20 if LONG else 15):
            rng = np.random.default_rng(turn)
            total = int(rng.integers(0, 1200))
            dtype = rng.choice(["u1", "f4", "f8", "c16"])
            monkeypatch.setattr(laid, "TURN", rng.choice([-(1 << 20), 0, 500, 1 << 20]))
            seed = int(rng.integers(-2, 4))
            for kind in (SUMS[turn % 3], [*MOVED, *OTHERS][turn % 5]):
                kind(groups, total, seed, dtype).call(2, f"turn {turn}")
        assert comm.size == 2 or shares(groups) == [laid.SHORT, laid.LONG]


def test_pieces_are_all_of_a_vector():
    rng = np.random.default_rng(1)
    for _ in range(300 if LONG else 50):
        counts = rng.integers(0, rng.choice([2, 9, 99]), rng.integers(1, 9)).tolist()
        room = int(rng.integers(len(counts) + 1, 120))
        turns = laid._turns(sum(counts), room, len(counts))
        seen = []
        for k in range(turns):
            found = laid.pieces(counts, k, turns)
            ends = np.cumsum([n for *_, n in found])
            assert [at for _, at, _ in found] == [0, *ends[:-1]] and ends[-1] <= room
            seen += [i for start, _, n in found for i in range(start, start + n)]
        assert sorted(seen) == list(range(sum(counts)))


@pytest.mark.mpi(*SIZES)
def test_calls_in_any_order(comm):
    """Of several forms, in runs of any length."""
    for groups in pairs(comm, MORE):
        forms = [
            Vector(groups, 24, 1),
            Vector(groups, 24, 1),  # of the same counts, in other arrays
            Vector(groups, 24, 2),
            Vector(groups, 24, 2, "i4"),
            Vector(groups, 24, 2, "i4", MPI.MAX),
            Vector(groups, 120, 0),
            Vector(groups, 120, 0, "u1"),
            Vector(groups, 12000, 1),
            *(All(groups, n) for n in (24, 120, 12000)),
            All(groups, 24, op=MPI.MAX),
            Block(groups, 24),
            Block(groups, 12000),
            *(kind(groups, n, 2) for kind in MOVED + OTHERS for n in (3, 300)),
        ]
        rng = np.random.default_rng(7)
        for turn in range(40 if LONG else 10):
            pick = forms[rng.integers(len(forms))]
            pick.call(int(rng.integers(1, 5)), f"turn {turn}")


def test_of_one_group_only_others_change(comm):
    """What the other group receives may change while the own passes the very same."""
    for groups in pairs(comm):
        one, two = Vector(groups, 24, 1), Vector(groups, 24, 2)
        for _ in range(3):
            one.call(3)
            (one if comm.rank < groups.p else two).call(3)


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


@pytest.mark.mpi(*SIZES)
@pytest.mark.parametrize("kind", [Block, All])
def test_vectors_that_do_not_fit_are_an_error_everywhere(comm, kind):
    """Whether one rank has another, or one group."""
    for groups in pairs(comm, MORE):
        n = 12 * groups.local.size * len(groups.there)
        right, more = kind(groups, n), kind(groups, 2 * n)
        for odd in (comm.rank == comm.size - 1, comm.rank < groups.p):
            right.call(2)
            call = more if odd else right
            call.recv[:] = -1
            with pytest.raises(isthmus.MismatchError, match="elements, and"):
                call.make()
            agree(comm, (call.recv == -1).all(), "was written to")


@pytest.mark.mpi(*SIZES)
@pytest.mark.parametrize("kind", MOVED)
def test_blocks_that_do_not_fit_are_an_error_everywhere(comm, kind):
    """Whether one rank has others, or one group."""
    for groups in pairs(comm, MORE):
        right, more = kind(groups, 12, 0), kind(groups, 16, 0)
        for odd in (comm.rank == comm.size - 1, comm.rank < groups.p):
            right.call(2)
            call = more if odd else right
            call.recv[:] = -1
            with pytest.raises(isthmus.MismatchError, match="bytes, group"):
                call.make()
            agree(comm, (call.recv == -1).all(), "was written to")


def test_elements_with_gaps_go_in_rounds(comm):
    """Of one rank; the others must know."""
    gaps = MPI.DOUBLE.Create_vector(4, 1, 2).Commit()
    for groups in pairs(comm):
        n, odd = len(groups.there), comm.rank == comm.size - 1
        mine = np.full(8, float(comm.rank))
        send = [mine, 1, gaps] if odd else mine[:4]
        recv = np.zeros(4 * n)
        for _ in range(3):
            groups.ours.Allgather(send, recv)
            agree(comm, same(recv, np.repeat(groups.there, 4).astype("f8")), f"{recv}")
            recv[:] = 0
        assert shares(groups) == []
        Same(groups, 4).call(2)
        assert shares(groups) == [laid.SHORT]
    gaps.Free()


@pytest.mark.parametrize("kind", some([*SUMS, *MOVED], 2))
def test_a_rank_that_knows_nothing_any_more(comm, kind):
    """Its plans may have made room for others; it asks, so everyone does."""
    for groups in pairs(comm):
        one = kind(groups, 24, 1)
        for rank in range(comm.size):
            one.call(3)
            if comm.rank == rank:
                groups.ours._context().known.clear()
            one.call(2, f"rank {rank}")


def test_no_array_is_kept_alive(comm):
    for groups in pairs(comm):
        made = [kind(groups, n, 1) for kind in SUMS + MOVED for n in (24, 12000)]
        for one in made:
            one.call(3)
        alive = [weakref.ref(x) for one in made for x in (one.send, one.recv)]
        del one, made
        gc.collect()
        agree(comm, not any(x() is not None for x in alive))


@pytest.mark.parametrize("kind", some([*SUMS, *MOVED], 2, 1))
def test_arrays_that_take_turns_on_one_rank(comm, kind):
    """They are other calls there, but the same to all others: nobody asks."""
    for groups in pairs(comm):
        two = [kind(groups, 24, 1) for _ in range(2)]
        for one in two:
            one.call(2)
        context = groups.ours._context()
        context.all_agree.number = None  # which whoever asks would call
        for turn in range(10):
            two[comm.rank == 0 and turn % 2].call()
        del context.all_agree.number


@pytest.mark.parametrize("kind", SUMS)
def test_named_algorithms_and_own_operators(comm, kind):
    """They are done in rounds, between calls in memory that all share."""

    def add(a, b, datatype):
        x, y = (np.frombuffer(m, "f8") for m in (a, b))
        y += x

    own = MPI.Op.Create(add, commute=False)
    name = "ordered" if kind is All else "direct"
    for groups in pairs(comm):
        one = kind(groups, 24, 1)
        one.call(3, algorithm=name)
        one.op = own
        one.call(3)
        assert shares(groups) == []
        one.op = MPI.SUM
        one.call(3)
        assert shares(groups) == [laid.SHORT]
        one.call(3, algorithm=name)
        one.op = own
        one.call(3)
    own.Free()


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


def test_types_of_other_names_are_combined_in_rounds(comm):
    for groups in pairs(comm):
        n = comm.size - len(groups.there)
        send = np.full(2 * n * len(groups.there), comm.rank)
        recv = np.zeros(len(send) // n, "i8")
        kind = MPI.INT64_T if comm.rank else MPI.LONG
        counts = [len(recv)] * n
        a, b, ours = [send, kind], [recv, kind], groups.ours
        for call, n in (
            (partial(ours.Reduce_scatter, a, b, counts), len(recv)),
            (partial(ours.Reduce_scatter_block, a, b), len(recv)),
            (partial(ours.Allreduce, [send[:2], kind], [recv[:2], kind]), 2),
        ):
            for _ in range(3):
                call()
                agree(comm, (recv[:n] == sum(groups.there)).all(), f"{recv}")
                recv[:] = -1
        assert shares(groups) == []


def test_where_every_call_is_checked(comm, monkeypatch):
    monkeypatch.setenv("ISTHMUS_CHECK", "1")
    for groups in pairs(comm):
        for kind in [*SUMS, *MOVED]:
            kind(groups, 24, 1).call(3)
        assert not groups.ours._context().known.calls


def test_other_forms_and_other_calls_in_between(comm):
    for groups in pairs(comm):
        one, two = Vector(groups, 24, 1), All(groups, 24)
        one.call(2)
        for _ in range(5):
            one.recv[:] = 0
            request = groups.ours.Ireduce_scatter(one.send, one.recv, one.counts)
            two.call()
            request.Wait()
            agree(comm, same(one.recv, one.wanted), "nonblocking")
            one.call()


def test_some_come_late(comm):
    for groups in pairs(comm):
        rng = np.random.default_rng(comm.rank)
        one, two = Vector(groups, 24, 1), Vector(groups, 24, 2)
        for _ in range(4):
            for call in (one, two):
                for _ in range(4):
                    time.sleep(rng.uniform(0, 0.004))
                    groups.ours.Reduce_scatter(call.send, call.recv, call.counts)
                call.call()


def test_who_waits_lets_messages_go_on(comm):
    """A rank that is still to come may wait for what a rank that waits sends piece by
    piece, as it does of elements with gaps."""
    last = comm.size - 1
    gaps = MPI.DOUBLE.Create_vector(1 << 18, 1, 2).Commit()
    for groups in pairs(comm):
        one = Vector(groups, 24, 1)
        one.call(2)
        for k in range(3):
            long = np.full(1 << 19, k + 1.0 if comm.rank == 0 else 0.0)
            request = comm.Isend([long, 1, gaps], last) if comm.rank == 0 else None
            if comm.rank == last:
                comm.Recv([long, 1, gaps], 0)
                assert (long[::2] == k + 1).all()
            groups.ours.Reduce_scatter(one.send, one.recv, one.counts)
            if request:
                request.Wait()
            agree(comm, same(one.recv, one.wanted))
    gaps.Free()


@pytest.mark.mpi(*SIZES)
def test_who_waits_lets_other_calls_go_on(comm):
    """A rank that is still to come may wait for a call that goes on in rounds."""
    late = comm.rank == comm.size - 1
    for groups in pairs(comm, MORE):
        one, two = Vector(groups, 24, 1), Vector(groups, 3000, 2)
        for _ in range(5):
            two.recv[:] = 0
            request = groups.ours.Ireduce_scatter(
                two.send, two.recv, two.counts, algorithm="direct"
            )
            if late:
                request.Wait()
            groups.ours.Reduce_scatter(one.send, one.recv, one.counts)
            request.Wait()
            agree(comm, same(one.recv, one.wanted) and same(two.recv, two.wanted))


def test_what_is_laid_down_is_there(comm):
    """Whoever is how late, in whatever order: as many turns as find out whether memory
    is seen in the order in which it was written."""
    found, rng = board.board(comm), np.random.default_rng(3)
    n, me = comm.size, comm.rank
    assert found is not None
    words, place = 64, found.room(512)
    rows = [
        [
            np.frombuffer(MPI.memory.fromaddress(place(row, i), 512), "i8")
            for i in range(n)
        ]
        for row in (0, 1)
    ]
    taken = np.empty((n, words), "i8")
    now = np.empty(1, "i8")

    def lay(row):
        rows[row][me][:] = now + me

    def take(row):
        for i in range(n):
            taken[i] = rows[row][i]

    ways = tuple(((lambda r=row: lay(r),), (lambda r=row: take(r),)) for row in (0, 1))
    for turn in range(1500 if LONG else 250):
        said = rng.integers(0, 99, n) > 0
        if rng.integers(200) == me:
            time.sleep(0.0005)
        now[0], taken[:] = turn * n, -1
        same_word = found.turn(ways, found.said(7 if said[me] else 8))
        assert same_word == (said.all() or not said.any()), turn
        wanted = turn * n + np.arange(n)[:, None] if same_word else -1
        assert (taken == wanted).all(), turn
    rows.clear()
    found.free()


def test_no_file_is_left(comm):
    mine = f"isthmus-{os.getpid()}-"
    left = [x for x in os.listdir(board._SHARED) if x.startswith(mine)]
    agree(comm, not left, str(left))


@pytest.mark.parametrize("fails", ["_file", "_mapped"])
@pytest.mark.parametrize("after", [0, 1])
def test_without_shared_memory(comm, monkeypatch, fails, after):
    """If only one rank cannot have it, as where processes are in containers; or cannot
    have as much."""
    made = getattr(board, fails)
    calls = []

    def refuse(*args):
        calls.append(args)
        if len(calls) > after:
            raise OSError
        return made(*args)

    for groups in pairs(comm):
        if comm.rank == (comm.size - 1 if fails == "_mapped" else 0):
            calls.clear()
            monkeypatch.setattr(board, fails, refuse)
        one, two = Vector(groups, 24, 1), Vector(groups, 24, 2)
        others = [kind(groups, 24, 1) for kind in (Block, All, *MOVED)]
        for call in (one, two, one, *others):
            call.call(3)
            assert shares(groups) == []
    test_no_file_is_left(comm)
