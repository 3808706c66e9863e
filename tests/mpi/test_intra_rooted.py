"""Reduce, Gather(v) and Scatter(v) inside a group: every algorithm, form and root."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from between import chain, in_order
from inside import SIZES, comms
from inside_calls import KINDS, ROOTED, first, names, rooted
from sampling import some
from support import TURN, agree, forms, without_persistent_collectives

pytestmark = pytest.mark.mpi(*SIZES)


def roots(group):
    return sorted({0, group.size // 2, group.size - 1})


def fault(group, op, found, name):
    """What is wrong in any form of a call, if something is."""
    case, before = found
    wrong = []
    for form in forms(group, op, case.args, name):
        if case.fault:
            wrong.append(f"{op} {name} {form} {case.args}: {case.fault}")
        if case.out is not None:
            case.out[:] = before
    return wrong


@pytest.mark.parametrize("op", ROOTED)
def test_every_algorithm(comm, op):
    """Each in some cases, so that there is one for every case."""
    number = ROOTED.index(op)
    for group in some(comms(comm), 2, number):
        wrong = []
        ways = list(product(KINDS, roots(group), (False, True)))
        for turn, name in enumerate(names(op), number + TURN + group.size):
            for kind, root, in_place in some(ways, 7, turn):
                case = rooted(group, op, KINDS[kind], root, in_place)
                wrong.append(fault(group, op, case, name))
        agree(comm, not any(wrong), first(wrong))


@pytest.mark.parametrize("op", ROOTED)
def test_as_the_native_call(comm, op):
    for group in comms(comm)[-2:]:
        wrong = []
        for kind, in_place in product(KINDS, (False, True)):
            case, _ = rooted(group, op, KINDS[kind], group.size - 1, in_place)
            getattr(group, op)(*case.args, algorithm="native")
            wrong.append([case.fault] if case.fault else [])
        agree(comm, not any(wrong), first(wrong))


def test_in_the_order_of_ranks(comm):
    by = in_order()
    for group in comms(comm):
        wrong = []
        for name, root in product(names("Reduce", commutative=False), roots(group)):
            for in_place in (False, True):
                how = root, in_place, by, chain
                case = rooted(group, "Reduce", KINDS["long"], *how)
                wrong.append(fault(group, "Reduce", case, name))
        agree(comm, not any(wrong), first(wrong))
    for name in ("chain", "circulant", "fastest_node_first"):
        with pytest.raises(ValueError, match="not commutative"):
            comms(comm)[-1].Reduce(np.zeros(2), np.zeros(2), by, algorithm=name)
    by.Free()


@pytest.mark.parametrize("name", ["auto", "linear", "binomial", "fastest_node_first"])
def test_derived_types_on_some_ranks(comm, name):
    """With gaps on some ranks, and with a single element that has all of it on others;
    at the root in place too."""
    every_other = MPI.INT.Create_vector(3, 1, 2).Create_resized(0, 24).Commit()
    whole = MPI.INT.Create_contiguous(3).Commit()
    for group, root in product(comms(comm)[-2:], (0, 2)):
        p, r = group.size, group.rank
        own = np.arange(3, dtype="i4") + 10 * r
        apart = np.full(6, -1, "i4")
        apart[::2] = own
        one = [[own, MPI.INT], [apart, 1, every_other], [own, 1, whole]][r % 3]
        wanted = np.add.outer(10 * np.arange(p), np.arange(3)).ravel()
        for in_place in (False, True):
            room = np.full(6 * p, -1, "i4")
            if in_place:
                room[6 * root : 6 * root + 6 : 2] = 10 * root + np.arange(3)
            send = MPI.IN_PLACE if in_place and r == root else one
            recv = [room, [1] * p, every_other] if r == root else None
            group.Gatherv(send, recv, root, algorithm=name)
            gaps = (room[1::2] == -1).all()
            right = r != root or ((room[::2] == wanted).all() and gaps)
            agree(group, bool(right), f"Gatherv {name} in place {in_place}: {room}")
            back, spread = np.full(3, -1, "i4"), np.full(6, -1, "i4")
            into = [[back, MPI.INT], [spread, 1, every_other], [back, 1, whole]][r % 3]
            room.flags.writeable = False  # what is sent is only read, in place too
            into = MPI.IN_PLACE if in_place and r == root else into
            group.Scatterv(recv, into, root, algorithm=name)
            result = spread[::2] if r % 3 == 1 else back
            right = (in_place and r == root) or (result == own).all()
            right = right and (spread[1::2] == -1).all()
            agree(group, bool(right), f"Scatterv {name} in place {in_place}: {result}")
    every_other.Free()
    whole.Free()


def test_what_has_no_meaning_is_not_read(comm):
    """The buffer that only the root has: others may pass anything."""
    for group in comms(comm)[-2:]:
        p, r, root = group.size, group.rank, group.size - 1
        x, out = np.full(2, float(r)), np.zeros((p, 2))
        odd = out if r == root else np.zeros(3)
        for name in ("auto", names("Gather")[1 + TURN]):
            group.Gather(x, odd, root, algorithm=name)
            agree(group, r != root or (out[:, 1] == range(p)).all(), name)
            mine = np.zeros(2)
            group.Scatter(odd, mine, root, algorithm=name)
            agree(group, bool((mine == r).all()), name)
        group.Reduce(x, x.copy() if r == root else np.zeros(5), MPI.SUM, root)
        agree(group, True)


def wrong_calls(p, r, root):
    """(error, part of its text, operation, arguments) on this rank."""
    x, all_ = np.zeros(4), np.zeros(4 * p)
    frozen = all_.copy()
    frozen.flags.writeable = False
    far = (ValueError, f"there are ranks 0 to {p - 1}")
    calls = [
        (*far, "Gather", (x, all_, p)),
        (*far, "Scatterv", (all_, x, -1)),
        (*far, "Reduce", (x, x.copy(), MPI.SUM, MPI.ROOT)),
        (ValueError, "does not combine", "Reduce", (x, x.copy(), MPI.REPLACE, root)),
    ]
    if r != root:
        return [
            *calls,
            (ValueError, "IN_PLACE has no", "Reduce", (MPI.IN_PLACE, x, MPI.SUM, root)),
            (ValueError, "IN_PLACE has no", "Gather", (MPI.IN_PLACE, None, root)),
            (ValueError, "IN_PLACE has no", "Scatterv", (None, MPI.IN_PLACE, root)),
            (TypeError, "expecting buffer", "Gatherv", (None, None, root)),
            (BufferError, "read-only", "Scatter", (None, frozen, root)),
        ]
    own = all_[4 * r : 4 * r + 4]
    return [
        *calls,
        (
            ValueError,
            "3 elements are sent, 4",
            "Reduce",
            (np.zeros(3), x, MPI.SUM, root),
        ),
        (ValueError, "types", "Reduce", (x.astype("i4"), x, MPI.SUM, root)),
        (ValueError, "overlap; for data", "Reduce", (x, x, MPI.SUM, root)),
        (ValueError, "overlap; for data", "Gather", (own, all_, root)),
        (ValueError, "overlap; for a block", "Scatter", (all_, own, root)),
        (ValueError, "sends 24 bytes, and has room", "Gather", (x[:3], all_, root)),
        (ValueError, "sends 32 bytes, and has room", "Scatter", (all_, x[:3], root)),
        (ValueError, "expecting", "Gatherv", (x, [all_, [4] * (p + 1)], root)),
        (ValueError, "not a multiple", "Scatter", (np.zeros(4 * p + 1), x, root)),
        (ValueError, "negative count", "Scatterv", ([all_, [-1] * p], x, root)),
        (BufferError, "read-only", "Gatherv", (x, frozen, root)),
        (TypeError, "expecting buffer", "Gather", (x, None, root)),
    ]


def test_wrong_calls_are_refused_and_leave_nothing_behind(comm):
    group, root = comms(comm)[-1], 2
    for error, text, op, args in wrong_calls(group.size, group.rank, root):
        for name in (op, f"I{op.lower()}", f"{op}_init"):
            with pytest.raises(error, match=text):
                getattr(group, name)(*args)
    wrong = []
    for op in ROOTED:
        with pytest.raises(ValueError, match="no algorithm 'x'"):
            case, _ = rooted(group, op, KINDS["equal"], root)
            getattr(group, op)(*case.args, algorithm="x")
        getattr(group, op)(*case.args, algorithm="binomial")
        wrong.append([case.fault] if case.fault else [])
    agree(comm, not any(wrong), first(wrong))


def test_the_checked_mode_tells_everyone(comm, monkeypatch):
    monkeypatch.setenv("ISTHMUS_CHECK", "1")
    group, r = isthmus.Intracomm(comm.Dup()), comm.rank
    p, odd = group.size, 5 if r == 3 else 4
    x, all_ = np.zeros(odd), np.zeros(4 * p)
    with pytest.raises(isthmus.MismatchError, match="rank 3 sends 40 bytes"):
        group.Gather(x, all_, 1)
    with pytest.raises(isthmus.MismatchError, match="rank 3 expects 40"):
        group.Scatter(all_, x, 1)
    with pytest.raises(isthmus.MismatchError, match="rank 3 sends 40 bytes"):
        group.Ireduce(x, x.copy(), MPI.SUM, 1)
    with pytest.raises(isthmus.MismatchError, match="calls with root"):
        group.Gatherv(x[:4], [all_, [4] * p], 2 if r == 3 else 1)
    with pytest.raises(isthmus.MismatchError, match="IN_PLACE"):
        group.Gather(MPI.IN_PLACE, all_, 1)
    for op in ROOTED:
        case, _ = rooted(group, op, KINDS["zeros"], 1)
        getattr(group, op)(*case.args)
        agree(comm, not case.fault, case.fault)
    group.Free()


@pytest.mark.parametrize("op", ["Bcast", *ROOTED])
def test_a_library_without_persistent_collectives(comm, monkeypatch, op):
    without_persistent_collectives(monkeypatch)
    group = comms(comm)[-1].Dup()
    if op == "Bcast":
        room = np.full(3, float(comm.rank))
        for _ in forms(group, op, (room, 1), "auto"):
            agree(comm, bool((room == 1).all()))
            room[:] = comm.rank
    else:
        case = rooted(group, op, KINDS["zeros"], 1)
        wrong = fault(group, op, case, "auto")
        agree(comm, not wrong, first([wrong]))
    group.Free()


def test_many_calls_of_changing_roots_and_forms(comm):
    """Nobody waits for the others between calls."""
    group = comms(comm)[-1]
    rng, open_, wrong = np.random.default_rng(7), [], []
    for turn in range(60):
        op, root = ROOTED[rng.integers(5)], int(rng.integers(group.size))
        name = str(rng.choice(names(op)))
        case, _ = rooted(group, op, KINDS["zeros"], root, turn=turn)
        if rng.random() < 0.5:
            getattr(group, op)(*case.args, algorithm=name)
            wrong.append([f"{op} {name}: {case.fault}"] if case.fault else [])
        else:
            start = getattr(group, f"I{op.lower()}")
            open_.append((start(*case.args, algorithm=name), case, f"{op} {name}"))
    for request, case, what in open_:
        request.Wait()
        wrong.append([f"{what}: {case.fault}"] if case.fault else [])
    agree(comm, not any(wrong), first(wrong))
