"""What was once wrong, each by the calls that showed it."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
import standin
from groups import pair
from isthmus.mpi.arguments import call as calls
from isthmus.mpi.buffers.devices import staged
from isthmus.mpi.context import intra
from isthmus.mpi.costs.probe import probe
from isthmus.mpi.plan.cache import MOST_SCRATCH_BYTES
from isthmus.mpi.waiting import bounded as bounding
from isthmus.mpi.waiting.waiting import TimeLimit
from support import agree

pytestmark = pytest.mark.mpi(3)


@pytest.fixture
def groups(comm):
    made = pair(comm, 1)
    yield made
    made.free()


def test_a_call_that_one_rank_refuses_does_not_count(comm, groups):
    """Nothing was sent: the calls after it are in step on all ranks."""
    n = len(groups.there)
    x, y = np.ones(3), np.zeros(3 * n)
    for k in range(60):
        if k % 3 == 0 and comm.rank == 0:
            with pytest.raises((BufferError, ValueError, TypeError)):
                groups.ours.Allgather(np.zeros((3, 2))[:, 0], y)
        y[:] = 0
        groups.ours.Allgather(x, y)
        assert (y == 1).all(), k
    agree(comm, True)


def test_a_call_that_is_refused_behind_its_plan_does_not_count(comm, groups):
    """Found by reading: whether a buffer may be written is no value that a plan is
    found by, and calls until a trial were counted as soon as there was a plan."""
    n = len(groups.there)
    x, y, fixed = np.ones(3), np.zeros(3 * n), np.zeros(3 * n)
    fixed.flags.writeable = False
    for k in range(60):
        if k % 3 == 2 and comm.rank == 0:
            for form in FORMS:
                with pytest.raises(BufferError, match="read-only"):
                    FORMS[form](groups.ours, "Allgather", x, fixed)
        y[:] = 0
        FORMS["_init" if k % 5 == 0 else ""](groups.ours, "Allgather", x, y)
        assert (y == 1).all(), k
    agree(comm, True)


def test_counts_that_are_left_out_are_accepted_always(comm, groups):
    """As many as the buffer holds, at the first call and at the hundredth."""
    size, n = groups.ours.size, len(groups.there)
    send, recv = np.ones(size * n, "i4"), np.zeros(n, "i4")
    for _ in range(100):
        recv[:] = 0
        groups.ours.Reduce_scatter(send, recv, None, MPI.SUM)
        assert (recv == n).all()
    agree(comm, True)


FORMS = {
    "": lambda comm, op, *args: getattr(comm, op)(*args),
    "I": lambda comm, op, *args: getattr(comm, f"I{op.lower()}")(*args).Wait(),
    "_init": lambda comm, op, *args: _once(getattr(comm, f"{op}_init")(*args)),
}


def _once(request):
    """Start a persistent call once, to the end."""
    request.Start()
    request.Wait()
    request.Free()


@pytest.mark.parametrize("form", FORMS)
def test_counts_in_an_array_are_known_by_its_numbers(comm, form):
    """Found by reading: of arrays of one size, the numbers of the first were taken."""
    ours = isthmus.Intracomm(comm.Dup())
    for counts in ([1, 1, 2], [1, 2, 1], [2, 1, 1], [1, 1, 2]):
        recv, first = np.zeros(counts[comm.rank]), sum(counts[: comm.rank])
        FORMS[form](ours, "Reduce_scatter", np.arange(4.0), recv, np.array(counts))
        assert (recv == 3 * np.arange(first, first + len(recv))).all(), counts
    agree(comm, True)
    ours.Free()


@pytest.mark.parametrize("integer", [np.int32, np.int64, np.array])
@pytest.mark.parametrize("form", FORMS)
def test_a_root_may_be_any_integer(comm, form, integer):
    """Found by reading: an integer of numpy was taken for a second buffer."""
    ours = isthmus.Intracomm(comm.Dup())
    for root in (0, 1, 2, 0):
        data = np.full(3, float(comm.rank))
        FORMS[form](ours, "Bcast", data, integer(root))
        assert (data == root).all()
        blocks = np.full(3, -1.0)
        FORMS[form](ours, "Gather", np.full(1, comm.rank + 5.0), blocks, integer(root))
        assert (blocks == ([5, 6, 7] if comm.rank == root else [-1] * 3)).all()
    agree(comm, True)
    ours.Free()


def test_bytes_in_a_list_are_read_where_they_lie(comm, groups):
    """Each time others, of which the earlier ones are gone."""
    n, there, size = len(groups.there), groups.there, 3000
    wanted = np.repeat(np.array([65 + i for i in there], "u1"), size)
    wrong, others = 0, []
    for k in range(40):
        mine, recv = bytes([65 + comm.rank]) * size, np.zeros(n * size, "u1")
        groups.ours.Allgather([mine, "B"], [recv, "B"])
        wrong += not np.array_equal(recv, wanted)
        del mine
        others.append(bytes([k]) * size)
    agree(comm, not wrong, f"{wrong} of 40 calls")


def test_arrays_on_a_device_are_copied_however_they_are_said(comm, groups, monkeypatch):
    monkeypatch.setitem(staged.KINDS, standin.KIND, standin.StandIn)
    staged.device_of.cache_clear()
    n = len(groups.there)
    for say in (
        lambda x: x,
        lambda x: [x, MPI.DOUBLE],
        lambda x: [x, "d"],
        lambda x: (x, MPI.DOUBLE),
    ):
        mine = standin.on_device(np.full(40, comm.rank + 1.0))
        theirs = standin.on_device(np.zeros(40 * n))
        groups.ours.Allgather(say(mine), say(theirs))
        wanted = np.repeat(np.array(groups.there) + 1.0, 40)
        agree(comm, np.array_equal(theirs.get(), wanted))
    staged.device_of.cache_clear()


def test_no_rank_is_a_call_behind_after_a_memory_error(comm, monkeypatch):
    """Between what was asked and the first message: the communicator is refused, at
    once on this rank, and the others hear of it."""
    groups = pair(comm, 1)
    groups.ours.timeout = 4.0
    n = len(groups.there)

    def gather(k):
        recv = np.zeros(k * n)
        groups.ours.Allgatherv(np.ones(k), [recv, [k] * n], algorithm="balanced")

    gather(3)

    def broken(*_, **__):
        raise MemoryError("no scratch")

    if comm.rank == 2:
        with monkeypatch.context() as patch:
            patch.setattr(calls, "plan_of", broken)
            with pytest.raises(MemoryError):
                gather(5)
    else:
        with pytest.raises(RuntimeError):
            gather(5)
            gather(5)
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match="free the communicator"):
        gather(5)
    agree(comm, time.monotonic() - begin < 1)
    groups.free()


@pytest.mark.parametrize(
    "forms", [("Barrier", "Ibarrier"), ("Ibarrier", "Barrier_init")]
)
def test_checked_mode_tells_forms_of_a_barrier_apart(comm, monkeypatch, forms):
    monkeypatch.setenv("ISTHMUS_CHECK", "1")
    groups = pair(comm, 1)
    groups.ours.timeout = 20.0
    with pytest.raises(isthmus.MismatchError, match="calls operation"):
        getattr(groups.ours, forms[comm.rank == 0])()
    groups.ours.Barrier()
    groups.free()


def test_scratch_that_is_kept_is_bounded(comm, groups):
    arrays = [np.ones(200_000 + k) for k in range(17)]
    for x in arrays:
        groups.ours.Allreduce(x, np.empty_like(x), algorithm="bruck")
    kept = groups.ours._context().scratch.nbytes
    agree(comm, kept <= MOST_SCRATCH_BYTES, f"{kept >> 20} MiB")


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="there is no /dev/shm")
def test_persistent_calls_take_the_memory_they_need_and_give_it_back(comm, groups):
    def held():
        with open("/proc/self/maps") as maps:
            return sum("/isthmus-" in line for line in maps)

    x, y = np.ones(100), np.zeros(100)
    groups.ours.Allreduce(x, y)
    before = held()
    requests = [
        groups.ours.Allreduce_init(x, y, algorithm="node_aware") for _ in range(10)
    ]
    channels = [request.channel for request in requests]
    most = max((c.segment.half_bytes for c in channels), default=0)
    for request in requests:
        request.Free()
    agree(comm, most <= 1 << 16 and held() == before, f"{most} {held()} {before}")
    request = groups.ours.Allreduce_init(x, y, algorithm="node_aware")
    for _ in range(3):
        request.Start()
        request.Wait()
    request.Free()
    agree(comm, held() == before, f"after a start: {held()} {before}")


def test_a_tuple_is_known_again_as_an_array_is(comm, groups):
    n = len(groups.there)
    plans = groups.ours._context().plans
    for say in (
        lambda x: (x, MPI.DOUBLE),
        lambda x: [x, 4, MPI.DOUBLE],
        lambda x: (x, "d"),
    ):
        groups.ours.Allgather(say(np.ones(4)), say(np.zeros(4 * n)))
        kept = len(plans)
        for _ in range(20):
            groups.ours.Allgather(say(np.ones(4)), say(np.zeros(4 * n)))
        agree(comm, len(plans) == kept, f"{len(plans)} plans, {kept} before")


class _Switching(list):
    """A list that lets another thread make a call when a helper is given back."""

    armed = True

    def append(self, helper):
        super().append(helper)
        if self.armed:
            self.armed = False
            limit = TimeLimit(5.0)
            run = threading.Thread(target=lambda: bounding.bounded(lambda: "B", limit))
            run.start()
            run.join()


def test_two_threads_in_calls_with_a_limit_get_their_own_results(comm, monkeypatch):
    monkeypatch.setattr(bounding, "_idle_workers", _Switching())
    agree(comm, bounding.bounded(lambda: "A", TimeLimit(5.0)) == "A")


class _Slow(threading.Semaphore):
    """A semaphore whose release takes so long that others go on meanwhile."""

    def release(self, n: int = 1) -> None:
        super().release(n)
        time.sleep(0.05)


@pytest.mark.mpi(1)
def test_a_call_without_a_limit_takes_over_the_worker_of_one_that_just_ended(comm):
    bounding.bounded(lambda: "A", TimeLimit(5.0))
    worker = bounding._idle_workers[-1]
    worker._is_over = _Slow(0)
    agree(comm, bounding.bounded(lambda: "B", TimeLimit(5.0)) == "B")
    agree(comm, bounding.bounded(lambda: "C", TimeLimit(None)) == "C")


@pytest.mark.parametrize("algorithm", ["node_aware", "direct", "segmented"])
def test_a_rank_that_sends_more_than_others_expect_is_named(comm, algorithm):
    """In the memory of a node, and by messages; then all are refused."""
    groups = pair(comm, 1)
    groups.ours.timeout = 10.0
    n = len(groups.there)
    mine = np.ones(5 if comm.rank == 2 else 4)
    with pytest.raises((RuntimeError, isthmus.MismatchError)) as caught:
        groups.ours.Allgather(mine, np.empty(4 * n), algorithm=algorithm)
        groups.ours.Allgather(mine, np.empty(4 * n), algorithm=algorithm)
    said = comm.allgather((type(caught.value).__name__, str(caught.value)))
    found = [text for name, text in said if name == "MismatchError"]
    assert found, said
    assert any("group B rank 1" in text for text in found), said
    groups.free()


@pytest.mark.parametrize("operation", ["Ireduce_scatter", "Igatherv", "Ialltoallv"])
def test_a_nonblocking_call_that_asks_measures_before_it_returns(
    comm, operation, monkeypatch
):
    """In its middle, when the answer has arrived, ranks come to it at any time: between
    different calls, so that their collectives on the private communicator mix."""
    measured = []

    def probe_counted(*arguments):
        measured.append(time.monotonic())
        return probe(*arguments)

    monkeypatch.setattr(intra, "probe", probe_counted)
    ours = isthmus.Intracomm(comm.Dup())
    n, small = comm.size, np.ones(1)
    table = [np.ones(n), [1] * n]
    calls_of = {
        "Ireduce_scatter": (np.ones(n), small, None, MPI.SUM),
        "Igatherv": (small, table if comm.rank == 0 else None, 0),
        "Ialltoallv": (table, [np.zeros(n), [1] * n]),
    }
    algorithm = "circulant" if operation == "Ireduce_scatter" else "node_aware"
    request = getattr(ours, operation)(*calls_of[operation], algorithm=algorithm)
    returned = time.monotonic()
    request.Wait()
    agree(comm, len(measured) == 1 and measured[0] < returned, str(measured))
    ours.Free()


@pytest.mark.mpi(5)
@pytest.mark.parametrize("operation", ["Igather", "Iscatter"])
def test_calls_of_roots_without_remote_ranks_on_their_node_do_not_mix(
    comm, operation, monkeypatch
):
    """The roots are 0 and 1, on a node of their own, and have four calls each under
    way. The leaves begin when all of these are posted."""
    monkeypatch.setenv("ISTHMUS_PER_NODE", "2")
    groups = pair(comm, 2)
    ours, is_root, n = groups.ours, comm.rank < 2, 4000
    calls_of_roots = [(k, root) for k in range(4) for root in (0, 1)]

    def values(k, root, leaf):
        return np.full(n, 100 * k + 10 * root + leaf)

    def start(k, root):
        if is_root and root != comm.rank:
            return getattr(ours, operation)(None, None, MPI.PROC_NULL), None, None
        gathers, leaf = operation == "Igather", comm.rank - 2
        whole = np.concatenate([values(k, root, i) for i in range(3)])
        if is_root:
            here = np.zeros_like(whole) if gathers else whole
            ends = (None, here) if gathers else (here, None)
            wanted = whole if gathers else None
        else:
            here = values(k, root, leaf) if gathers else np.zeros(n, int)
            ends = (here, None) if gathers else (None, here)
            wanted = None if gathers else values(k, root, leaf)
        where = MPI.ROOT if is_root else root
        return getattr(ours, operation)(*ends, where), here, wanted

    ours.Barrier()
    started = [start(*x) for x in calls_of_roots] if is_root else []
    comm.Barrier()
    started = started or [start(*x) for x in calls_of_roots]
    for request, _, _ in reversed(started):
        request.Wait()
    wrong = [
        calls_of_roots[i]
        for i, (_, here, wanted) in enumerate(started)
        if wanted is not None and not (here == wanted).all()
    ]
    agree(comm, not wrong, str(wrong))
    groups.free()
