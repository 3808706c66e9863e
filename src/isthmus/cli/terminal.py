"""The display of a long command on a terminal, and its end by a signal."""

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
    """A turning sign on the terminal.

    A process that measures shows none, since the sign would take processor time from
    the measurement.
    """
    if own_rank() is not None:
        return nullcontext()
    return console.status(words, refresh_per_second=4)


#: between two lines of progress where the output is no terminal
SECONDS_BETWEEN_LINES = 5.0


#: seconds of work, and part of all work, before a guess of the time left
SECONDS_BEFORE_GUESS, PART_BEFORE_GUESS = 2.0, 0.02


def show_time_left(seconds: float) -> str:
    """A duration in few words; coarse, because the duration is a guess."""
    if seconds < 90:
        return f"about {max(5 * round(seconds / 5), 5)} s left"
    if seconds < 5400:
        return f"about {round(seconds / 60)} min left"
    return f"about {round(seconds / 3600)} h left"


class ProgressDisplay:
    """The progress of a command and a guess of the time left.

    On a terminal a bar; otherwise a line for each new step, or, of many steps, a line
    every few seconds.
    """

    def __init__(self, console: Console, has_many_steps: bool = False) -> None:
        self.has_many_steps, self.next_line_at = has_many_steps, perf_counter() + 1.0
        #: time and done part at the first step; the part of an earlier run took no time
        self.first_report: tuple[float, float] | None = None
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
        self.last_words = ""

    def __call__(self, words: str, done: float) -> None:
        """Show a step, and the done part of all work, from 0 to 1."""
        if time_left := self._time_left(done):
            words = f"{words}, {time_left}"
        if self.bar is not None:
            self.bar.update(self.task, description=words, completed=done)
        elif words != self.last_words and (
            not self.has_many_steps or perf_counter() > self.next_line_at
        ):
            print(f"{done:4.0%}  {words}", file=sys.stderr, flush=True)
            self.next_line_at = perf_counter() + SECONDS_BETWEEN_LINES
        self.last_words = words

    def _time_left(self, done: float) -> str:
        """The time for the rest at the pace until now."""
        now = perf_counter()
        if self.first_report is None:
            self.first_report = now, done
            return ""
        spent, part = now - self.first_report[0], done - self.first_report[1]
        if done >= 1 or spent < SECONDS_BEFORE_GUESS or part < PART_BEFORE_GUESS:
            return ""
        return show_time_left(spent * (1 - done) / part)

    def __enter__(self) -> ProgressDisplay:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()


def _end(number: int, frame: object) -> None:
    """End the process in order; otherwise a second signal could interrupt the end."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Let a signal that ends a process first end all that the process started.

    A process that an mpiexec started is left alone: mpiexec ends its own processes.
    """
    kinds = (signal.SIGTERM, signal.SIGHUP) if own_rank() is None else ()
    before = [signal.signal(kind, _end) for kind in kinds]
    try:
        yield
    finally:
        for kind, old in zip(kinds, before, strict=True):
            signal.signal(kind, old)
