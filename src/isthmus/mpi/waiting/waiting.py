"""One place that knows how to wait: by looking again and again, so that time limits
and signals are noticed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, Protocol

from mpi4py import MPI

from .errors import Stalled

#: who waits looks so often between two looks at the clock
LOOKS = 64
#: who waits for messages looks so often before it gives way to other processes; who
#: waits for ranks of its node, of which there may be one for each core, does so at once
SPINS = 64
#: seconds between two looks for processes that were lost
MOMENT = 0.1
_give_way = os.sched_yield


def nothing() -> None:
    """Do nothing."""


@dataclass(slots=True)
class Limit:
    """How many seconds this process waits on a communicator; None for as long as it
    takes. `look` raises if a process was lost."""

    seconds: float | None = None
    look: Callable[[], None] = nothing

    def leave(self) -> None:
        """The communicator is no more."""

    def free(self) -> None:
        """There is nothing to give back."""
        self.look = nothing


class Awaited(Protocol):
    """What a rank waits for."""

    @property
    def spins(self) -> int:
        """Looks before who waits gives way to other processes."""

    def test(self) -> bool:
        """Whether it is complete."""

    def progress(self) -> None:
        """Let others go on."""

    def missing(self) -> Sequence[int]:
        """The ranks that it needs yet."""

    def has(self) -> str:
        """What is there already."""


class Messages:
    """Messages of a round, each with the rank at its other end if there is one."""

    __slots__ = ("_complete", "_tests", "peers", "requests")
    spins = SPINS

    def __init__(
        self, requests: Sequence[MPI.Request], peers: Sequence[int] = ()
    ) -> None:
        self.requests, self.peers = requests, peers
        self._tests, self._complete = [x.Test for x in requests], 0

    def test(self) -> bool:
        """Whether all are complete: a look at the first that was not, and at those
        after it. That takes less time than a look at all."""
        tests, i = self._tests, self._complete
        n = len(tests)
        while i < n and tests[i]():
            i += 1
        self._complete = i if i < n else 0  # for the next call
        return i == n

    def progress(self) -> None:
        """A test lets MPI go on."""

    def _open(self) -> list[int]:
        return [i for i, x in enumerate(self.requests) if not x.Get_status()]

    def missing(self) -> list[int]:
        """The other ends of those that are not complete."""
        found = {self.peers[i] for i in self._open() if i < len(self.peers)}
        return sorted(found - {MPI.PROC_NULL})

    def has(self) -> str:
        """How many are complete."""
        n = len(self.requests)
        return f"{n - len(self._open())} of {n} messages of this round"


def until(
    ready: Callable[[], Any],
    limit: Limit,
    progress: Callable[[], Any] = nothing,
) -> bool:
    """Look until it is so; False where that takes longer than the limit. Whoever waits
    gives way to others, and now and then lets MPI go on."""
    begin = looked = 0.0
    while True:
        for _ in range(LOOKS):
            if ready():
                return True
            _give_way()
        progress()
        now = monotonic()
        begin, looked = begin or now, looked or now
        if now - looked > MOMENT:
            looked = now
            limit.look()
        if limit.seconds is not None and now - begin > limit.seconds:
            return False


def wait(found: Awaited, limit: Limit, number: int = 0) -> None:
    """Wait for what ends a round, by its number; raise `Stalled` where that takes
    longer than the limit."""
    test = found.test
    if test():
        return
    for _ in range(found.spins):
        if test():
            return
    if not until(test, limit, found.progress):
        assert limit.seconds is not None
        error = Stalled(limit.seconds, found.missing(), found.has())
        error.round = number
        raise error
