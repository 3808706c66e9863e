"""Inside a group: what calls take, what they refuse, and what they leave alone."""

from __future__ import annotations

import logging
import threading
from pickle import PicklingError

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from between import in_order
from groups import same, values
from isthmus.choose.choice import Choice, choice
from isthmus.mpi.arguments import inside
from isthmus.schedules import registry
from support import FORMS, agree, done
from things import equal, python_object

pytestmark = pytest.mark.mpi(1, 5)

NAMES = ["auto", "library", "ring", "bruck", "blocked_ring", "circulant"]


@pytest.fixture
def group(comm):
    own = comm.Dup()
    yield isthmus.Intracomm(own)
    own.Free()


def everyones(n, p, dtype="f8"):
    return np.concatenate([values(i, n, dtype) for i in range(p)])


def wrong_calls(p, r):
    """(error, part of its text, send, receive, keywords) of an Allgatherv."""
    x, room = np.zeros(4), np.zeros(4 * p)
    frozen = room.copy()
    frozen.flags.writeable = False
    calls = [
        (ValueError, "IN_PLACE has no meaning", [MPI.IN_PLACE, 4], room, {}),
        (ValueError, "IN_PLACE has no meaning", x, MPI.IN_PLACE, {}),
        (ValueError, "overlap; for data that are", room[4 * r : 4 * r + 4], room, {}),
        (ValueError, "sends 24 bytes, and has room for 32", x[:3], room, {}),
        (ValueError, "needs bytes", x, [room, [5] * p], {}),
        (ValueError, "expecting", x, [room, [4] * (p + 1)], {}),
        (ValueError, "negative count", x, [room, [-1] * p], {}),
        (ValueError, "no algorithm 'x'", x, room, {"algorithm": "x"}),
        (ValueError, "no option 'n=4'", x, room, {"algorithm": "ring(n=4)"}),
        (ValueError, "no intragroup stage", x, room, {"algorithm": "ring+ring"}),
        (BufferError, "read-only", x, frozen, {}),
        (TypeError, "expecting buffer", x, None, {}),
    ]
    if p & (p - 1):
        odd = {"algorithm": "recursive_doubling"}
        calls.append((ValueError, f"does not work for a group of {p}", x, room, odd))
    return calls


@pytest.mark.parametrize("form", ["Allgatherv", "Iallgatherv", "Allgatherv_init"])
def test_wrong_calls_raise_and_leave_nothing_behind(group, form):
    for error, text, send, recv, more in wrong_calls(group.size, group.rank):
        with pytest.raises(error) as caught:
            getattr(group, form)(send, recv, **more)
        assert text in str(caught.value)
    send, recv = values(group.rank, 3), np.empty(3 * group.size)
    group.Allgatherv(send, recv, algorithm="ring")
    agree(group, same(recv, everyones(3, group.size)))


def test_what_is_sent_may_be_read_only_and_what_is_received_may_not(group):
    """In the first call and in those whose plan is known."""
    p = group.size
    calls = {
        "Allgather": (2, 2 * p),
        "Allgatherv": (2, 2 * p),
        "Alltoall": (2 * p, 2 * p),
        "Alltoallv": (2 * p, 2 * p),
        "Allreduce": (3, 3),
        "Reduce_scatter": (2 * p, 2, [2] * p),
        "Reduce_scatter_block": (2 * p, 2),
    }
    for op, (sent, received, *rest) in calls.items():
        call, send, recv = getattr(group, op), np.ones(sent), np.zeros(received)
        frozen, untouchable = np.ones(sent), np.zeros(received)
        frozen.flags.writeable = untouchable.flags.writeable = False
        total = p if "educe" in op else 1
        for _ in range(3):
            with pytest.raises(BufferError, match="read-only"):
                call(send, untouchable, *rest)
            for x in (frozen, send):
                recv[:] = 0
                call(x, recv, *rest)
                assert (recv == total).all(), op
    agree(group, True)


def test_sums_of_elements_with_gaps_that_the_library_makes(group):
    """Short sums are left to it; they are staged, as operators of MPI's own know no
    type with gaps and those of a user all."""
    pairs_of_two = MPI.DOUBLE.Create_vector(2, 1, 2).Commit()

    def add(x, y, datatype):
        b = np.frombuffer(y)
        b += np.frombuffer(x)

    by = MPI.Op.Create(add, commute=True)
    for _ in range(3):
        send, recv = np.arange(3.0) + group.rank, np.full(3, -1.0)
        group.Allreduce([send, 1, pairs_of_two], [recv, 1, pairs_of_two], by)
        wanted = np.arange(3.0) * group.size + sum(range(group.size))
        agree(group, same(recv[::2].copy(), wanted[::2]), f"{recv}")
    by.Free()
    pairs_of_two.Free()


def test_an_intercommunicator_is_refused(comm):
    if comm.size > 1:
        local = comm.Split(comm.rank % 2)
        inter = local.Create_intercomm(0, comm, 1 - comm.rank % 2)
        with pytest.raises(TypeError):
            isthmus.Intracomm(inter)
        inter.Free()
        local.Free()


@pytest.mark.parametrize("sent", [3, 5])
def test_the_checked_mode_tells_everyone(comm, monkeypatch, sent):
    monkeypatch.setenv("ISTHMUS_CHECK", "1")
    own = comm.Dup()
    group, p = isthmus.Intracomm(own), comm.size
    counts = [4] * p
    if comm.rank == p - 1:  # right by itself, but not what the others expect
        counts[-1] = sent
    for form in ("Allgatherv", "Iallgatherv", "Allgatherv_init"):
        send, recv = np.zeros(counts[comm.rank]), np.zeros(sum(counts))
        if p == 1:
            continue
        with pytest.raises(isthmus.MismatchError, match=f"rank {p - 1} sends") as e:
            getattr(group, form)(send, [recv, counts])
        assert len(set(comm.allgather(str(e.value)))) == 1
    own.Free()


def test_wrong_broadcasts(group):
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    for error, text, args in (
        (ValueError, "there are ranks 0 to", (np.zeros(3), group.size)),
        (ValueError, "there are ranks 0 to", (np.zeros(3), -1)),
        (ValueError, "needs bytes", ([np.zeros(3), 4, MPI.DOUBLE], 0)),
        (TypeError, "expecting buffer", (None, 0)),
    ):
        with pytest.raises(error, match=text):
            group.Bcast(*args)
    with pytest.raises(ValueError, match="no algorithm 'x'"):
        group.Bcast(np.zeros(3), 0, algorithm="x")
    if group.size > 1:
        root = (group.rank + 1) % group.size
        with pytest.raises(BufferError, match="read-only"):
            group.Bcast(frozen, root)
    agree(group, True)


def wrong_rooted_calls(p, r, root):
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


@pytest.mark.mpi(5)
def test_wrong_rooted_calls_are_refused_and_leave_nothing_behind(group):
    root = 2
    for error, text, op, args in wrong_rooted_calls(group.size, group.rank, root):
        for name in (op, f"I{op.lower()}", f"{op}_init"):
            with pytest.raises(error, match=text):
                getattr(group, name)(*args)
    is_right(group, root)


def is_right(group, root=0):
    """Calls of any kind work."""
    p, r = group.size, group.rank
    x, total, block = np.full(p, float(r)), np.zeros(p), np.zeros(1)
    group.Allreduce(x, total)
    right = bool((total == sum(range(p))).all())
    group.Reduce(x, total if r == root else None, MPI.MAX, root)
    right &= r != root or bool((total == p - 1).all())
    group.Scatter(total + 1.0 * np.arange(p) if r == root else None, block, root)
    right &= block[0] == p - 1 + r
    agree(group, bool(right), f"{total} {block}")


WRONG = [
    ("Allreduce", (np.zeros(3), np.zeros(4)), "3 elements are sent, 4 received"),
    ("Allreduce", (np.zeros(3), np.zeros(3, "i4")), "types"),
    ("Allreduce", (np.zeros(3), np.zeros(3), MPI.REPLACE), "does not combine"),
    ("Reduce_scatter", (np.zeros(5), np.zeros(1), [1] * 4), "expecting 5 counts"),
    ("Reduce_scatter", (np.zeros(6), np.zeros(1), [1] * 5), "the counts are"),
    ("Reduce_scatter_block", (np.zeros(6), np.zeros(1)), "6 (elem|is not)"),
    ("Alltoall", (np.zeros(5), np.zeros(10)), "8 bytes are sent to each, 16"),
    ("Alltoall", (np.zeros(6), np.zeros(5)), "not a multiple"),
    ("Alltoallv", (np.zeros(5), [np.zeros(5), [1] * 4]), "expecting 5 counts"),
]


@pytest.mark.mpi(5)
def test_wrong_sums_and_exchanges_are_refused(group):
    for op, args, words in WRONG:
        for form in (op, f"I{op.lower()}", f"{op}_init"):
            with pytest.raises(ValueError, match=words):
                getattr(group, form)(*args)
    x, many, block = np.zeros(3), np.zeros(5), np.zeros(1)
    calls = [("Allreduce", (x, x.copy())), ("Alltoall", (many, many.copy()))]
    calls += [("Reduce_scatter_block", (many, block)), ("Gather", (block, many, 2))]
    for op, args in calls:
        with pytest.raises(ValueError, match="no algorithm 'x'"):
            getattr(group, op)(*args, algorithm="x")
    is_right(group)


@pytest.mark.mpi(5)
def test_an_algorithm_for_any_order_refuses_others(group):
    """What combines in any order is refused for an operator that is not commutative."""
    by, x = in_order(), np.zeros(5, "i8")
    calls = [("Allreduce", "bruck", (x, x.copy(), by))]
    calls += [("Reduce_scatter", "circulant", (x, x[:1].copy(), [1] * 5, by))]
    for name in ("chain", "circulant", "fastest_node_first"):
        calls.append(("Reduce", name, (x, x.copy(), by)))
    for op, name, args in calls:
        with pytest.raises(ValueError, match="not commutative"):
            getattr(group, op)(*args, algorithm=name)
    by.Free()
    is_right(group)


@pytest.mark.mpi(5)
@pytest.mark.parametrize("how", ["bruck(radix=3)", "rotated"])
def test_what_auto_takes_where_it_does_not_leave_it_to_the_library(
    group, monkeypatch, how
):
    """The ways that pay in large groups only, taken in a small one."""

    def chosen(record, sizes, machine, **options):
        if record.name != "alltoallv":
            return choice(record, sizes, machine, **options)
        return Choice(how if sizes["k"] else "bruck", "")

    monkeypatch.setattr(inside, "choice", chosen)
    p, r = group.size, group.rank
    counts = [[(3 * i + j) % 5 for j in range(p)] for i in range(p)]
    sent, got = counts[r], [counts[i][r] for i in range(p)]
    for form in FORMS:
        send, recv = np.full(sum(sent), float(r)), np.full(sum(got), -1.0)
        done(group, "Alltoallv", form, [send, sent], [recv, got])
        taken = group._last_algorithm()
        agree(group, same(recv, np.repeat(np.arange(p), got).astype("f8")), form)
        agree(group, how.startswith(taken), taken)


@pytest.mark.mpi(5)
def test_the_checked_mode_compares_every_operation(comm, monkeypatch):
    monkeypatch.setenv("ISTHMUS_CHECK", "1")
    group, r = isthmus.Intracomm(comm.Dup()), comm.rank
    p, n = group.size, 5 if r == 3 else 4
    x, all_ = np.zeros(n), np.zeros(4 * p)
    calls = [
        ("rank 3 sends 40 bytes", "Allreduce", (x, x.copy())),
        ("rank 3 sends 40 bytes", "Alltoall", (np.zeros(n * p), np.zeros(n * p))),
        ("rank 3 sends 40 bytes", "Gather", (x, all_, 1)),
        ("rank 3 expects 40", "Scatter", (all_, x, 1)),
        ("rank 3 sends 40 bytes", "Ireduce", (x, x.copy(), MPI.SUM, 1)),
        ("calls with root", "Gatherv", (x[:4], [all_, [4] * p], 2 if r == 3 else 1)),
        ("IN_PLACE", "Gather", (MPI.IN_PLACE, all_, 1)),
        ("calls with root", "Bcast", (x[:4], int(r == 3))),
        ("rank 3 expects 40", "Bcast", (x, 0)),
    ]
    for words, op, args in calls:
        with pytest.raises(isthmus.MismatchError, match=words):
            getattr(group, op)(*args)
    is_right(group, root=1)
    group.Free()


@pytest.mark.mpi(5)
@pytest.mark.parametrize("name", ["auto", "linear"])
def test_what_has_no_meaning_is_not_read(group, name):
    """The buffer that only the root has: others may pass anything."""
    p, r, root = group.size, group.rank, group.size - 1
    x, out = np.full(2, float(r)), np.zeros((p, 2))
    odd = out if r == root else np.zeros(3)
    group.Gather(x, odd, root, algorithm=name)
    agree(group, r != root or bool((out[:, 1] == range(p)).all()), name)
    mine = np.zeros(2)
    group.Scatter(odd, mine, root, algorithm=name)
    agree(group, bool((mine == r).all()), name)
    group.Reduce(x, x.copy() if r == root else np.zeros(5), MPI.SUM, root)
    agree(group, True)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [0, 3, 20_000])
def test_what_is_sent_and_received_in_one_array(group, form, n):
    """At one address, but not in one place."""
    p = group.size
    room = np.concatenate([values(group.rank, n), np.full(n * p, -1.0)])
    displs = [n * (i + 1) for i in range(p)]
    recv = [room, ([n] * p, displs), MPI.DOUBLE]
    done(group, "Allgatherv", form, [room, n, MPI.DOUBLE], recv)
    agree(group, same(room[n:], everyones(n, p)))


@pytest.mark.parametrize("name", NAMES)
def test_any_object(group, name):
    for turn in range(3):
        got = group.allgather(python_object(group.rank + turn), algorithm=name)
        wanted = [python_object(i + turn) for i in range(group.size)]
        agree(group, equal(got, wanted), f"{name}, turn {turn}")
    assert group.allgather(group.rank, algorithm="native") == list(range(group.size))
    with pytest.raises((TypeError, AttributeError, PicklingError)):
        group.allgather(lambda: None)
    agree(group, True)


def test_nobody_sees_our_messages(group):
    p = group.size
    for name in NAMES:
        box = np.zeros(1)
        pending = group.Irecv(box, MPI.ANY_SOURCE, MPI.ANY_TAG)
        send, recv = values(group.rank, 60), np.empty(60 * p)
        request = group.Iallgather(send, recv, algorithm=name)
        other = np.empty(60 * p)
        group.Allgather(send, other, algorithm=name)
        request.Wait()
        right = same(recv, everyones(60, p)) and same(other, recv)
        group.Send(np.array([8.0]), group.rank, 1)
        pending.Wait()
        agree(group, right and box[0] == 8, name)


def test_requests_may_be_waited_for_in_any_order(group):
    p, found = group.size, []
    for k, name in enumerate(NAMES):
        recv = np.empty((20 + k) * p)
        send = values(group.rank, 20 + k)
        found.append((group.Iallgather(send, recv, algorithm=name), recv, k))
    order = np.random.default_rng(group.rank).permutation(len(found))
    MPI.Request.Waitall([found[i][0] for i in order])
    agree(group, all(same(recv, everyones(20 + k, p)) for _, recv, k in found))


def test_threads_with_a_communicator_each(comm):
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        pytest.skip("MPI may be called from one thread only")
    made = [isthmus.Intracomm(comm.Dup()) for _ in range(2)]
    for group in made:
        group.Allgather(np.zeros(1), np.empty(comm.size))
    wrong = []

    def work(group, name):
        for k in range(1, 30):
            recv = np.empty(k * comm.size)
            group.Allgather(values(comm.rank, k), recv, algorithm=name)
            if not same(recv, everyones(k, comm.size)):
                wrong.append((name, k))

    names = "ring", "circulant"
    workers = [
        threading.Thread(target=work, args=x) for x in zip(made, names, strict=True)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    agree(comm, not wrong, str(wrong))
    for group in made:
        group.Free()


def test_every_choice_says_why(group, caplog):
    with caplog.at_level(logging.DEBUG, logger="isthmus"):
        group.Allgather(np.zeros(3), np.empty(3 * group.size))
    known = {entry.name for entry in registry.algorithms("allgatherv")}
    (text,) = [record.getMessage() for record in caplog.records]
    operation, _, rest = text.partition(": ")
    assert operation == "Allgather" and rest.partition(",")[0] in known


def test_environment(comm, monkeypatch):
    monkeypatch.setenv("ISTHMUS_INTRA_ALLGATHER", "nonsense")
    monkeypatch.setenv("ISTHMUS_INTRA_ALLGATHERV", "circulant(n=2)")
    own = comm.Dup()
    group, p = isthmus.Intracomm(own), comm.size
    with pytest.raises(ValueError, match="no algorithm 'nonsense'"):
        group.Allgather(np.zeros(3), np.empty(3 * p))
    recv = np.empty(30 * p)
    group.Allgatherv(values(comm.rank, 30), recv)
    agree(comm, same(recv, everyones(30, p)))
    own.Free()


def test_a_view_of_a_freed_communicator_raises(comm):
    group = isthmus.Intracomm(comm.Dup())
    group.Allgather(np.zeros(1), np.empty(comm.size))
    group.Free()
    with pytest.raises(MPI.Exception):
        group.Allgather(np.zeros(1), np.empty(comm.size))


def test_the_worlds_own_communicators(comm):
    for base in (MPI.COMM_WORLD, MPI.COMM_SELF):
        group = isthmus.Intracomm(base)
        recv = np.empty(5 * base.size)
        group.Allgather(values(base.rank, 5), recv, algorithm="blocked_ring")
        agree(comm, same(recv, everyones(5, base.size)))
