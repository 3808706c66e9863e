"""Wrong calls: a clear error before anything is sent, and the next call works."""

from __future__ import annotations

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from groups import FEW, expected, pairs, same, values
from support import agree

pytestmark = pytest.mark.mpi(*FEW)


def wrong_calls(n):
    """(error, part of its text, call) for a group whose other side has n ranks."""
    x, room = np.zeros(4), np.zeros(4 * n)
    frozen = np.zeros(4 * n)
    frozen.flags.writeable = False
    ints = np.zeros(4 * n, "i4")

    def gather(send, recv, **more):
        return lambda i, form: getattr(i, form[0])(send, recv, **more)

    def gatherv(send, recv, **more):
        return lambda i, form: getattr(i, form[1])(send, recv, **more)

    return [
        (ValueError, "IN_PLACE has no meaning", gather(MPI.IN_PLACE, room)),
        (ValueError, "IN_PLACE has no meaning", gatherv(MPI.IN_PLACE, room)),
        (ValueError, "IN_PLACE has no meaning", gather([MPI.IN_PLACE, 4], room)),
        (ValueError, "block 0 needs bytes 0 to 400", gather([x, 50, MPI.DOUBLE], room)),
        (ValueError, "needs bytes", gather(x, [room, 5, MPI.DOUBLE])),
        (ValueError, "needs bytes", gatherv(x, [room, [4] * (n - 1) + [5]])),
        (ValueError, "needs bytes", gatherv(x, [room, ([4] * n, [4 * n] * n)])),
        (ValueError, "needs bytes", gatherv(x, [room, ([4] * n, [-1] * n)])),
        (ValueError, f"expecting {n} counts, got", gatherv(x, [room, [4] * (n + 1)])),
        (
            ValueError,
            f"expecting {n} displs",
            gatherv(x, [room, ([4] * n, [0] * (n + 2))]),
        ),
        (ValueError, "negative count -1", gatherv(x, [room, [-1] * n])),
        (ValueError, "negative count -3", gather([x, -3, MPI.DOUBLE], room)),
        (ValueError, "displacement -1", gather([x, (2, -1), MPI.DOUBLE], room)),
        (ValueError, "expecting 2 to 4 items", gather([x], room)),
        (ValueError, "expecting 2 to 4 items", gather([x, 4, 0, MPI.DOUBLE, 7], room)),
        (ValueError, "buffer is None but count is 3", gather([None, 3, MPI.INT], room)),
        (ValueError, "datatype is null", gather([x, 4, MPI.DATATYPE_NULL], room)),
        (ValueError, "no algorithm 'fastest'", gather(x, room, algorithm="fastest")),
        (
            ValueError,
            "no algorithm 'nope'",
            gatherv(x, room, algorithm="segmented+nope"),
        ),
        (
            ValueError,
            "has no intragroup stage",
            gather(x, room, algorithm="direct+ring"),
        ),
        (ValueError, "overlap", gather(room[:4], room)),
        (ValueError, "overlap", gatherv(room[:4], room)),
        (BufferError, "read-only", gather(x, frozen)),
        # the first of numpy, the second of mpi4py 4.0
        ((BufferError, ValueError), "", gather(np.zeros(8)[::2], room)),
        (BufferError, "byte order", gather(np.zeros(4, ">f8"), room)),
        (KeyError, "cannot map", gather([x, "no such type"], room)),
        (TypeError, "expecting buffer or list/tuple", gather(None, room)),
        (TypeError, "expecting buffer or list/tuple", gatherv(x, None)),
        (TypeError, "", gather(7, room)),
        (TypeError, "", gather([x, 1.5, MPI.DOUBLE], room)),
        (TypeError, "explicit datatype", gather([MPI.BOTTOM, 1], room)),
        (ValueError, "cannot infer count", gather(x, [ints.view("u1")[:-1], MPI.INT])),
    ] + (
        [
            (ValueError, "blocks, one for each rank", gather(x, room[:-1])),
            (
                ValueError,
                "blocks 0 and 1 overlap",
                gatherv(x, [room, ([4] * n, [0] * n)]),
            ),
        ]
        if n > 1
        else []
    )


FORMS = [
    ("Allgather", "Allgatherv"),
    ("Iallgather", "Iallgatherv"),
    ("Allgather_init", "Allgatherv_init"),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f[0])
def test_wrong_calls_raise_and_leave_nothing_behind(comm, form):
    for groups in pairs(comm):
        inter, n = groups.ours, len(groups.there)
        for error, text, call in wrong_calls(n):
            with pytest.raises(error) as caught:
                call(inter, form)
            assert text in str(caught.value), (text, str(caught.value))
        send, recv = values(comm.rank, 3), np.empty(3 * n)
        inter.Allgather(send, recv, algorithm="segmented")
        agree(comm, same(recv, expected(groups, [3] * comm.size)))


def test_an_unknown_algorithm_of_a_barrier(comm):
    for groups in pairs(comm):
        for barrier in (groups.ours.Barrier, groups.ours.Ibarrier):
            with pytest.raises(ValueError, match="no algorithm 'fastest'"):
                barrier(algorithm="fastest")
        groups.ours.Barrier()


def test_a_block_for_the_rank_itself_has_one_size(comm):
    """No message tells: the block is copied, and its end would be cut."""
    inside, n = isthmus.Intracomm(comm.Dup()), comm.size
    counts = [4] * n
    other_counts = [5 if rank == comm.rank else 4 for rank in range(n)]
    short, long = np.zeros(4 * n), np.zeros(4 * n + 1)
    text = f"rank {comm.rank} sends {5 * 8} bytes to itself and receives {4 * 8}"
    for algorithm in (None, "bruck", "pairwise", "rotated", "node_aware"):
        named = {} if algorithm is None else {"algorithm": algorithm}
        for call in (inside.Alltoallv, inside.Ialltoallv):
            with pytest.raises(ValueError, match=text):
                call([long, other_counts], [short, counts], **named)
            with pytest.raises(ValueError, match="bytes to itself"):
                call([short, counts], [long, other_counts], **named)
    inside.Alltoallv([short, counts], [short.copy(), counts])
    inside.Free()


def test_the_library_stage_is_for_blocking_calls(comm):
    """Ranks would begin such stages of several calls under way in different orders."""
    for groups in pairs(comm):
        n = len(groups.there)
        x, room = values(comm.rank, 4), np.zeros(4 * n)
        for form in ("Iallgather", "Allgather_init"):
            with pytest.raises(ValueError, match="stage 'library' is for blocking"):
                getattr(groups.ours, form)(x, room, algorithm="balanced+library")
        groups.ours.Allgather(x, room, algorithm="balanced+library")
        agree(comm, same(room, expected(groups, [4] * comm.size)))
        received = groups.ours.allgather(comm.rank, algorithm="balanced+library")
        agree(comm, received == list(groups.there), str(received))


def test_an_intracommunicator_is_refused(comm):
    with pytest.raises(TypeError):
        isthmus.Intercomm(comm)
    assert isthmus.Intercomm() == MPI.COMM_NULL


def test_groups_that_differ_in_a_sum_hear_of_it_and_go_on(comm):
    def run(inter, form, *args):
        call = getattr(inter, form)(*args)
        if form.endswith("_init"):
            call.Start()
        if call is not None:
            call.Wait()

    for groups in pairs(comm):
        inter, p = groups.ours, groups.ours.size
        n = p * groups.ours.remote_size
        for form in ("Reduce_scatter", "Ireduce_scatter", "Reduce_scatter_init"):
            total = n * (1 + (comm.rank < groups.p))
            args = np.ones(total), np.empty(total // p), [total // p] * p
            with pytest.raises(isthmus.MismatchError, match=r"receives .* in all"):
                run(inter, form, *args)
            recv = np.empty(n // p)
            for _ in range(4):
                run(inter, form, np.ones(n), recv, [n // p] * p)
                agree(comm, (recv == inter.remote_size).all(), f"{form}: {recv}")
                recv[:] = 0


# -- the checked mode: the same error on every rank ----------------------------------


@pytest.fixture
def checked(monkeypatch):
    monkeypatch.setenv("ISTHMUS_CHECK", "1")


def everywhere(comm, error, call):
    """The text of the error that a call raises on every rank alike."""
    try:
        call()
        text = ""
    except error as caught:
        text = str(caught)
    texts = comm.allgather(text)
    assert len(set(texts)) == 1, texts
    return texts[0]


def test_a_count_that_differs_between_the_sides(comm, checked):
    for groups in pairs(comm):
        inter, n = groups.ours, len(groups.there)
        send = np.zeros(5 if comm.rank == comm.size - 1 else 4)
        recv = np.zeros(4 * n)
        text = everywhere(
            comm, isthmus.MismatchError, lambda: inter.Allgather(send, recv)
        )
        q = comm.size - groups.p
        assert f"group B rank {q - 1} sends 40 bytes, group A rank 0 expects 32" in text


def test_another_algorithm_another_operation(comm, checked):
    for groups in pairs(comm):
        inter, n = groups.ours, len(groups.there)
        x, room = np.zeros(4), np.zeros(4 * n)
        name = "direct" if comm.rank == 0 else "segmented"
        text = everywhere(
            comm,
            isthmus.MismatchError,
            lambda: inter.Allgather(x, room, algorithm=name),
        )
        assert "algorithm 'segmented', group A rank 0 'direct'" in text
        form = "Allgather" if comm.rank == 0 else "Iallgatherv"
        text = everywhere(
            comm, isthmus.MismatchError, lambda: getattr(inter, form)(x, room)
        )
        assert "operation 'Iallgatherv', group A rank 0 'Allgather'" in text


def test_a_wrong_call_of_one_rank_is_told_to_all(comm, checked):
    for groups in pairs(comm):
        inter, n = groups.ours, len(groups.there)
        send = MPI.IN_PLACE if comm.rank == 0 else np.zeros(4)
        text = everywhere(
            comm, ValueError, lambda: inter.Allgather(send, np.zeros(4 * n))
        )
        assert "group A rank 0: ValueError: MPI.IN_PLACE has no meaning" in text
        wrong = "nope" if comm.rank == 0 else None
        text = everywhere(comm, ValueError, lambda: inter.allgather(1, algorithm=wrong))
        assert "no algorithm 'nope'" in text


class Failing:
    """An argument that raises something when it is read."""

    def __init__(self, error):
        self.error = error

    def __dlpack_device__(self):
        raise self.error


def _wrong_calls(inter):
    """Calls whose arguments cannot be read, for all kinds of reasons."""
    q = inter.remote_size
    good, room = np.zeros(q), np.zeros(q * q)
    for error in (RuntimeError("x"), OSError("x"), MemoryError("x"), Exception("x")):
        bad = Failing(error)
        yield lambda bad=bad: inter.Allgather(bad, room, algorithm="direct")
        yield lambda bad=bad: inter.Allreduce(bad, good)
        yield lambda bad=bad: inter.Alltoall(bad, room, algorithm="native")
        yield lambda bad=bad: inter.Ialltoall([bad, 1, "d"], room)
        yield lambda bad=bad: inter.Allreduce_init(bad, good)
    unpicklable = lambda: 0  # noqa: E731
    yield lambda: inter.Allgather(np.zeros((4, 4))[:, 0], room)
    yield lambda: inter.Allgatherv(good, [room, [[]] * q])
    yield lambda: inter.Allgather([], room)
    yield lambda: inter.allgather(unpicklable)
    yield lambda: inter.alltoall([unpicklable] * q)
    yield lambda: inter.alltoall([])


def _right_calls(inter):
    """The same calls as they should be."""
    q = inter.remote_size
    good, room = np.zeros(q), np.zeros(q * q)
    for _ in range(4):
        yield lambda: inter.Allgather(good, room, algorithm="direct")
        yield lambda: inter.Allreduce(good, good.copy())
        yield lambda: inter.Alltoall(good, good.copy(), algorithm="native")
        yield lambda: inter.Ialltoall(good, good.copy())
        yield lambda: inter.Allreduce_init(good, good.copy())
    yield lambda: inter.Allgather(good, room)
    yield lambda: inter.Allgatherv(good, [room, [q] * q])
    yield lambda: inter.Allgather(good, room)
    yield lambda: inter.allgather(1)
    yield lambda: inter.alltoall([1] * q)
    yield lambda: inter.alltoall([1] * q)


def test_whatever_one_rank_raises_is_told_to_all(comm, checked):
    for groups in pairs(comm):
        calls = _wrong_calls if comm.rank == comm.size - 1 else _right_calls
        for k, call in enumerate(calls(groups.ours)):
            text = everywhere(comm, isthmus.MismatchError, call)
            assert f"group B rank {comm.size - groups.p - 1}: " in text, (k, text)
        agree(comm, groups.ours.allgather(comm.rank) == list(groups.there))


def test_an_interrupt_while_arguments_are_read_is_told_to_all(comm, checked):
    for groups in pairs(comm):
        send = Failing(KeyboardInterrupt()) if comm.rank == 0 else np.zeros(4)
        kind = isthmus.MismatchError if comm.rank else KeyboardInterrupt
        with pytest.raises(kind):
            groups.ours.Allgather(send, np.zeros(4 * len(groups.there)))
        agree(comm, True)


def test_right_calls_pass_the_check(comm, checked):
    for groups in pairs(comm):
        inter = groups.ours
        counts = [i % 3 for i in range(comm.size)]
        rc = [counts[i] for i in groups.there]
        send, recv = values(comm.rank, counts[comm.rank]), np.empty(sum(rc))
        inter.Allgatherv(send, [recv, rc])
        agree(comm, same(recv, expected(groups, counts)))
        inter.Iallgatherv(send, [recv, rc]).Wait()
        assert inter.allgather(comm.rank) == list(groups.there)
