"""An exception in the middle of a call: no rank takes old data for new ones then."""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from groups import pair, same, values
from launcher.mpirun import ENVIRONMENT, Launch, command, find_mpiexec, obstacle
from sampling import LONG
from support import agree

#: seconds in which a rank has come into a call, or out of it
MOMENT = 0.2 if LONG else 0.1
REFUSED = r"interrupted.* in the middle of a collective call; free the communicator"


class Signalled(Exception):
    """What the handler of a signal raises, as a time limit or Ctrl-C does."""


@contextmanager
def signalled(comm):
    """The handler of rank 0 raises while it is in the call that is made in here; the
    last rank comes to it only then."""
    pids, last = comm.allgather(os.getpid()), comm.size - 1
    heard = []

    def handler(*_):
        if comm.rank == last:
            heard.append(True)
        else:
            os.kill(pids[last], signal.SIGUSR2)
            raise Signalled

    before = signal.signal(signal.SIGUSR2, handler)
    comm.Barrier()
    try:
        if comm.rank == last:
            time.sleep(MOMENT)
            os.kill(pids[0], signal.SIGUSR2)
            for _ in range(1000):
                if heard:  # which takes a while on busy cores
                    break
                time.sleep(0.01)
            time.sleep(MOMENT)
        yield
    finally:
        signal.signal(signal.SIGUSR2, before)


def raised(call, *args, **kwargs):
    """What a call raises, if anything."""
    try:
        call(*args, **kwargs)
    except Exception as error:
        return error
    return None


def refuses(inter):
    """Whether every kind of call is refused on this rank."""
    send, recv = np.ones(1), np.empty(inter.remote_size)
    calls = [
        lambda: inter.Allreduce(np.ones(1), np.empty(1)),
        lambda: inter.Allgather(send, recv, algorithm="direct"),
        lambda: inter.Iallgather(send, recv),
        lambda: inter.Bcast_init(send, 0),
        lambda: inter.allgather(1),
        lambda: inter.alltoall([1] * inter.remote_size),
        lambda: isthmus.Intercomm(inter).Barrier(),
    ]
    errors = [raised(call) for call in calls]
    return all(type(x) is RuntimeError and "free the" in str(x) for x in errors)


def works(comm):
    """A new communicator of the same processes is as good as ever."""
    groups = pair(comm, 1)
    recv = np.zeros(3)
    groups.ours.Allreduce(values(comm.rank, 3), recv)
    wanted = sum(values(i, 3) for i in groups.there)
    agree(comm, same(recv, wanted), "on a new communicator")
    groups.free()


def calls_of(inter, n):
    """Calls of n elements that are done in memory that all share."""
    q, p = inter.remote_size, inter.size
    n = n // (p * q) * p * q
    send, recv = np.ones(n * q), np.empty(n * q)
    near = {"algorithm": "node_aware"}
    return [
        lambda: inter.Allreduce(send[:n], recv[:n], **near),
        lambda: inter.Reduce_scatter(send[:n], recv[: n // p], [n // p] * p, **near),
        lambda: inter.Reduce_scatter_block(send[:n], recv[: n // p], **near),
        lambda: inter.Allgather(send[:n], recv, **near),
        lambda: inter.Allgatherv(send[:n], [recv, [n] * q], **near),
        lambda: inter.Alltoall(send[: 8 * q], recv[: 8 * q], **near),
    ]


@pytest.mark.mpi(3)
@pytest.mark.parametrize("n", [6, 1 << 18])
def test_all_ranks_refuse_after_an_interrupt_in_shared_memory(comm, n):
    for k in range(6):
        groups = pair(comm, 1)
        call = calls_of(groups.ours, n)[k]
        groups.ours.Allreduce(np.ones(1), np.empty(1))
        for _ in range(k % 2 * 3):  # every other one is known by then
            call()
        with signalled(comm):
            error = raised(call)
        note = f"call {k}: {error!r}"
        kind = Signalled if comm.rank == 0 else RuntimeError
        agree(comm, isinstance(error, kind), note)
        agree(comm, comm.rank == 0 or "group A rank 0" in str(error), note)
        agree(comm, refuses(groups.ours), note)
        groups.free()
    works(comm)


@pytest.mark.mpi(3)
def test_who_waits_in_the_memory_of_a_persistent_call_hears_of_an_interrupt(comm):
    groups = pair(comm, 1)
    send, recv = np.ones(4), np.empty(4)
    request = groups.ours.Allreduce_init(send, recv, algorithm="node_aware")
    with signalled(comm):
        error = raised(lambda: (request.Start(), request.Wait()))
    kind = Signalled if comm.rank == 0 else RuntimeError
    agree(comm, isinstance(error, kind), repr(error))
    agree(comm, refuses(groups.ours))
    groups.free()


@pytest.mark.mpi(2)
def test_ranks_never_take_old_data_for_new_ones_after_an_interrupt(comm):
    """One goes on with short calls, the other is still in a long one."""
    groups = pair(comm, 1)
    inter, small = groups.ours, np.zeros(1)
    long, out = np.ones(1 << 19), np.zeros(1 << 19)
    for _ in range(3):
        inter.Allreduce(np.ones(1), small)
        inter.Allreduce(long, out)
    long[:] = 7
    with signalled(comm):
        if comm.rank == 0:
            with pytest.raises(Signalled):
                inter.Allreduce(long, out)
            for _ in range(4):
                with pytest.raises(RuntimeError, match=REFUSED):
                    inter.Allreduce(np.ones(1), small)
        else:
            error = raised(inter.Allreduce, long, out)
            assert error is not None or (out == 7).all()
    groups.free()


def _persistent(inter, *args):
    request = inter.Allgather_init(*args, algorithm="segmented")
    try:
        request.Start()
        request.Wait()
    finally:
        request.Free()


#: calls by messages, of one message each way between two ranks
BY_MESSAGES = {
    "blocking": lambda inter, *args: inter.Allgather(*args, algorithm="segmented"),
    "exchange": lambda inter, *args: inter.Alltoall(*args, algorithm="paced"),
    "nonblocking": lambda inter, *args: inter.Iallgather(
        *args, algorithm="segmented"
    ).Wait(),
    "persistent": _persistent,
}


@pytest.mark.mpi(2)
@pytest.mark.parametrize("form", BY_MESSAGES)
@pytest.mark.parametrize("known", [False, True])
def test_a_rank_refuses_after_an_interrupt_in_a_call_by_messages(comm, form, known):
    groups = pair(comm, 1)
    inter, recv = groups.ours, np.zeros(4)
    inter.Barrier()
    for _ in range(3 * known):
        BY_MESSAGES[form](inter, values(comm.rank, 4), recv)
    send = values(comm.rank, 4)
    with signalled(comm):
        error = raised(BY_MESSAGES[form], inter, send, recv)
    if comm.rank == 0:
        agree(comm, isinstance(error, Signalled) and refuses(inter), repr(error))
    else:
        agree(comm, error is None and same(recv, values(0, 4)), repr(error))
    groups.free()
    works(comm)


@pytest.mark.mpi(2)
def test_a_persistent_request_is_not_started_after_an_interrupt(comm):
    groups = pair(comm, 1)
    inter, recv = groups.ours, np.zeros(4)
    args = values(comm.rank, 4), recv
    request = inter.Allgather_init(*args, algorithm="segmented")
    with signalled(comm):
        error = raised(inter.Allgather, *args, algorithm="segmented")
    agree(comm, (error is None) == (comm.rank == 1), repr(error))
    if comm.rank == 0:
        with pytest.raises(RuntimeError, match=REFUSED):
            request.Start()
    request.Free()
    groups.free()


@pytest.mark.mpi(2)
def test_who_waits_in_shared_memory_hears_of_an_interrupt_in_a_call_by_messages(comm):
    groups = pair(comm, 1)
    inter, send, recv = groups.ours, np.ones(4), np.empty(4)
    for _ in range(3):
        inter.Allreduce(send, recv, algorithm="node_aware")
    with signalled(comm):
        error = raised(inter.Allgather, send, recv, algorithm="segmented")
    agree(comm, (error is None) == (comm.rank == 1), repr(error))
    with pytest.raises(RuntimeError, match=REFUSED):
        inter.Allreduce(send, recv, algorithm="node_aware")
    agree(comm, True)
    groups.free()


@pytest.mark.mpi(2, timeout=20)
def test_who_waits_for_messages_hears_of_an_interrupt_on_its_node(comm):
    """Of a rank that has yet to send, and comes no more: its data, or an error."""
    groups = pair(comm, 1)
    send, recv = np.ones(1 << 19), np.zeros(1 << 19)
    for _ in range(3):
        groups.ours.Allreduce(send, recv, algorithm="direct")
    send[:] = 7
    with signalled(comm):
        began = time.monotonic()
        error = raised(groups.ours.Allreduce, send, recv, algorithm="direct")
        soon = time.monotonic() - began < 10 * MOMENT
    if comm.rank == 0:
        time.sleep(20 * MOMENT)  # MPI does not go on here
    right = comm.rank == 1 and bool((recv == 7).all())
    good = right or isinstance(error, RuntimeError | Signalled)
    agree(comm, good and soon, repr(error))
    groups.free()


@pytest.mark.mpi(2)
def test_a_first_call_that_is_interrupted_is_not_made_again(comm, monkeypatch):
    from isthmus.mpi.context import context

    def interrupted(comm, per_node):
        raise KeyboardInterrupt

    groups = pair(comm, 1)
    with monkeypatch.context() as patch:
        patch.setattr(context, "node_ranks", interrupted)
        with pytest.raises(KeyboardInterrupt):
            groups.ours.Barrier()
    agree(comm, refuses(groups.ours))
    groups.free()


@pytest.mark.mpi(3)
def test_the_request_of_the_librarys_own_call_is_not_lost_to_a_signal(
    comm, monkeypatch
):
    """The others have heard of the call: the rank must not begin it again, and who
    waits in the call after it hears of that."""
    from isthmus.mpi import forms

    def interrupted(*_):
        raise Signalled

    ours = isthmus.Intracomm(comm.Dup())
    send, recv = np.ones(2), np.zeros(2 * comm.size)
    with monkeypatch.context() as patch:
        if comm.rank == 1:
            patch.setattr(forms, "holding", interrupted)
        error = raised(ours.Iallgather, send, recv, algorithm="native")
    agree(comm, isinstance(error, Signalled) == (comm.rank == 1), repr(error))
    later = raised(lambda: ours.Iallgather(send, recv, algorithm="native").Wait())
    agree(comm, isinstance(later, RuntimeError), repr(later))


@pytest.mark.mpi(2)
@pytest.mark.parametrize("limit", [None, 20.0])
@pytest.mark.parametrize("form", ["Allreduce", "Iallreduce"])
def test_a_call_that_mpi4py_refuses_leaves_no_trace(comm, form, limit):
    """Here for a buffer that must not be written."""
    ours = isthmus.Intracomm(comm.Dup())
    ours.timeout = limit
    send, recv = np.ones(4), np.zeros(4)
    recv.flags.writeable = False
    error = raised(getattr(ours, form), send, recv, algorithm="native")
    agree(comm, isinstance(error, BufferError | ValueError), repr(error))
    recv = np.zeros(4)
    request = getattr(ours, form)(send, recv, algorithm="native")
    if request is not None:
        request.Wait()
    agree(comm, (recv == comm.size).all(), str(recv))
    ours.Free()


@pytest.mark.mpi(2)
@pytest.mark.parametrize("kind", [TimeoutError, Signalled, KeyboardInterrupt])
def test_what_a_signal_raises_while_arguments_are_read_is_not_lost(
    comm, monkeypatch, kind
):
    """Arguments that have no values are read in another way: not so a signal's error.
    Nobody has heard of the call, which is made again."""
    from isthmus.mpi.arguments import call

    def interrupted(*_):
        raise kind

    groups = pair(comm, 1)
    send, recv = np.ones(4), np.zeros(4)
    for _ in range(2):
        if comm.rank == 0:
            with monkeypatch.context() as patch:
                patch.setattr(call, "values_of", interrupted)
                with pytest.raises(kind):
                    groups.ours.Allreduce(send, recv)
        groups.ours.Allreduce(send, recv)
        agree(comm, (recv == 1).all(), str(recv))
    groups.free()


@pytest.mark.mpi(2)
def test_wrong_arguments_leave_a_communicator_as_good_as_before(comm):
    groups = pair(comm, 1)
    inter, recv = groups.ours, np.empty(4)
    for name in ("auto", "segmented"):
        with pytest.raises(ValueError, match="cannot infer count"):
            inter.Allgather([np.zeros(3), MPI.DOUBLE_COMPLEX], recv)
        with pytest.raises(TypeError):
            inter.Allreduce(1, recv)
        inter.Allgather(values(comm.rank, 4), recv, algorithm=name)
        agree(comm, same(recv, values(1 - comm.rank, 4)))
    groups.free()


@pytest.mark.mpi(2)
def test_a_chain_refuses_after_its_operator_raised(comm):
    def wrong(x, y):
        raise ZeroDivisionError

    mine = comm.Dup()
    chain = isthmus.Chain.from_comm(mine)
    if comm.rank:
        with pytest.raises(ZeroDivisionError):
            chain.scan(1, wrong)
        for other in (chain, isthmus.Chain.from_comm(mine)):
            with pytest.raises(RuntimeError, match=REFUSED):
                other.barrier()
    else:
        chain.scan(1, wrong)
    agree(comm, True)
    mine.Free()


# What ranks say goes to a file: mpiexec may lose some of it when they are ended.
OPERATOR = """
import os
import numpy as np
from mpi4py import MPI
import isthmus
os.dup2(os.open("said", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
world = MPI.COMM_WORLD
def wrong(x, y, datatype):
    raise ZeroDivisionError
local = world.Split(world.rank % 2)
inter = isthmus.Intercomm(local.Create_intercomm(0, world, 1 - world.rank % 2, 1))
inter.Allreduce(np.ones(4), np.empty(4), MPI.Op.Create(wrong))
world.Barrier()
"""


def test_all_ranks_end_where_an_operator_of_mpi_raises(tmp_path):
    """mpi4py ends them: MPI cannot go on from there."""
    if obstacle():
        pytest.skip(obstacle())
    script = tmp_path / "raises.py"
    script.write_text(OPERATOR)
    line = command(find_mpiexec(), 3, str(script))
    launch = Launch(line, {**os.environ, **ENVIRONMENT}, tmp_path, tmp_path)
    status = launch.wait(180)
    launch.close()
    said = (tmp_path / "said").read_text()
    assert status not in (0, None), said
    assert "ZeroDivisionError" in said
