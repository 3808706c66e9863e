"""What messages cost, where some of them are late."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import isthmus
from isthmus.mpi.costs import probe
from isthmus.mpi.costs.probe import (
    MAX_SLOW_TURNS,
    PROBE_TURNS,
    SLOW_STEP_SECONDS,
    SLOW_STEPS_SECONDS,
    complete,
    time_in_steps,
)
from support import agree

FAST = SLOW_STEP_SECONDS / 100


class Steps:
    """Steps that take what a function says of each, on a clock of their own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, takes: Callable[[int], float]):
        self.made, self.now, self.takes = 0, 0.0, takes
        monkeypatch.setattr(probe, "perf_counter", lambda: self.now)

    def __call__(self) -> None:
        self.now += self.takes(self.made)
        self.made += 1


@pytest.mark.mpi(2)
def test_the_first_message_does_not_count(comm, monkeypatch):
    """It opens a connection."""
    step = Steps(monkeypatch, lambda k: FAST if k else 10 * SLOW_STEP_SECONDS)
    found = complete(time_in_steps(comm, step, 20))
    agree(
        comm, found == pytest.approx(FAST) and step.made == 2 + 20 * PROBE_TURNS, found
    )


@pytest.mark.mpi(2)
def test_a_step_that_is_late_now_and_then_is_made_more_often(comm, monkeypatch):
    """The second is late, so that all look slow, and four of five after it."""
    step = Steps(
        monkeypatch, lambda k: FAST if k > 1 and k % 5 == 1 else 2 * SLOW_STEP_SECONDS
    )
    found = complete(time_in_steps(comm, step, 20))
    steps = 2 + MAX_SLOW_TURNS
    agree(comm, found == pytest.approx(FAST) and step.made == steps, found)


@pytest.mark.mpi(2)
def test_slow_steps_are_made_twice(comm, monkeypatch):
    step = Steps(monkeypatch, lambda k: SLOW_STEPS_SECONDS)
    found = complete(time_in_steps(comm, step, 20))
    agree(comm, found == pytest.approx(SLOW_STEPS_SECONDS) and step.made == 4, found)


@pytest.mark.mpi(2)
def test_messages_of_calls_under_way_are_left_alone(comm, monkeypatch):
    """A call that goes on beside others has a tag of its own."""
    monkeypatch.setenv("ISTHMUS_CHECK", "1")
    ours = isthmus.Intracomm(comm.Dup())
    context, n = ours._context(), comm.size
    left, right = (comm.rank - 1) % n, (comm.rank + 1) % n
    sent = context.comm.Isend(np.full(3, comm.rank), right, 5)
    probe.probe(context.comm, context.nodes)
    whole, got = np.zeros(n), np.full(3, -1)
    ours.Allgather(np.full(1, comm.rank + 1.0), whole)  # compares arguments first
    context.comm.Recv(got, left, 5)
    sent.Wait()
    found = (got == left).all() and (whole == np.arange(n) + 1).all()
    agree(comm, found, f"{got} {whole}")
    ours.Free()
