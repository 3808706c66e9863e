"""Calls that are made again: known by their values, whatever their objects."""

from __future__ import annotations

import gc
import time
import weakref
from contextlib import suppress
from copy import deepcopy

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from between import OPERATIONS, Case, Kit, call, names
from groups import expected, pairs, same, values
from isthmus.mpi.arguments import call as calls
from isthmus.mpi.arguments.values import UnknownValue, values_of
from isthmus.mpi.plan import cache
from isthmus.mpi.plan.plan import Plan
from sampling import LONG, some
from support import TURN, agree

pytestmark = pytest.mark.mpi(*[2] * LONG, 5)
#: how often calls take turns
TURNS = 40 if LONG else 10
#: calls with arrays at as many places
PLACES = 13


@pytest.fixture
def anew(monkeypatch):
    """The plans that are made."""
    plans, make = [], calls.plan_of

    def counted(*args):
        plans.append(make(*args))
        return plans[-1]

    monkeypatch.setattr(calls, "plan_of", counted)
    return plans


def root_of(groups):
    """What this rank gives as root if that is rank 0 of the first group."""
    if groups.world.rank == 0:
        return MPI.ROOT
    return 0 if 0 in groups.there else MPI.PROC_NULL


def made(comm, op, beside, *args, **named):
    """Make a call, blocking or not."""
    if beside:
        getattr(comm, "I" + op.lower())(*args, **named).Wait()
    else:
        getattr(comm, op)(*args, **named)


def usual(x):
    """Blocks of their own types as they are mostly passed."""
    if isinstance(x, list) and isinstance(x[0], np.ndarray) and len(x) == 4:
        array, counts, displs, types = x
        return [array, (counts, displs), types]
    return x


def test_a_new_array_in_the_place_of_an_old_one_is_another_call(comm):
    """Python gives new objects the identity of dead ones."""
    for groups in pairs(comm):
        root, identities = root_of(groups), set()
        for k in np.random.default_rng(1).integers(2, 9, 30).tolist():
            data = np.full(k, float(k) if root == MPI.ROOT else -1.0)
            for turn in range(4):
                made(groups.ours, "Bcast", turn % 2, data, root)
            agree(comm, root < 0 or bool((data == k).all()))
            identities.add(id(data))
            del data  # so that the next one may take its place
        agree(comm, len(identities) < 30)


def dressed(rng, x):
    """The same argument in one of the ways to pass it, nothing of which lives on."""
    if isinstance(x, list) and isinstance(x[0], np.ndarray):
        parts = [list(y) if isinstance(y, list) else y for y in x]
        return [parts, tuple(parts)][rng.integers(2)]
    if not isinstance(x, np.ndarray):
        return x
    kind = MPI.Datatype.fromcode(x.dtype.char)
    return [x, [x, kind], (x, kind), x.view(x.dtype)][rng.integers(4)]


@pytest.mark.parametrize("op", some(OPERATIONS, 2, 1))
def test_arguments_in_whatever_they_come(comm, op):
    """Arrays that take turns, in lists that take each other's place in memory."""
    for groups in pairs(comm, turn=OPERATIONS.index(op) // 2):
        rng = np.random.default_rng(7)
        alone = np.random.default_rng(comm.rank)
        cases = [
            call(Kit(groups, turn=turn), op, kind, turn % comm.size)
            for turn, kind in enumerate(["equal", "equal", "zeros", "equal"])
        ]
        faults = []
        for pick in rng.integers(0, len(cases), TURNS):
            case = cases[pick]
            case.clear()
            for _ in range(rng.integers(1, 3)):
                args = [dressed(alone, x) for x in case.args]
                made(groups.ours, op, rng.integers(2), *args)
            faults += filter(None, [case.fault])
        agree(comm, not faults, "; ".join(faults[:1]))


def elsewhere(case, k):
    """The same call with its arrays in other memory, and that memory."""
    arenas, out = [], None

    def put(x):
        nonlocal out
        if isinstance(x, list):
            return [put(x[0]), *x[1:]]
        if not isinstance(x, np.ndarray):
            return x
        arenas.append(arena := np.full(x.nbytes + 128, 0xEE, "u1"))
        found = arena[8 * k + 8 :][: x.nbytes].view(x.dtype)
        found[:] = x
        out = found if x is case.out else out
        return found

    args = tuple(map(put, case.args))
    return Case(args, out, case.wanted), arenas


@pytest.mark.parametrize("op", sorted({*OPERATIONS} - {"Barrier"}))
def test_arrays_that_lie_elsewhere_every_time(comm, op, anew):
    """Some algorithms, in slices of longer arrays: nothing beside them is written, and
    no plan is made again once there was one for either form."""
    number = OPERATIONS.index(op)
    for groups in pairs(comm, turn=number):
        for turn, name in enumerate(some(names(op), 4, number + TURN), TURN):
            kind = ("equal", "zeros", "some")[turn % 3]
            case = call(Kit(groups), op, kind, turn % comm.size)
            held, faults = [], []
            for k in range(PLACES):
                fresh, arenas = elsewhere(case, k)
                fresh.clear()
                held += arenas  # so that others lie elsewhere
                if k == 2:
                    anew.clear()
                made(groups.ours, op, k % 2, *fresh.args, algorithm=name)
                faults += filter(None, [fresh.fault])
                for arena in arenas:
                    end = arena.size - 120 + 8 * k
                    beside = *arena[: 8 * k + 8], *arena[end:]
                    faults += ["memory beside it"] * ({*beside} != {0xEE})
            agree(comm, not faults, f"{name}: {faults[:1]}")
            agree(comm, not anew, f"{name}: {len(anew)} plans")


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


def arguments(op, root, by, short, more, long):
    """What this rank passes."""
    is_root, leaf = root == MPI.ROOT, root >= 0
    return {
        "Bcast": (short, root),
        "Reduce": (short if leaf else None, more if is_root else None, by, root),
        "Gather": (short if leaf else None, long if is_root else None, root),
        "Scatter": (long if is_root else None, short if leaf else None, root),
        "Allreduce": (short, more, by),
    }[op]


@pytest.mark.parametrize("op", ["Bcast", "Reduce", "Gather", "Scatter", "Allreduce"])
def test_the_same_arrays_in_other_calls(comm, op):
    """With another root, another operator or another algorithm."""
    for groups in pairs(comm):
        rng, n = np.random.default_rng(6), len(groups.there)
        arrays = {x: [np.empty(k) for k in (4, 4, 4 * n)] for x in ("native", "ours")}
        for turn in range(TURNS):
            number = int(rng.integers(comm.size))
            root = number - groups.there.start if number in groups.there else -1
            root = root if root >= 0 else MPI.PROC_NULL
            root = MPI.ROOT if number == comm.rank else root
            by, name = (
                [MPI.SUM, MPI.MAX][rng.integers(2)],
                [None, "auto"][turn // (9 if LONG else 5) % 2],
            )
            for k in range(int(rng.integers(1, 4))):
                beside = rng.integers(2)
                for whose, mine in arrays.items():
                    for x in mine:
                        x[:] = values(comm.rank + turn + k, x.size)
                    args = arguments(op, root, by, *mine)
                    if whose == "ours":
                        made(groups.ours, op, beside, *args, algorithm=name)
                    else:
                        getattr(groups.native, op)(*args)
                agree(comm, all(map(same, *arrays.values())), f"turn {turn}")


def test_the_same_arrays_with_other_counts(comm):
    """Counts of others that change, in lists and in arrays."""
    inside = isthmus.Intracomm(comm.Dup())
    for groups in pairs(comm):
        rng, alone = np.random.default_rng(4), np.random.default_rng(comm.rank)
        send = values(comm.rank, 3)
        for ours, there in ((groups.ours, groups.there), (inside, range(comm.size))):
            recv = np.empty(3 * len(there) + 3)
            for turn in range(TURNS):
                counts = [3] * comm.size
                counts[rng.integers(comm.size)] += int(rng.integers(-3, 3))
                own = counts[comm.rank]
                mine = send if own == 3 else values(comm.rank, own)
                for _ in range(int(rng.integers(1, 4))):
                    recv[:] = -1
                    theirs = [counts[i] for i in there]
                    given = [theirs, np.array(theirs)][alone.integers(2)]
                    ours.Allgatherv(mine, [recv, given])
                    wanted = np.concatenate([values(i, counts[i]) for i in there])
                    agree(comm, same(recv[: wanted.size], wanted), f"turn {turn}")
                    agree(comm, bool((recv[wanted.size :] == -1).all()))
    inside.Free()


def refill(kept, x):
    """The same objects with other things in them."""
    if isinstance(x, np.ndarray):
        kept[: x.size] = x
    elif isinstance(x, tuple):
        for part in zip(kept, x, strict=True):
            refill(*part)
    else:
        kept[:] = x


@pytest.mark.parametrize("op", [x for x in OPERATIONS if x[-1] in "vw"])
def test_lists_that_change_in_place(comm, op):
    """The very same arrays and lists, with other numbers in the lists."""
    for groups in pairs(comm, turn=OPERATIONS.index(op)):
        rng, faults = np.random.default_rng(2), []
        cases = [
            call(Kit(groups, turn=turn), op, kind, comm.size - 1)
            for turn, kind in enumerate(["long", "equal", "zeros", "equal"])
        ]
        first = [deepcopy(usual(x)) for x in cases[0].args]
        for pick in rng.integers(0, len(cases), TURNS):
            case, args, out = cases[pick], [], None
            case.clear()
            for kept, x in zip(first, map(usual, case.args), strict=True):
                if isinstance(x, list):
                    for part in zip(kept, x, strict=True):
                        refill(*part)
                    out = kept[0] if x[0] is case.out else out
                args.append(kept if isinstance(x, list) else x)
            for _ in range(rng.integers(1, 4)):
                getattr(groups.ours, op)(*args)
            if out is not None:
                case.out[:] = out[: case.out.size]
            faults += filter(None, [case.fault])
        agree(comm, not faults, "; ".join(faults[:1]))


TYPED = {
    "sent": [(2, 8, MPI.DOUBLE), (2, 0, MPI.DOUBLE), (16, 0, MPI.BYTE)],
    "received": [(2, 8, MPI.DOUBLE), (2, 0, MPI.DOUBLE), (16, 8, MPI.BYTE)],
    "both": [(2, 0, MPI.DOUBLE), (2, 0, MPI.FLOAT), (1, 0, MPI.DOUBLE)],
}


@pytest.mark.parametrize("side", TYPED)
def test_one_list_of_an_alltoallw_that_changes(comm, side):
    """Other counts, other places or other types, and other arrays."""
    for groups in pairs(comm):
        rng, n, me = np.random.default_rng(9), len(groups.there), groups.local.rank
        sends, recvs = ([np.empty(4 * n) for _ in range(2)] for _ in range(2))
        usual_lists, lists = (
            ([2] * n, [32 * i for i in range(n)], [MPI.DOUBLE] * n) for _ in range(2)
        )
        for turn in range(2 * TURNS):
            count, at, kind = TYPED[side][rng.integers(3)]
            lists[0][:], lists[2][:] = [count] * n, [kind] * n
            lists[1][:] = [32 * i + at for i in range(n)]
            send, recv = sends[turn // 5 % 2], recvs[turn // 2 % 2]
            send[:], recv[:] = values(comm.rank + turn, 4 * n), -1
            specs = []
            for x, own in ((send, "sent"), (recv, "received")):
                counts, displs, kinds = lists if side in (own, "both") else usual_lists
                specs.append([x, (counts, displs), kinds])
            for _ in range(int(rng.integers(1, 4))):
                groups.ours.Alltoallw(*specs)
            wanted, nbytes = np.full(4 * n, -1.0), min(16, count * kind.size)
            taken, put = (at, 0) if side == "sent" else (0, at)
            for i, rank in enumerate(groups.there):
                theirs = values(rank + turn, 4 * comm.size).view("u1")[
                    32 * me + taken :
                ]
                wanted.view("u1")[32 * i + put :][:nbytes] = theirs[:nbytes]
            agree(comm, same(recv, wanted), f"turn {turn}")


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
            given = [list(mine), np.array(mine), None][turn // 20]
            for _ in range(1 + turn % 4):
                groups.ours.Reduce_scatter(send, rooms[count], given)
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


def test_an_array_that_is_no_more_is_not_none(comm):
    """None may be passed too: here, for what is in its place already."""
    ours, n, me = isthmus.Intracomm(comm.Dup()), comm.size, comm.rank
    for op in ["Allgather", "Allgatherv"]:
        send, recv = values(me, 4), np.empty(4 * n)
        for _ in range(4):
            getattr(ours, op)(send, [recv, [4] * n] if op[-1] == "v" else recv)
        del send
        recv[4 * me : 4 * me + 4] = values(me + n, 4)
        getattr(ours, op)(None, [recv, [4] * n] if op[-1] == "v" else recv)
        wanted = np.concatenate([values(i + n, 4) for i in range(n)])
        agree(comm, same(recv, wanted))
    ours.Free()


def test_in_place_and_not_inside_a_group(comm):
    """Calls in turn, of the same and of other arrays, in all the ways to pass them."""
    ours, n, me = isthmus.Intracomm(comm.Dup()), comm.size, comm.rank
    rng, alone = np.random.default_rng(3), np.random.default_rng(me)
    sends, recvs = [np.empty(3) for _ in range(2)], [np.empty(3 * n) for _ in range(3)]
    for turn in range(60 if LONG else 20):
        op = ["Allgather", "Allgatherv", "Bcast"][rng.integers(3)]
        send, recv = sends[alone.integers(2)], recvs[alone.integers(3)]
        root, in_place = int(rng.integers(n)), bool(alone.integers(2))
        name = ["auto", "native", "auto", None][rng.integers(4)]
        for again_ in range(int(rng.integers(1, 5))):
            send[:], recv[:] = values(me + turn, 3), -1
            recv[3 * me : 3 * me + 3] = values(me + turn, 3)
            mine = MPI.IN_PLACE if in_place else dressed(alone, send)
            wanted = [values(i + turn, 3) for i in range(n)]
            if op == "Bcast":
                recv[:] = turn + again_ if me == root else -1
                ours.Bcast(dressed(alone, recv), root, algorithm=name)
                wanted = [np.full(3 * n, float(turn + again_))]
            elif op == "Allgather":
                ours.Allgather(mine, dressed(alone, recv), algorithm=name)
            else:
                ours.Allgatherv(mine, dressed(alone, [recv, [3] * n]), algorithm=name)
            agree(comm, same(recv, np.concatenate(wanted)), f"turn {turn}: {op}")
    ours.Free()


def test_an_operator_in_the_place_of_one_that_was_freed(comm):
    """MPI libraries give new operators the handles of old ones."""
    for groups in pairs(comm):
        send, recv, n = values(comm.rank, 3), np.empty(3), len(groups.there)
        for k in range(4):

            def combine(x, y, datatype, k=k):
                np.frombuffer(y)[:] += np.frombuffer(x) + k

            op = MPI.Op.Create(combine, commute=True)
            for _ in range(4):
                recv[:] = -1
                groups.ours.Allreduce(send, recv, op, algorithm="three_phase")
                sums = np.sum([values(i, 3) for i in groups.there], axis=0)
                agree(comm, same(recv, sums + k * (n - 1)))
            op.Free()
            with pytest.raises(ValueError, match="does not combine"):
                groups.ours.Allreduce(send, recv, op)


ARGUMENTS = [
    lambda a, b: a,
    lambda a, b: b,
    lambda a, b: None,
    lambda a, b: [a, [1, 2]],
    lambda a, b: [a, [2, 1]],
    lambda a, b: [a, [1]],
    lambda a, b: [b, [1, 2]],
    lambda a, b: [a, (1, 2)],
    lambda a, b: [a, 1, 2],
    lambda a, b: [a, (1, 2), MPI.DOUBLE],
    lambda a, b: [a, ([1, 2], [3, 4]), [MPI.BYTE, MPI.DOUBLE]],
    lambda a, b: [a, ([1, 2], [3, 4]), [MPI.DOUBLE, MPI.BYTE]],
    lambda a, b: [a, ([1, 2], [4, 3]), [MPI.BYTE, MPI.DOUBLE]],
    lambda a, b: [a, ([2, 1], [3, 4]), [MPI.BYTE, MPI.DOUBLE]],
    lambda a, b: [b, ([1, 2], [3, 4]), [MPI.BYTE, MPI.DOUBLE]],
    lambda a, b: [a, ([1, 2], [3, 4]), MPI.DOUBLE],
    lambda a, b: [a, [1, 2], [3, 4], [MPI.BYTE, MPI.DOUBLE]],
    lambda a, b: [a, np.array([1, 2])],
    lambda a, b: [a, (np.array([1, 2]), [3, 4]), [MPI.BYTE, MPI.DOUBLE]],
    lambda a, b: [a, ([1, 2], np.array([3, 4])), [MPI.BYTE, MPI.DOUBLE]],
    lambda a, b: [],
    lambda a, b: [a],
    lambda a, b: [a, MPI.DOUBLE],
    lambda a, b: [a, MPI.BYTE],
    lambda a, b: [a, (5, 0), [MPI.DOUBLE]],
    lambda a, b: MPI.IN_PLACE,
]
#: ways to say each of some roots, counts and operators, which follow the buffers
NUMBERS = [
    [0, np.int32(0), np.int64(0), np.array(0)],
    [1, np.int32(1), np.int64(1), np.array(1)],
    [[1, 2], np.array([1, 2]), np.array([1, 2], "i4")],
    [[2, 1], np.array([2, 1]), np.array([2, 1], "i4")],
    [(1, 2)],
    [None],
    [MPI.SUM],
    [MPI.MAX],
]


@pytest.mark.mpi(1)
def test_numbers_are_known_by_their_values(comm):
    """An array of counts and an integer of numpy have memory, but are no buffers."""
    known = [{values_of((None, x), "Bcast")[0] for x in ways} for ways in NUMBERS]
    assert [len(x) for x in known] == [1] * len(NUMBERS)
    assert len(set.union(*known)) == len(NUMBERS)


@pytest.mark.mpi(1)
def test_different_arguments_are_known_by_different_values(comm):
    """An array in the place of another is the same; what values do not say is not
    known."""
    a, b = np.zeros(4), np.zeros(4)
    known = []
    for make in ARGUMENTS:
        with suppress(UnknownValue, TypeError):
            known.append(values_of((make(a, b),), "Bcast")[0])
    # of two arrays of one size and type, and of lists of them, one is as the other;
    # so is an array of counts as a list of them, and a number as one in a tuple
    assert len({*known}) >= len(known) - 6 and len(known) >= 25
    two, other = MPI.DOUBLE.Create_contiguous(2), MPI.DOUBLE.Create_vector(2, 1, 2)
    same_size = [values_of(([a, 1, kind],), "Bcast")[0] for kind in (two, other)]
    assert same_size[0] != same_size[1]
    two.Free()
    other.Free()
    for argument in ([], [a, 1.0], [a, [1.0, 2]], 5.0, [a, MPI.DATATYPE_NULL]):
        with pytest.raises((UnknownValue, TypeError)):
            values_of((argument,), "Bcast")


@pytest.mark.mpi(1)
def test_no_value_is_an_identity_or_an_address(comm):
    """Equal arguments in other objects have equal values."""
    for make in ARGUMENTS:
        ends = []
        for _ in range(2):
            with suppress(UnknownValue, TypeError):
                ends.append(values_of((make(np.zeros(4), np.zeros(4)),), "Bcast")[0])
        assert len({*ends}) <= 1, ends


def test_arrays_anywhere_and_plans_that_are_bounded(comm, monkeypatch):
    """Fresh arrays at every call, of more sizes than plans are kept."""
    monkeypatch.setattr(cache.Plans.__init__, "__defaults__", (40, 1 << 20))
    groups = next(pairs(comm))
    ours, n = groups.ours, len(groups.there)
    context, rng = ours._context(), np.random.default_rng(1)
    held = []
    for turn in range(240 if LONG else 90):
        k, name = int(rng.integers(1, 80)), ["auto", "direct"][turn % 2]
        send, recv = values(comm.rank, k), np.empty(k * n)
        made(ours, "Allgather", turn % 4 > 1, send, recv, algorithm=name)
        wanted = np.concatenate([values(i, k) for i in groups.there])
        agree(comm, same(recv, wanted), f"turn {turn}")
        if turn % 3 == 0:
            held.append((send, recv))  # so that others lie elsewhere
        assert len(context.plans) <= 40
        assert context.plans.nbytes == sum(
            plan.nbytes for plan in context.plans.plans()
        )
    groups.free()


@pytest.mark.mpi(1)
def test_what_is_kept_is_bounded_when_it_is_kept(comm):
    """Plans by number and bytes, those used least recently first; scratch by bytes."""
    plans = cache.Plans(most_plans=3, most_bytes=1 << 20)
    known = {k: Plan((k,), "") for k in range(5)}
    for k in range(3):
        plans.keep(k, known[k])
    assert plans.find(0, dict) is known[0]  # now 1 was used least recently
    plans.keep(3, known[3])
    assert plans.get(1) is None and plans.get(0) is known[0] and len(plans) == 3
    large = Plan((4,), "", said=bytes(1 << 20))
    plans.keep(4, large)
    assert len(plans) == 1 and plans.nbytes == large.nbytes
    plans.keep(4, known[4])
    assert plans.nbytes == known[4].nbytes
    scratch = cache.Scratch(most_bytes=1 << 15)
    rooms = [scratch.take(8000) for _ in range(9)]
    for room in rooms:
        scratch.give_back(room)
    assert scratch.nbytes == 1 << 15
    assert {id(scratch.take(8192)) for _ in range(4)} <= {*map(id, rooms)}
    scratch.give_back(scratch.take(1000))
    assert scratch.nbytes == 0


@pytest.mark.parametrize("name", ["segmented", "node_aware", "native"])
def test_calls_under_way_together_share_one_plan(comm, name, anew):
    for groups in pairs(comm):
        n = len(groups.there)
        send, many = np.empty(5), np.empty((4, 5 * n))
        anew.clear()
        for turn in range(6):
            send[:] = values(comm.rank + turn, 5)
            wanted = np.concatenate([values(i + turn, 5) for i in groups.there])
            many[:] = -1
            recvs = [many[k] for k in (0, 1, 2, 3)][: 1 + 3 * (turn < 4)]
            going = [groups.ours.Iallgather(send, x, algorithm=name) for x in recvs]
            if turn % 2:
                MPI.Request.Waitall(going)
            else:
                for request in reversed(going):
                    request.Wait()
            agree(comm, all(same(x, wanted) for x in recvs), f"turn {turn}")
        agree(comm, len(anew) == 1, f"{len(anew)} plans")


@pytest.mark.parametrize("op", ["Allgather", "Alltoall", "Allgatherv"])
def test_calls_of_known_values_are_not_read_again(comm, op, monkeypatch):
    """Wherever their buffers are; in some calls one follows the other in memory, and
    begins at the same address if that is empty."""
    reads, read = [], calls.Call.task

    def counted(self):
        reads.append(self)
        return read(self)

    monkeypatch.setattr(calls.Call, "task", counted)
    name = {"Allgather": "direct", "Alltoall": "linear"}.get(op, "balanced")
    for groups in pairs(comm, turn=TURN):
        for kind in ("equal", "empty"):
            for turn in range(6):
                if turn == 1:
                    reads.clear()
                case = call(Kit(groups, turn=turn), op, kind, 1)
                both = [x for x in case.args if isinstance(x, np.ndarray)]
                room = np.concatenate(both) if both and turn % 2 else None
                args, at = list(case.args), 0
                for i, x in enumerate(args):
                    if room is not None and isinstance(x, np.ndarray):
                        args[i], at = room[at : at + x.size], at + x.size
                getattr(groups.ours, "I" + op.lower())(*args, algorithm=name).Wait()
                for x, y in zip(case.args, args, strict=True):
                    if isinstance(x, np.ndarray):
                        x[...] = y
                agree(comm, not case.fault, f"{turn} {kind}: {case.fault}")
            once = not reads or kind == "empty"
            agree(comm, once, f"{len(reads)} reads of 5 calls, {kind}")


def test_no_array_is_kept_alive(comm):
    for groups in pairs(comm):
        n = len(groups.there)
        arrays = [(values(comm.rank, k), np.empty(k * n)) for k in (3, 12000)]
        for send, recv in arrays:
            for name in ("auto", "direct", "node_aware", "native", "segmented"):
                for beside in (False, True):
                    made(groups.ours, "Allgather", beside, send, recv, algorithm=name)
        alive = [weakref.ref(x) for one in arrays for x in one]
        del arrays, send, recv
        time.sleep(0.01)  # until the thread has seen that calls are over
        gc.collect()
        agree(comm, not any(x() is not None for x in alive))


def test_plans_of_one_operation_do_not_serve_another(comm):
    """The same arrays in Allgather and Allgatherv, kept on some ranks only."""
    for groups in pairs(comm):
        n = len(groups.there)
        send, recv = values(comm.rank, 400), np.empty(400 * n)
        wanted = expected(groups, [400] * comm.size)
        for turn in range(6):
            groups.ours.Allgather(send, recv)
            agree(comm, same(recv, wanted), f"turn {turn}")
            other = recv if (comm.rank + turn) % 2 else np.empty_like(recv)
            groups.ours.Allgatherv(send, other)
            agree(comm, same(other, wanted), f"turn {turn}, v")
