"""Limits: a rank that stays away is an error of the others, soon."""

from __future__ import annotations

import gc
import os
import signal
import time
import weakref
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from groups import pair
from isthmus.mpi.context.attribute import lookup
from sampling import some
from support import TURN, agree, has_persistent_collectives

#: seconds of the limit, and until everybody must have heard of it
LIMIT, SOON = 0.2, 5.0
#: seconds until a signal is answered; processes share cores here
ANSWER = 0.1


def _persistent(inter, algorithm):
    request = inter.Allreduce_init(np.ones(4), np.empty(4), algorithm=algorithm)
    return lambda: (request.Start(), request.Wait())


def _gather(inter, form="Allgather", **more):
    return getattr(inter, form)(np.ones(4), np.empty(4 * inter.remote_size), **more)


#: where the MPI library alone knows whom it waits for
HIDDEN = "native", "negotiation", "nonblocking native", "persistent native"
#: what is set up by all, and then called by all but one
CALLS = {
    "messages": lambda x: lambda: _gather(x, algorithm="segmented"),
    "known messages": lambda x: (
        _gather(x, algorithm="segmented"),
        lambda: _gather(x, algorithm="segmented"),
    )[1],
    "memory": lambda x: (
        lambda: x.Allreduce(np.ones(4), np.ones(4), algorithm="node_aware")
    ),
    "native": lambda x: lambda: x.Allreduce(np.ones(4), np.ones(4), algorithm="native"),
    "negotiation": lambda x: (
        lambda: x.Allgatherv(
            np.ones(4), [np.ones(4 * x.remote_size), [4] * x.remote_size]
        )
    ),
    "nonblocking": lambda x: (
        lambda: _gather(x, "Iallgather", algorithm="balanced").Wait()
    ),
    "nonblocking memory": lambda x: (
        lambda: x.Iallreduce(np.ones(4), np.ones(4), algorithm="node_aware").Wait()
    ),
    "nonblocking native": lambda x: (
        lambda: _gather(x, "Iallgather", algorithm="native").Wait()
    ),
    "persistent": lambda x: _persistent(x, "three_phase"),
    "persistent native": lambda x: _persistent(x, "native"),
    "persistent memory": lambda x: _persistent(x, "node_aware"),
    "objects": lambda x: lambda: x.allgather({1: 2}),
}


def late(comm, call, more=None):
    """What a call raises on ranks that wait for the last one, as rank 0 does, and when;
    that one comes only after them, so that nothing is left under way."""
    error, begin = None, time.monotonic()
    if comm.rank < comm.size - 1:
        try:
            call()
        except RuntimeError as caught:
            error = caught
    took = time.monotonic() - begin
    said = None if more is None or error is None else more()
    agree(comm, comm.rank > 0 or error is not None, "no error")
    if comm.rank == comm.size - 1:
        with suppress(RuntimeError):
            call()
    comm.Barrier()
    time.sleep(0.05)  # what is made beside the caller must be over before it is freed
    return error, took, said


@pytest.mark.mpi(3)
@pytest.mark.parametrize("name", some(CALLS, 2, TURN))
def test_who_waits_too_long_says_for_whom(comm, name):
    if name == "persistent native" and not has_persistent_collectives():
        pytest.skip("the library has no persistent collectives")
    groups = pair(comm, 1)
    inter = groups.ours
    inter.Barrier()
    call = CALLS[name](inter)
    inter.timeout = LIMIT
    report = lambda: isthmus.stalled_report(inter, 0.2)  # noqa: E731
    error, took, lines = late(comm, call, report)
    waiting = comm.allreduce(isinstance(error, isthmus.Stalled))
    if error is not None:
        text = str(error)
        assert isinstance(error, isthmus.Stalled), text
        assert LIMIT * 0.9 < took < SOON and error.operation and error.algorithm, text
        assert name in HIDDEN or error.waiting_for, text
        assert f"waited {LIMIT:.1f} s" in text and "\n" not in text
        assert "waited" in lines[comm.rank] and len(lines) == 3, lines
        assert sum("waited" in line for line in lines) == waiting, lines
        assert "group B rank 1: says nothing" in lines[2]
        with pytest.raises(RuntimeError, match="free the communicator"):
            inter.Barrier()
    agree(comm, True)
    groups.free()


@pytest.mark.mpi(3)
def test_the_first_call_has_a_limit(comm, monkeypatch):
    monkeypatch.setenv("ISTHMUS_TIMEOUT", str(LIMIT))
    groups = pair(comm, 1)
    error, took, _ = late(comm, groups.ours.Barrier)
    if error is not None:
        assert isinstance(error, isthmus.Stalled) and took < SOON, repr(error)
        assert "first call" in str(error)
        with pytest.raises(RuntimeError, match="free the communicator"):
            groups.ours.Barrier()
    agree(comm, True)
    groups.free()


@pytest.mark.mpi(3)
def test_chains_and_splits_have_a_limit(comm, monkeypatch):
    monkeypatch.setenv("ISTHMUS_TIMEOUT", str(LIMIT))
    for made in (True, False):  # with and without the private duplicate
        mine = comm.Dup()
        if made:
            call = isthmus.Chain.from_comm(mine).barrier
        else:
            call = partial(isthmus.split, mine, "a")
        error, took, _ = late(comm, call)
        if error is not None:
            assert isinstance(error, isthmus.Stalled) and took < SOON, repr(error)
        agree(comm, True)
        mine.Free()


@pytest.mark.mpi(3)
def test_a_call_that_is_recorded_has_a_limit(comm):
    groups = pair(comm, 1)
    inter = groups.ours
    inter.Barrier()
    with isthmus.recording(inter):
        _gather(inter, algorithm="segmented")
        inter.timeout = LIMIT
        call = partial(_gather, inter, algorithm="segmented")
        error, took, _ = late(comm, call)
    if error is not None:
        assert isinstance(error, isthmus.Stalled) and took < SOON, repr(error)
        assert error.waiting_for and error.round and error.operation, str(error)
    agree(comm, True)
    groups.free()


@pytest.mark.mpi(3)
def test_a_redistribution_has_a_limit(comm):
    mine = isthmus.Intracomm(comm.Dup())
    layout = isthmus.Layout.blocks((9,), [3])
    move = isthmus.Redistribution(mine, layout, isthmus.Layout.cyclic((9,), [3], [1]))
    x, y = np.ones(3), np.ones(3)
    move(x, y)
    mine.timeout = LIMIT
    error, took, _ = late(comm, lambda: move(x, y))
    if error is not None:
        assert isinstance(error, isthmus.Stalled) and took < SOON, repr(error)
        assert "Redistribution" in str(error) and error.waiting_for
    agree(comm, True)
    mine.Free()


@pytest.mark.mpi(3)
def test_a_field_that_is_wrong_later_raises_at_once_and_nobody_waits_longer(comm):
    """Of another shape, on its own rank before anything is sent; of another type, where
    the first message of another size comes, and then everywhere.

    Which rank that is depends on time: the others hear of its error, or find their own.
    """
    layout = isthmus.Layout.blocks((9,), [3])
    cyclic = isthmus.Layout.cyclic((9,), [3], [1])
    for wrong in (np.ones(4), np.ones(3, "f4")):
        mine = isthmus.Intracomm(comm.Dup())
        move = isthmus.Redistribution(mine, layout, cyclic)
        x, y = np.ones(3), np.ones(3)
        move(x, y)
        mine.timeout = LIMIT
        last, shape = comm.rank == 2, wrong.shape != x.shape
        into = np.ones_like(wrong) if last and not shape else y
        begin, said = time.monotonic(), "nothing"
        try:
            move(wrong if last else x, into)
        except (ValueError, isthmus.Stalled, isthmus.MismatchError) as error:
            said = str(error)
        except RuntimeError as error:
            said = str(error)
            assert not shape and "was interrupted" in said
        took = time.monotonic() - begin
        if shape:
            is_said = ("has shape (4,)" if last else "Redistribution") in said
        else:
            own = "Redistribution" if last else "rank 2"
            is_said = own in said or "was interrupted" in said
        agree(comm, is_said and took < SOON, f"{took} {said}")
        agree(comm, not (last and shape) or took < LIMIT)
        comm.Barrier()
        time.sleep(0.05)
        mine.Free()


@pytest.mark.mpi(3)
def test_another_node_hears_of_an_interrupt_at_its_limit(comm, monkeypatch):
    """Ranks 0 and 1 share memory, rank 2 is elsewhere."""
    monkeypatch.setenv("ISTHMUS_PER_NODE", "2")
    groups = pair(comm, 1)
    inter = groups.ours
    inter.timeout = 1.0

    def call():
        inter.Allreduce(np.ones(8), np.ones(8), algorithm="node_aware")

    def handler(*_):
        raise InterruptedError

    call()
    before = signal.signal(signal.SIGALRM, handler)
    comm.Barrier()
    begin = time.monotonic()
    if comm.rank == 0:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(InterruptedError):
            while True:
                time.sleep(0.01) if time.monotonic() < begin + 0.05 else call()
        lookup(inter, "context").refuse(0, InterruptedError())
    else:
        with pytest.raises(RuntimeError):
            while time.monotonic() < begin + SOON:
                call()
    took = time.monotonic() - begin
    signal.signal(signal.SIGALRM, before)
    agree(comm, took < 1.0 + SOON, f"{took}")
    groups.free()


@pytest.mark.mpi(3)
@pytest.mark.parametrize(
    "name",
    ["first", *some([x for x in CALLS if "native" not in x], 2, TURN)],
)
def test_a_signal_is_answered_at_once(comm, name):
    _signalled(comm, name, None)


@pytest.mark.mpi(3)
def test_a_signal_is_answered_at_once_by_the_library_where_there_is_a_limit(comm):
    _signalled(comm, "native", 20.0)


def _signalled(comm, name, limit):
    groups = pair(comm, 1)
    inter = groups.ours
    inter.timeout = limit
    call = inter.Barrier
    if name != "first":
        inter.Barrier()
        call = CALLS[name](inter)
    at = 0.0

    def handler(*_):
        nonlocal at
        at = time.monotonic()
        raise InterruptedError

    before = signal.signal(signal.SIGUSR2, handler)
    pids, sent = comm.allgather(os.getpid()), 0.0
    if comm.rank == 0:
        with pytest.raises(InterruptedError):
            call()
        with pytest.raises(RuntimeError, match="free the communicator"):
            inter.Barrier()
    elif comm.rank == comm.size - 1:
        time.sleep(0.15)
        sent = time.monotonic()  # the same clock in all processes
        os.kill(pids[0], signal.SIGUSR2)
    took = at - comm.bcast(sent, comm.size - 1)
    agree(comm, comm.rank > 0 or 0 < took < ANSWER, f"{took}")
    if comm.rank:
        inter.timeout = LIMIT
        with suppress(RuntimeError):
            call()
    signal.signal(signal.SIGUSR2, before)
    agree(comm, True)
    time.sleep(0.05)  # what is made beside the caller must be over before it is freed
    groups.free()


@pytest.mark.mpi(3)
def test_nothing_that_waits_is_in_a_cycle(comm):
    gc.collect()
    gc.disable()
    try:
        groups = pair(comm, 1)
        inter = groups.ours
        for seconds in (None, 30.0):
            inter.timeout = seconds
            for name in ("messages", "memory", "persistent", "nonblocking"):
                CALLS[name](inter)()
        context = lookup(inter, "context")
        gone = [weakref.ref(plan) for plan in context.plans.plans()]
        del context
        inter.Free()
        del inter
        groups.local.Free()
        del groups
        end = time.monotonic() + 5  # the thread may look at one just now
        while any(x() for x in gone) and time.monotonic() < end:
            time.sleep(0.01)
        agree(comm, len(gone) > 2 and not any(x() for x in gone), repr(gone))
    finally:
        gc.enable()


def test_a_limit_is_a_positive_number():
    from isthmus.settings import timeout

    assert timeout({}) is None and timeout({"ISTHMUS_TIMEOUT": "2.5"}) == 2.5
    for wrong in ("0", "-1", "soon", "inf", "nan"):
        with pytest.raises(ValueError, match="ISTHMUS_TIMEOUT is"):
            timeout({"ISTHMUS_TIMEOUT": wrong})
    inter = isthmus.Intracomm(MPI.COMM_SELF)
    with pytest.raises(ValueError, match="timeout is 0"):
        inter.timeout = 0
