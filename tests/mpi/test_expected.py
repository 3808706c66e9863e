"""Calls that all ranks expect again, and compare while they make them."""

from __future__ import annotations

import gc
import os
import time
import weakref

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from groups import FEW, SHAPES, pairs, same
from isthmus.mpi import flags
from isthmus.mpi.agreement import OFTEN
from isthmus.mpi.flags import Flags
from isthmus.mpi.tasks_sums import SHORT
from support import agree

pytestmark = pytest.mark.mpi(*FEW)
#: with groups of one size, too
MORE = {**SHAPES, 8: [(4, 4), (2, 6)]}
#: so many calls in a row, and the next one is expected: the first asks
SURELY = OFTEN + 1


class Vector:
    """Reduce_scatter of vectors of this many elements, cut in a way of each group, or
    in equal parts (seed 0)."""

    def __init__(self, groups, total, seed, dtype="f8", op=MPI.SUM):
        self.groups, self.op = groups, op
        rng, me, n = np.random.default_rng(seed), groups.local.rank, groups.local.size
        cuts = np.sort(rng.integers(0, total + 1, n - 1))
        if seed == 0:
            cuts = np.arange(1, n) * (total // n)
        self.counts = np.diff(cuts, prepend=0, append=total).tolist()
        self.send = self.of(groups.world.rank, total, dtype)
        self.recv = np.empty(self.counts[me], dtype)
        vectors = [self.of(i, total, dtype) for i in groups.there]
        start = sum(self.counts[:me])
        whole = np.sum(vectors, axis=0) if op is MPI.SUM else np.max(vectors, axis=0)
        self.wanted = whole[start : start + self.counts[me]].astype(dtype)

    @staticmethod
    def of(rank, total, dtype):
        return np.random.default_rng([rank, total]).integers(0, 99, total).astype(dtype)

    def call(self, times=1, note="", **more):
        """Make the call, and see that it is right."""
        for k in range(times):
            self.recv[:] = 0
            self.groups.ours.Reduce_scatter(
                self.send, self.recv, list(self.counts), self.op, **more
            )
            ok = same(self.recv, self.wanted)
            agree(self.groups.world, ok, f"{note} call {k}")


def expects(groups):
    """The number of the call that is expected, which all ranks know."""
    number = groups.ours._context().all_agree.expected
    assert groups.world.allgather(number) == [number] * groups.world.size
    return number


def test_what_is_made_often_is_expected(comm):
    for groups in pairs(comm):
        one = Vector(groups, 12, 1)
        one.call(SURELY - 1)
        assert expects(groups) == 0
        one.call()
        assert expects(groups) > 0
        one.call(9)
        assert expects(groups) > 0


@pytest.mark.parametrize("total", [0, 1, 60, SHORT // 8, SHORT])
def test_any_size_and_then_another(comm, total):
    """Also those that are too long to be expected."""
    for groups in pairs(comm):
        for seed in (1, 2):
            Vector(groups, total, seed).call(SURELY + 2)
            long = total == 0 or 8 * total > SHORT
            assert (expects(groups) == 0) == long


@pytest.mark.mpi(*FEW, 8)
def test_calls_in_any_order(comm):
    """Of several forms, some expected by then, in runs of any length."""
    for groups in pairs(comm, MORE):
        forms = [
            Vector(groups, 24, 1),
            Vector(groups, 24, 1),  # of the same counts, in other arrays
            Vector(groups, 24, 2),
            Vector(groups, 24, 2, "i4"),
            Vector(groups, 24, 2, "i4", MPI.MAX),
            Vector(groups, 120, 0),
            Vector(groups, 120, 0, "u1"),
        ]
        rng = np.random.default_rng(7)
        for turn in range(40):
            pick = forms[rng.integers(len(forms))]
            pick.call(int(rng.integers(1, 2 * OFTEN)), f"turn {turn}")


def test_of_one_group_only_others_change(comm):
    """What the other group receives may change while the own passes the very same."""
    for groups in pairs(comm):
        one, two = Vector(groups, 24, 1), Vector(groups, 24, 2)
        for _ in range(3):
            one.call(SURELY + 1)
            assert expects(groups)
            (one if comm.rank < groups.p else two).call(SURELY + 1)


@pytest.mark.mpi(*FEW, 8)
@pytest.mark.parametrize("who", ["first", "last", "all but the first"])
def test_counts_that_do_not_fit_are_an_error_everywhere(comm, who):
    """Of a call that is expected, too; and the next ones are right again."""
    odd = {
        "first": comm.rank == 0,
        "last": comm.rank == comm.size - 1,
        "all but the first": comm.rank > 0,
    }[who]
    for groups in pairs(comm, MORE):
        right, more = Vector(groups, 24, 0), Vector(groups, 36, 0)
        for _ in range(2):
            right.call(SURELY + 2)
            assert expects(groups)
            call = more if odd else right
            with pytest.raises(isthmus.MismatchError, match="elements, and group"):
                groups.ours.Reduce_scatter(call.send, call.recv, call.counts)
            assert expects(groups) == 0


def test_a_rank_that_knows_nothing_any_more(comm):
    """Its plans may have made room for others; it asks, so everyone does."""
    for groups in pairs(comm):
        one = Vector(groups, 24, 1)
        for rank in range(comm.size):
            one.call(SURELY + 1)
            if comm.rank == rank:
                groups.ours._context().known.clear()
            one.call(2, f"rank {rank}")


def test_no_array_is_kept_alive(comm):
    for groups in pairs(comm):
        one = Vector(groups, 24, 1)
        one.call(SURELY + 1)
        alive = [weakref.ref(x) for x in (one.send, one.recv)]
        del one
        gc.collect()
        agree(comm, [x() for x in alive] == [None, None])


def test_arrays_that_take_turns_on_one_rank(comm):
    """They are other calls there, but the same to all others: nobody says no."""
    for groups in pairs(comm):
        two = [Vector(groups, 24, 1) for _ in range(2)]
        for one in two:
            one.call(SURELY)
        assert (number := expects(groups))
        for turn in range(10):
            two[comm.rank == 0 and turn % 2].call()
            assert expects(groups) == number


def test_named_algorithms_and_own_operators_are_not_expected(comm):
    def add(a, b, datatype):
        x, y = (np.frombuffer(m, "f8") for m in (a, b))
        y += x

    own = MPI.Op.Create(add, commute=False)
    for groups in pairs(comm):
        one = Vector(groups, 24, 1)
        one.call(SURELY + 1, algorithm="direct")
        assert expects(groups) == 0
        one.call(SURELY + 1)
        assert expects(groups)
        one.op = own
        one.call(SURELY + 1)
        assert expects(groups) == 0
    own.Free()


def test_nothing_is_expected_where_every_call_is_checked(comm, monkeypatch):
    monkeypatch.setenv("ISTHMUS_CHECK", "1")
    for groups in pairs(comm):
        Vector(groups, 24, 1).call(SURELY + 1)
        assert expects(groups) == 0 and not groups.ours._context().known.calls


def test_other_forms_and_other_calls_in_between(comm):
    for groups in pairs(comm):
        one, room = Vector(groups, 24, 1), np.empty(24)
        one.call(SURELY)
        for _ in range(5):
            one.recv[:] = 0
            request = groups.ours.Ireduce_scatter(one.send, one.recv, one.counts)
            groups.ours.Allreduce(one.send, room)
            request.Wait()
            agree(comm, same(one.recv, one.wanted), "nonblocking")
            one.call()
            assert expects(groups)


def test_some_come_late(comm):
    for groups in pairs(comm):
        rng = np.random.default_rng(comm.rank)
        one, two = Vector(groups, 24, 1), Vector(groups, 24, 2)
        for _ in range(4):
            for call in (one, two):
                call.call(SURELY)
                for _ in range(4):
                    time.sleep(rng.uniform(0, 0.004))
                    groups.ours.Reduce_scatter(call.send, call.recv, call.counts)
                call.call()


def test_flags_say_what_each_said(comm):
    """Whoever is how late: all come to the same, and it is what was said."""
    told, rng, mine = Flags(comm), np.random.default_rng(3), comm.rank
    assert told.ready() and told.ready()
    for turn in range(300):
        said = rng.integers(0, 9, comm.size) > 0
        if rng.integers(20) == mine:
            time.sleep(0.0005)
        if said[mine]:
            place, yes, row, all_yes = next(told.turns)
            told.raised[place] = yes
            found = told.all_do(row, all_yes)
        else:
            told.say_no()
            found = False
        assert found == said.all(), turn
        if not said.all():  # then all ask, which nobody leaves before all have come
            comm.Barrier()
    told.free()


def test_no_file_is_left(comm):
    left = [x for x in os.listdir(flags._SHARED) if x.startswith("isthmus-")]
    agree(comm, not left, str(left))


@pytest.mark.parametrize("fails", ["_file", "_mapped"])
def test_without_shared_memory_nothing_is_expected(comm, monkeypatch, fails):
    """If only one rank cannot have it, as where processes are in containers."""

    def refuse(*_):
        raise OSError

    if comm.rank == (comm.size - 1 if fails == "_mapped" else 0):
        monkeypatch.setattr(flags, fails, refuse)
    for groups in pairs(comm):
        one, two = Vector(groups, 24, 1), Vector(groups, 24, 2)
        for call in (one, two, one):
            call.call(SURELY + 2)
            assert expects(groups) == 0
    test_no_file_is_left(comm)
