"""Recording real runs: when each message of a call was started, and when complete.

While a communicator is recorded, its calls are run from here, one request at a time.
That takes some microseconds more a message; calls that are not recorded take the same
steps as always.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from mpi4py import MPI

from ...choose.recipe import Recipe
from ...cost.recorded import End, Log, Recorded, timeline
from ...schedules.ir import Library, Recv, Send
from ..context.context import Context
from ..engine.plan import Plan, Stage
from ..waiting.waiting import Limit, Messages, wait
from .clock import now, offset


def _ends(recipe: Recipe) -> list[list[End]]:
    """The messages of each round, as they are in the stages of its plan."""
    found = []
    for k, each in enumerate(recipe.rounds):
        ends = []
        for c in each.comm:
            if isinstance(c, Library):
                continue
            assert isinstance(c, Send | Recv)
            peer = c.to if isinstance(c, Send) else c.frm
            size = sum(int(s.size) * recipe.units[s.buf] for s in c.data)
            ends.append(End(isinstance(c, Send), int(peer), size, k, 0.0, 0.0))
        found.append(ends)
    return found


class Recorder:
    """The calls of a communicator while it is recorded."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.offset = offset(context.comm)
        self.logs: list[Log] = []

    def watch(self, plan: Plan, recipe: Recipe) -> None:
        """Run a plan from here."""
        plan.__dict__["calls"] = [partial(self._run, plan, _ends(recipe))]

    def _run(self, plan: Plan, ends: list[list[End]]) -> None:
        """Do a call, and keep when its messages were started and complete."""
        begin = now()
        if plan.turn is not None:
            wait(plan.turn, self.context.limit)
        for step in plan.before:
            step()
        run = _Run(self.context.limit)
        for k, stage in enumerate(plan.stages, 1):
            run.stage(stage, k)
        if plan.turn is not None:
            plan.turn.end()
        for step in plan.after:
            step()
        log = Log(begin, now(), tuple(_timed(plan.stages, ends, run)))
        self.logs.append(_shifted(log, self.offset))

    def everyone(self) -> list[list[Log]]:
        """The logs of all ranks, call by call; collective, the same on each."""
        found = self.context.comm.allgather(self.logs)
        return [list(same) for same in zip(*found, strict=True)]

    def timelines(self) -> list[Recorded]:
        """Every call as a timeline of all ranks; collective, the same on each."""
        return [timeline(same) for same in self.everyone()]


class _Run:
    """One call on its way: when each request was started and complete."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self.started: dict[int, float] = {}
        self.complete: dict[int, float] = {}
        self.flying: list[MPI.Prequest] = []

    def stage(self, stage: Stage, k: int) -> None:
        """One round, as in `Plan.calls`."""
        for request in stage.start:
            self.started[id(request)] = now()
            request.Start()
        self.flying += stage.start
        for step in stage.meanwhile:
            step()
        called = [call() for call in stage.call]
        wait(Messages(called, stage.called), self._limit, k)
        for request, peer in zip(stage.wait, stage.peers, strict=True):
            if id(request) not in self.complete:
                self.wait(request, peer, k)
        for step in stage.then:
            step()
        if stage.meet is not None:
            stage.meet.arrive()
            wait(stage.meet, self._limit, k)

    def wait(self, request: MPI.Prequest, peer: int, k: int) -> None:
        """Wait for one, and see which others are complete too, also of later rounds.

        Not for any of them: while they wait for that, some libraries keep the processor
        from everyone else.
        """
        wait(Messages([request], [peer]), self._limit, k)
        self.complete[id(request)] = now()
        self.flying.remove(request)
        done: Any = MPI.Request.Testsome(self.flying)
        time = now()
        for i in sorted(done or (), reverse=True):
            self.complete[id(self.flying.pop(i))] = time


def _timed(stages: Sequence[Stage], ends: list[list[End]], run: _Run) -> Iterator[End]:
    """The ends of all messages with their times."""
    # without any round there is a stage all the same, for what is done meanwhile
    for stage, known in zip(stages, ends, strict=False):
        for request, end in zip(stage.wait, known, strict=True):
            i = id(request)
            yield replace(end, start=run.started[i], end=run.complete[i])


def _shifted(log: Log, by: float) -> Log:
    """The same by another clock."""
    ends = (replace(x, start=x.start + by, end=x.end + by) for x in log.ends)
    return Log(log.begin + by, log.end + by, tuple(ends))


@contextmanager
def recording(comm: Any) -> Iterator[Recorder]:
    """Record the blocking calls of a communicator of isthmus; collective.

    What the MPI library does on its own is not seen.
    """
    context: Context = comm._context()
    context.forget()
    context.recorder = recorder = Recorder(context)
    try:
        yield recorder
    finally:
        context.recorder = None
        context.forget()
