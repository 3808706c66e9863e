"""What a person sees while something takes its time, and how it is ended."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeElapsedColumn

from ..launch.mpiexec import own_rank


def busy(console: Console, words: str) -> AbstractContextManager[Any]:
    """A turning sign; none in a process that measures, since it would take its time."""
    if own_rank() is not None:
        return nullcontext()
    return console.status(words, refresh_per_second=4)


#: seconds between two lines where there is no terminal
OFTEN = 5.0


#: seconds of work, and part of all of it, before a guess of how long the rest takes
SECONDS_BEFORE_GUESS, PART_BEFORE_GUESS = 2.0, 0.02


def show_left(seconds: float) -> str:
    """About how long something still takes: one of few words, as it is a guess."""
    if seconds < 90:
        return f"about {max(5 * round(seconds / 5), 5)} s left"
    if seconds < 5400:
        return f"about {round(seconds / 60)} min left"
    return f"about {round(seconds / 3600)} h left"


class Steps:
    """How far something is and how long it may take: a bar on a terminal, else a line
    for each new step; of what has many steps, a line every few seconds."""

    def __init__(self, console: Console, many: bool = False) -> None:
        self.many, self.next = many, perf_counter() + 1.0
        #: when the first step was told, and how much was done then: what is kept of an
        #: earlier run took no time
        self.first: tuple[float, float] | None = None
        columns = BarColumn(), TaskProgressColumn(), "{task.description}"
        self.bar: Progress | None = None
        if console.is_terminal and own_rank() is None:
            self.bar = Progress(
                *columns,
                TimeElapsedColumn(),
                console=console,
                transient=True,
                refresh_per_second=4,
            )
            self.task = self.bar.add_task("starting", total=1.0)
        self.last = ""

    def __call__(self, words: str, done: float) -> None:
        """So much of all is done, from 0 to 1."""
        if left := self._left(done):
            words = f"{words}, {left}"
        if self.bar is not None:
            self.bar.update(self.task, description=words, completed=done)
        elif words != self.last and (not self.many or perf_counter() > self.next):
            print(f"{done:4.0%}  {words}", file=sys.stderr, flush=True)
            self.next = perf_counter() + OFTEN
        self.last = words

    def _left(self, done: float) -> str:
        """How long the rest takes, if it goes on as until now."""
        now = perf_counter()
        if self.first is None:
            self.first = now, done
            return ""
        spent, part = now - self.first[0], done - self.first[1]
        if done >= 1 or spent < SECONDS_BEFORE_GUESS or part < PART_BEFORE_GUESS:
            return ""
        return show_left(spent * (1 - done) / part)

    def __enter__(self) -> Steps:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()


def _end(number: int, frame: object) -> None:
    """End this process in order; a second signal does not disturb that."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Let signals that end a process first end what it has started.

    Not in a process that an mpiexec started: that is for mpiexec to end.
    """
    kinds = (signal.SIGTERM, signal.SIGHUP) if own_rank() is None else ()
    before = [signal.signal(kind, _end) for kind in kinds]
    try:
        yield
    finally:
        for kind, old in zip(kinds, before, strict=True):
            signal.signal(kind, old)
