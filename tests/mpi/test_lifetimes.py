"""What a communicator, a request or an array needs lives as long as it does."""

from __future__ import annotations

import gc
import signal
import time
import weakref
from collections import deque
from functools import partial
from itertools import count

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from groups import expected, pair, same, values
from isthmus.mpi.context import inter as context_inter, intra as context_intra
from isthmus.mpi.requests.persistent import tags
from isthmus.mpi.requests.progress import progress
from support import agree, largest_handle

pytestmark = pytest.mark.mpi(3)


@pytest.fixture
def groups(comm):
    made = pair(comm, 2)
    yield made
    made.ours.Free()
    made.local.Free()


class Counted(MPI.Intracomm):
    """A private communicator; they count how many of them there are."""

    alive = 0

    def __new__(cls, comm):
        cls.alive += 1
        return super().__new__(cls, comm)

    def Free(self):
        Counted.alive -= 1
        super().Free()


@pytest.mark.parametrize("checked", ["0", "1"])
def test_a_tuning_file_that_cannot_be_read(comm, monkeypatch, tmp_path, checked):
    """All ranks hear of it, the private communicators are given back, and with a file
    that is right the communicator works."""
    (tmp_path / "words").write_text("no table", encoding="utf-8")
    monkeypatch.setenv("ISTHMUS_CHECK", checked)
    for module in (context_inter, context_intra):
        monkeypatch.setattr(module, "NativeIntracomm", Counted)
    groups = pair(comm, 2)
    for ours in (groups.ours, isthmus.Intracomm(comm.Dup())):
        n = getattr(ours, "remote_size", 0) or comm.size
        for wrong in ("missing", ".", "words"):
            monkeypatch.setenv("ISTHMUS_TUNING", str(tmp_path / wrong))
            before = Counted.alive
            with pytest.raises(ValueError):
                ours.Allgather(np.array([comm.rank]), np.zeros(n, int))
            agree(comm, Counted.alive == before, f"{Counted.alive - before} are left")
        monkeypatch.setenv("ISTHMUS_TUNING", "none")
        recv = np.full(n, -1)
        ours.Allgather(np.array([comm.rank]), recv)
        inside = isinstance(ours, MPI.Intracomm)
        wanted = range(comm.size) if inside else groups.there
        agree(comm, recv.tolist() == list(wanted), f"{recv}")
        ours.Free()
    groups.local.Free()


def persistent(groups, k):
    """A persistent call of our own, and its buffer."""
    send, recv = values(groups.world.rank, k), np.full(k * len(groups.there), -1.0)
    make = groups.ours.Allgather_init
    return make(send, recv, algorithm="balanced"), recv


def test_no_tag_of_a_live_request_is_given_again(comm, groups, monkeypatch):
    """Neither in this process nor among all: requests that live on while many others
    come and go, all of them under way together but one, which nobody starts."""
    context = groups.ours._context()
    context.tag_limit = 40  # nine tags are for persistent calls
    context.channel._tag_count = 10
    persistent(groups, 3)[0].Free()
    first = next(tags._numbers)  # calls of other tests that failed keep theirs
    monkeypatch.setattr(tags, "_numbers", count(first))
    monkeypatch.setattr(tags, "_free", deque())
    monkeypatch.setitem(vars(tags), "most", first + 9)
    idle, untouched = persistent(groups, 5)
    alive = [persistent(groups, 5 + i) for i in range(3)]
    for _ in range(33):
        persistent(groups, 4)[0].Free()
    alive += [persistent(groups, 8 + i) for i in range(3)]
    order = list(range(6)) if comm.rank % 2 else list(range(5, -1, -1))
    for _ in range(3):
        for i in order:
            alive[i][0].Start()
        for _ in range(20):  # nonblocking ones in between, with tags of their own
            recv = np.full(9 * len(groups.there), -1.0)
            send = values(comm.rank, 9)
            groups.ours.Iallgather(send, recv, algorithm="balanced").Wait()
            agree(comm, same(recv, expected(groups, [9] * comm.size)))
        for i, (request, recv) in enumerate(alive):
            request.Wait()
            right = same(recv, expected(groups, [5 + i] * comm.size))
            agree(comm, right, f"{i}: {recv}")
            recv[:] = -1
    alive += [persistent(groups, 20) for _ in range(2)]
    with pytest.raises(RuntimeError, match="no tag is left"):
        persistent(groups, 20)
    agree(comm, bool((untouched == -1).all()))
    for request in (idle, *(request for request, _ in alive)):
        request.Free()
    request, recv = persistent(groups, 6)
    request.Start()
    request.Wait()
    agree(comm, same(recv, expected(groups, [6] * comm.size)))
    request.Free()


def test_tags_of_calls_come_again_after_all_others(comm, groups):
    """Calls that are under way at once have tags of their own."""
    n = len(groups.there)
    recv = np.empty(n)
    groups.ours.Allgather(np.zeros(1), recv, algorithm="direct")
    channel = groups.ours._context().channel
    channel._tag_count, tags_seen = 5, []
    count_call = channel.count

    def counted(operation):
        count_call(operation)
        tags_seen.append(operation.tag)

    channel.count = counted
    going, rooms = [], [np.full(n, -1.0) for _ in range(12)]
    for k, room in enumerate(rooms):
        send = np.array([100.0 * k + comm.rank])
        going.append(groups.ours.Iallgather(send, room, algorithm="direct"))
    for request in reversed(going):
        request.Wait()
    del channel.count
    for k, room in enumerate(rooms):
        assert room.tolist() == [100.0 * k + i for i in groups.there]
    wanted = [channel._first_tag + k % 5 for k in range(1, 13)]
    agree(comm, tags_seen == wanted, f"{tags_seen}")


def test_communicators_of_our_own_are_given_back(comm, monkeypatch):
    """As often as a communicator is made, used and freed."""
    for module in (context_inter, context_intra):
        monkeypatch.setattr(module, "NativeIntracomm", Counted)
    alive = []
    for _ in range(4):
        groups = pair(comm, 1)
        inside = isthmus.Intracomm(comm.Dup())
        groups.ours.Allgather(np.zeros(1), np.zeros(len(groups.there)))
        inside.Allgather(np.zeros(1), np.zeros(comm.size))
        alive.append(Counted.alive)
        groups.ours.Free()
        groups.local.Free()
        inside.Free()
    agree(comm, alive[3] == alive[2], f"{alive}")


def test_a_communicator_freed_during_a_trial(comm, monkeypatch):
    """Nothing of a trial that never ends is left, whichever step was the last."""
    monkeypatch.setenv("ISTHMUS_TRIAL", "1")
    monkeypatch.setenv("ISTHMUS_PER_NODE", "1")
    monkeypatch.setattr(context_inter, "WARM_UP_CALLS", 1)
    largest_handles = []
    for turn in range(24):
        groups = pair(comm, 1)
        result = np.empty(1)
        for _ in range(2 + turn):
            groups.ours.Allreduce(np.ones(1), result)
        groups.ours.Free()
        groups.local.Free()
        largest_handles.append(largest_handle())
    growth = largest_handles[-1] - largest_handles[2]
    agree(comm, growth < 10, f"{largest_handles}")


LIBRARYS = ["Alltoall", "Allgather", "Barrier"]


@pytest.mark.parametrize("op", LIBRARYS)
@pytest.mark.parametrize("form", ["nonblocking", "persistent"])
@pytest.mark.parametrize("native", [False, True])
def test_a_communicator_freed_with_requests_of_the_library_under_way(
    comm, op, form, native
):
    """Its private communicators are given back when those are over."""
    for _ in range(3):
        groups = pair(comm, 2)
        n, k = len(groups.there), 20_000
        blocks = n if op == "Alltoall" else 1
        send, recv = np.full(blocks * k, float(comm.rank)), np.full(n * k, -1.0)
        buffers = () if op == "Barrier" else (send, recv)
        if form == "persistent":
            request = getattr(groups.ours, f"{op}_init")(*buffers)
            request.Start()
        else:
            request = getattr(groups.ours, f"I{op.lower()}")(*buffers)
        (groups.native if native else groups.ours).Free()
        request.Wait()
        wanted = np.repeat(np.array(groups.there, float), k)
        agree(comm, op == "Barrier" or same(recv, wanted), f"{recv}")
        if form == "persistent":
            request.Free()
        groups.local.Free()


@pytest.mark.parametrize("native", [False, True])
def test_a_communicator_freed_with_messages_of_the_user_under_way(comm, native):
    """It is gone when the last message is complete, inside of MPI: nothing of ours may
    call MPI there."""
    for _ in range(3):
        groups = pair(comm, 1)
        recv = np.empty(100 * len(groups.there))
        for _ in range(3):  # plans are kept, which have requests
            groups.ours.Allgather(values(comm.rank, 100), recv, algorithm="segmented")
        data, got = values(comm.rank, 1 << 18), np.zeros((len(groups.there), 1 << 18))
        under_way = [groups.native.Isend(data, i) for i in range(len(groups.there))]
        under_way += [groups.native.Irecv(x, i) for i, x in enumerate(got)]
        (groups.native if native else groups.ours).Free()
        MPI.Request.Waitall(under_way)
        right = all(
            same(x, values(i, 1 << 18)) for i, x in zip(groups.there, got, strict=True)
        )
        agree(comm, right)
        groups.local.Free()


def raising(number, frame):
    raise KeyboardInterrupt


def test_an_interrupt_while_a_nonblocking_call_is_waited_for(comm, groups):
    """The call is neither complete nor lost: to wait again gives the data."""
    send, recv = values(comm.rank, 999), np.full(999 * len(groups.there), -1.0)
    for name in ("balanced", "segmented", "three_phase"):
        recv[:] = -1
        if name == "three_phase":
            start, args = groups.ours.Iallreduce, (send, recv[:999])
        else:
            start, args = groups.ours.Iallgather, (send, recv)
        interrupted = comm.rank == 0
        if not interrupted:
            time.sleep(0.3)
        request = start(*args, algorithm=name)
        if interrupted:
            before = signal.signal(signal.SIGALRM, raising)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            try:
                with pytest.raises(KeyboardInterrupt):
                    request.Wait()
                    time.sleep(1)  # where it came after the last step
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)
        request.Wait()
        if name == "three_phase":
            wanted = sum(values(i, 999) for i in groups.there)
            agree(comm, same(recv[:999], wanted), name)
        else:
            agree(comm, same(recv, expected(groups, [999] * comm.size)), name)


def test_an_interrupt_when_a_nonblocking_call_has_begun(comm, monkeypatch):
    """The others wait for a call that nobody has a request of."""
    groups = pair(comm, 2)
    groups.ours.timeout = 60.0
    recv = np.empty(len(groups.there))
    groups.ours.Iallgather(np.ones(1), recv, algorithm="leader").Wait()
    if comm.rank == 0:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(progress, "add", partial(raising, 0))
            groups.ours.Iallgather(np.ones(1), recv, algorithm="leader")
    comm.Barrier()
    if comm.rank != 0:
        with pytest.raises(isthmus.Interrupted):
            groups.ours.Iallgather(np.ones(1), recv, algorithm="leader").Wait()
            groups.ours.Allgather(np.ones(1), recv)  # where the call needs no rank 0
    begin = time.monotonic()
    with pytest.raises(RuntimeError):
        groups.ours.Allgather(np.ones(1), recv)
    agree(comm, time.monotonic() - begin < 30)


@pytest.mark.parametrize("name", ["native", "three_phase", "node_aware"])
def test_a_request_keeps_what_it_sends(comm, groups, name):
    """Of a reduction, mpi4py keeps only where the result goes."""
    n = 1 << 16
    ours, recvs = groups.ours, [np.empty(n) for _ in range(3)]
    found = []
    for turn, recv in enumerate(recvs):
        sent = np.full(n, comm.rank + turn + 1.0)
        alive = weakref.ref(sent)
        found.append(ours.Iallreduce(sent, recv, algorithm=name))
        del sent
        agree(comm, alive() is not None)
    for request in found:
        request.Wait()
    for turn, recv in enumerate(recvs):
        wanted = sum(i + turn + 1.0 for i in groups.there)
        agree(comm, bool((recv == wanted).all()), f"{turn}: {recv}")


def moved(array, data):
    """Let an array's elements lie somewhere else, as reading a pickle does."""
    array.__setstate__(np.array(data).__reduce__()[2])


@pytest.mark.parametrize("name", ["auto", "segmented", "native"])
def test_arrays_that_move_between_calls_between_groups(comm, groups, name):
    send, recv = values(comm.rank, 50), np.empty(50 * len(groups.there))
    total = np.empty(50)
    sizes = (50, 50, 50, 80, 80, 80, 50)
    for turn, k in enumerate(sizes):
        moved(send, values(comm.rank + turn, k))
        moved(recv, np.full(k * len(groups.there), -1.0))
        moved(total, np.full(k, -1.0))
        for _ in range(3):  # known by then
            groups.ours.Allgather(send, recv, algorithm=name)
            if name != "segmented":
                groups.ours.Allreduce(send, total, algorithm=name)
        parts = [values(i + turn, k) for i in groups.there]
        agree(comm, same(recv, np.concatenate(parts)), f"{turn}: {recv}")
        agree(comm, name == "segmented" or same(total, sum(parts)), f"{turn}: {total}")


@pytest.mark.parametrize("name", ["auto", "ring", "library", "native"])
def test_arrays_that_move_between_calls_inside_a_group(comm, name):
    ours = isthmus.Intracomm(comm.Dup())
    send, recv, data = values(comm.rank, 50), np.empty(150), np.empty(50)
    for turn, k in enumerate((50, 50, 50, 80, 80, 80, 50)):
        moved(send, values(comm.rank + turn, k))
        moved(recv, np.full(k * comm.size, -1.0))
        moved(data, np.full(k, float(turn if comm.rank == 1 else -1)))
        for _ in range(3):
            ours.Allgather(send, recv, algorithm=name)
            if name != "ring":
                ours.Bcast(data, 1, algorithm=name)
        parts = [values(i + turn, k) for i in range(comm.size)]
        agree(comm, same(recv, np.concatenate(parts)), f"{turn}: {recv}")
        agree(comm, name == "ring" or bool((data == turn).all()), f"{turn}: {data}")
    ours.Free()


@pytest.mark.filterwarnings("ignore:Setting the dtype:DeprecationWarning")
def test_an_array_whose_type_changes_is_another_call(comm, groups):
    send, recv = np.full(8, comm.rank + 1.0), np.empty(8)
    for _ in range(3):
        groups.ours.Allreduce(send, recv)
    send.dtype = recv.dtype = "i8"
    send[:] = -1 - comm.rank
    for _ in range(3):
        groups.ours.Allreduce(send, recv)
    agree(comm, recv.tolist() == [sum(-1 - i for i in groups.there)] * 8, f"{recv}")


def test_the_garbage_collector_calls_nothing_of_mpi(comm, groups):
    """An operator is called from inside MPI, and what is no longer needed may be
    collected there: requests, plans and buffers; MPI would end the process."""
    garbage = []

    def add(a, b, kind):
        garbage.clear()
        gc.collect()
        np.frombuffer(b, "f8")[:] += np.frombuffer(a, "f8")

    op = MPI.Op.Create(add, commute=True)
    send, recv = values(comm.rank, 40), np.empty(40)
    n = len(groups.there)
    for _ in range(20):
        for name in ("auto", "direct", "native"):
            cycle = []
            request, _ = persistent(groups, 7)
            later = groups.ours.Iallgather(send, np.empty(40 * n), algorithm="balanced")
            cycle += [cycle, request, later]
            later.Wait()
            garbage.append(cycle)
            del cycle, request, later
            groups.ours.Allreduce(send, recv, op, algorithm=name)
            wanted = sum(values(i, 40) for i in groups.there)
            agree(comm, same(recv, wanted), f"{recv}")
    op.Free()
