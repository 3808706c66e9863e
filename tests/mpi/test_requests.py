"""What the nonblocking and persistent forms return is right wherever it is put."""

from __future__ import annotations

import time

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from groups import ALGORITHMS, FEW, SHAPES, expected, pair, pairs, same, values
from isthmus.mpi.requests import request as requests
from isthmus.mpi.requests.progress import progress
from sampling import some
from support import agree

pytestmark = pytest.mark.mpi(*FEW)

KINDS = ["auto", "direct", "segmented", "balanced", "merged"]


def started(groups, name, k=500):
    """A nonblocking call, its buffer and what must be in it in the end."""
    rank, n = groups.world.rank, len(groups.there)
    recv = np.full(k * n, -1.0)
    request = groups.ours.Iallgather(values(rank, k), recv, algorithm=name)
    return request, recv, expected(groups, [k] * groups.world.size)


@pytest.mark.parametrize("name", KINDS)
def test_with_native_requests_in_every_completion_call(comm, name):
    ways = (
        lambda rs: MPI.Request.Waitall(rs),
        lambda rs: [MPI.Request.Waitany(rs) for _ in rs],
        lambda rs: until(lambda: MPI.Request.Testall(rs)),
        lambda rs: until(lambda: MPI.Request.Testany(rs) == (MPI.UNDEFINED, True)),
        lambda rs: so_many(rs, MPI.Request.Waitsome),
        lambda rs: so_many(rs, MPI.Request.Testsome),
        lambda rs: [r.Wait() for r in rs],
        lambda rs: [until(r.Test) for r in rs],
        lambda rs: [r.wait() for r in rs],
        lambda rs: [until(lambda r=r: r.test()[0]) for r in rs],
        lambda rs: MPI.Request.waitall(rs),
    )
    for shape, groups in enumerate(pairs(comm, turn=KINDS.index(name))):
        for finish in some(ways, 2, shape + KINDS.index(name)):
            request, recv, wanted = started(groups, name)
            token = np.zeros(1)
            other = [
                comm.Irecv(token, comm.rank, 3),
                comm.Isend(np.ones(1), comm.rank, 3),
            ]
            requests = [other[0], request, other[1], groups.native.Ibarrier()]
            finish(requests)
            agree(comm, same(recv, wanted) and token[0] == 1)
            assert all(r == MPI.REQUEST_NULL for r in requests)


def test_a_wait_says_that_the_call_is_complete(comm):
    """As mpi4py's own does."""
    for groups in pairs(comm):
        request, recv, wanted = started(groups, "auto")
        assert request.Wait() is True
        agree(comm, same(recv, wanted))
        n = len(groups.there)
        persistent = groups.ours.Allgather_init(values(comm.rank, 500), recv)
        for _ in range(2):
            recv[:] = -1
            persistent.Start()
            assert persistent.Wait() is True
            agree(comm, same(recv, wanted), f"{n} ranks")
        persistent.Free()


@pytest.mark.parametrize("name", ["direct", "balanced"])
def test_a_thread_that_sleeps_is_woken_by_a_call(comm, name):
    """Nothing is under way for a while; then MPI's own functions complete a call."""
    for groups in pairs(comm):
        deadline = time.monotonic() + 20
        while not progress._sleeps and time.monotonic() < deadline:
            time.sleep(0.01)
        agree(comm, progress._sleeps, "the thread does not sleep")
        request, recv, wanted = started(groups, name, 70_000)
        deadline = time.monotonic() + 20
        while not MPI.Request.Testall([request]) and time.monotonic() < deadline:
            time.sleep(0.001)
        agree(comm, same(recv, wanted), "the call did not go on")


def until(done):
    while not done():
        pass


def so_many(requests, call):
    left = len(requests)
    while left:
        indices = call(requests)
        left -= len(indices or [])


@pytest.mark.parametrize("name", KINDS)
def test_several_under_way_completed_backwards(comm, name):
    for groups in pairs(comm, turn=KINDS.index(name)):
        under_way = [started(groups, name, k) for k in (300, 1, 7000, 0)]
        for request, recv, wanted in reversed(under_way):
            request.Wait()
            agree(comm, same(recv, wanted))


def test_different_algorithms_under_way_with_blocking_calls_between(comm):
    for groups in pairs(comm):
        under_way = []
        for name in ALGORITHMS:
            under_way.append(started(groups, name))
            recv = np.empty(9 * len(groups.there))
            groups.ours.Allgather(values(comm.rank, 9), recv, algorithm=name)
            agree(comm, same(recv, expected(groups, [9] * comm.size)), name)
        MPI.Request.Waitall([request for request, _, _ in under_way])
        ok = all(same(recv, wanted) for _, recv, wanted in under_way)
        agree(comm, ok)


@pytest.mark.parametrize("name", KINDS)
def test_it_goes_on_while_others_wait_in_a_native_call(comm, name):
    """Half the ranks complete the call before a barrier, the others after it."""
    for groups in pairs(comm, turn=KINDS.index(name)):
        request, recv, wanted = started(groups, name, 40_000)
        if comm.rank % 2:
            request.Wait()
        comm.Barrier()
        request.Wait()
        agree(comm, same(recv, wanted))


@pytest.mark.parametrize("name", KINDS)
def test_persistent_in_every_way_to_start_and_complete(comm, name):
    for groups in pairs(comm, turn=KINDS.index(name)):
        k, n = 600, len(groups.there)
        send, recv = np.empty(k), np.empty(k * n)
        request = groups.ours.Allgather_init(send, recv, algorithm=name)
        native = comm.Send_init(np.ones(1), comm.rank, 5)
        for turn, (start, finish) in enumerate(
            [
                (lambda rs: [r.Start() for r in rs], lambda rs: [r.Wait() for r in rs]),
                (MPI.Prequest.Startall, MPI.Request.Waitall),
                (MPI.Prequest.Startall, lambda rs: [until(r.Test) for r in rs]),
                (lambda rs: [r.Start() for r in rs], MPI.Request.Waitall),
                (MPI.Prequest.Startall, lambda rs: [r.Wait() for r in rs]),
            ]
            * 2
        ):
            send[:] = values(comm.rank + turn, k)
            recv[:] = -1
            start([request, native])
            token = np.zeros(1)
            comm.Recv(token, comm.rank, 5)
            finish([request, native])
            wanted = np.concatenate([values(i + turn, k) for i in groups.there])
            agree(comm, same(recv, wanted), f"turn {turn}")
        native.Free()
        request.Free()
        assert request == MPI.REQUEST_NULL


def test_a_start_without_memory_is_an_error_everywhere(comm):
    """Found by reading: where MPI alone had started it, the others waited for ever."""
    groups = pair(comm, 1)
    request = groups.ours.Allgather_init(np.ones(8), np.empty(8 * len(groups.there)))
    if comm.rank == 0:

        def no_memory():
            raise MemoryError

        request._make_operation = no_memory
    MPI.Prequest.Startall([request])
    with pytest.raises(MemoryError if comm.rank == 0 else isthmus.Interrupted):
        request.Wait()
    request.Free()
    groups.free()
    agree(comm, True)


def test_buffers_live_as_long_as_their_request(comm):
    for groups in pairs(comm):
        for name in KINDS:
            n = len(groups.there)
            recv = np.empty(4000 * n)
            request = groups.ours.Iallgather(
                values(comm.rank, 4000), recv, algorithm=name
            )
            junk = [np.full(4000, -5.0) for _ in range(20)]
            request.Wait()
            agree(comm, same(recv, expected(groups, [4000] * comm.size)))
            init = groups.ours.Allgather_init(
                values(comm.rank, 4000), recv, algorithm=name
            )
            junk = [np.full(4000, -6.0) for _ in range(20)]
            init.Start()
            init.Wait()
            init.Free()
            agree(comm, same(recv, expected(groups, [4000] * comm.size)))
            del junk


def test_a_persistent_request_that_is_not_started_is_complete(comm):
    """As MPI says of inactive requests: before the first start and after each call."""
    groups = pair(comm, 1)
    recv = np.empty(3 * len(groups.there))
    request = groups.ours.Allgather_init(values(comm.rank, 3), recv)
    before = request.Test()
    request.Wait()
    request.Start()
    while not request.Test():
        time.sleep(0)
    after = request.Test()
    agree(comm, before and after and same(recv, expected(groups, [3] * comm.size)))
    request.Free()
    groups.free()


def test_a_persistent_request_may_be_dropped(comm):
    """Nobody goes on watching it."""
    for groups in pairs(comm):
        recv = np.empty(4 * len(groups.there))
        request = groups.ours.Allgather_init(
            values(comm.rank, 4), recv, algorithm="segmented"
        )
        request.Start()
        request.Wait()
        serial = request._serial
        assert progress._watched[serial] is request
        del request
        until(lambda serial=serial: serial not in progress._watched)


def test_a_started_persistent_request_that_is_dropped_goes_on(comm):
    """MPI lets a user free a request under way: the others still get their data."""
    for groups in pairs(comm):
        recv = np.zeros(20_000 * len(groups.there))
        request = groups.ours.Allgather_init(
            values(comm.rank, 20_000), recv, algorithm="segmented"
        )
        if comm.rank == 0:
            request.Start()
            del request
        comm.Barrier()
        if comm.rank > 0:
            request.Start()
            request.Wait()
        until(lambda: same(recv, expected(groups, [20_000] * comm.size)))


@pytest.mark.parametrize("name", KINDS)
def test_the_communicator_may_be_freed_while_a_call_is_under_way(comm, name):
    groups = pair(comm, SHAPES[comm.size][-1][0])
    request, recv, wanted = started(groups, name, 20_000)
    groups.free()
    request.Wait()
    agree(comm, same(recv, wanted))


def fail_next(context, monkeypatch):
    """Let the next receive of a communicator fail."""
    post = context.channel.irecv

    def fails(*_):
        context.channel.irecv = post
        raise OSError("the wire broke")

    monkeypatch.setattr(context.channel, "irecv", fails)


@pytest.mark.parametrize("way", ["Wait", "Test", "Waitall", "Waitany", "Testall"])
def test_a_failure_inside_a_call_is_raised_where_it_is_waited_for(
    comm, monkeypatch, way
):
    """Also in MPI's own functions, which say that the request has failed."""
    groups = pair(comm, SHAPES[comm.size][0][0])
    inter, n = groups.ours, len(groups.there)
    fail_next(inter._context(), monkeypatch)
    recv = np.empty(2 * n)
    request = inter.Iallgather(values(comm.rank, 2), recv, algorithm="segmented")
    if way in ("Wait", "Test"):
        with pytest.raises(OSError, match="the wire broke"):
            until(getattr(request, way))
        assert request == MPI.REQUEST_NULL
    else:
        token = comm.Irecv(np.zeros(1), comm.rank, 3)
        comm.Send(np.ones(1), comm.rank, 3)
        with pytest.raises(MPI.Exception):
            until(lambda: getattr(MPI.Request, way)([request, token]))
        with pytest.raises(OSError, match="the wire broke"):
            request.Wait()
        if token != MPI.REQUEST_NULL:
            token.Wait()
    with pytest.raises(RuntimeError, match="interrupted by OSError"):
        inter.Iallgather(values(comm.rank, 2), np.empty(2 * n))
    groups.free()


def test_a_status_says_that_a_call_has_failed(comm, monkeypatch):
    groups = pair(comm, SHAPES[comm.size][0][0])
    inter, n = groups.ours, len(groups.there)
    fail_next(inter._context(), monkeypatch)
    send, recv = values(comm.rank, 2), np.empty(2 * n)
    requests_ = [inter.Iallgather(send, recv, algorithm="segmented")]
    token = np.zeros(1)
    requests_.append(comm.Irecv(token, comm.rank, 3))
    comm.Send(np.ones(1), comm.rank, 3)
    statuses = [MPI.Status(), MPI.Status()]
    with pytest.raises(MPI.Exception):
        MPI.Request.Waitall(requests_, statuses)
    classes = [MPI.Get_error_class(x.Get_error()) for x in statuses]
    failed = classes[0] == MPI.ERR_OTHER
    right = classes[1] in (MPI.SUCCESS, MPI.ERR_PENDING)
    agree(comm, failed and right, f"{classes}")
    groups.free()


def test_a_collective_cannot_be_cancelled(comm):
    """As natively; and it can be waited for."""
    for groups in pairs(comm):
        request, recv, wanted = started(groups, "segmented")
        with pytest.raises(MPI.Exception):
            request.Cancel()
        request.Wait()
        agree(comm, same(recv, wanted))


class OneThread:
    """MPI as if only one thread might call it."""

    @staticmethod
    def apply(monkeypatch):
        monkeypatch.setattr(requests.Request, "_test", None, raising=False)
        monkeypatch.setattr(type(progress), "runs", property(lambda _: False))


@pytest.mark.parametrize("name", KINDS)
def test_without_threads_calls_go_forward_where_they_are_waited_for(
    comm, monkeypatch, name
):
    """In any order, different ones on different ranks; MPI's own functions say that
    they cannot do it, in place of waiting for ever."""
    OneThread.apply(monkeypatch)
    for groups in pairs(comm, turn=KINDS.index(name)):
        for order in (1, -1 if comm.rank % 2 else 1):
            under_way = [started(groups, name, k) for k in (300, 1, 7000)]
            for request, recv, wanted in under_way[::order]:
                request.Wait()
                assert same(recv, wanted)
            agree(comm, True)
        request, recv, wanted = started(groups, name, 40_000)
        is_told = False
        try:
            MPI.Request.Waitall([request])
        except MPI.Exception:
            is_told = True
        # the thread of an earlier test may have ended the call
        agree(comm, is_told or request._operation.done)
        request.Wait()
        agree(comm, same(recv, wanted))
