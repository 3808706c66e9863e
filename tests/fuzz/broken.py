"""An exception at any line of a call: memory that cannot be had, or a signal.

A trace function counts the lines that a call runs inside of isthmus and raises at one
of them, on one rank. Nobody can say what must come of that call. What must hold is that
nobody gets wrong data, that nobody waits longer than the limit, and that the rank is
not a call behind: when it tries again at once, with the same data, either that is the
call that the others wait in, or it is refused without delay.
"""

from __future__ import annotations

import linecache
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

import isthmus

from . import places
from .places import Place
from .series import FaultError, Options, Series
from .transfers import transfer

if TYPE_CHECKING:
    from .modes import Stage

#: seconds that the rank whose call is broken waits, and the others; and those in which
#: a refused call must raise
LIMIT_SECONDS, OTHERS_SECONDS, REFUSED_SECONDS = 4.0, 6.0, 2.0
_RUNTIME = str(Path(isthmus.__file__).parent / "mpi")
_ALLOCATES = re.compile(
    r"\.empty|\.zeros|\.full|concatenate|bytearray|memoryview|\.tobytes|Create_|"
    r"\[.* for |list\(|tuple\(|Plan\(|Operation\(|Request\(|\{.*:"
)
#: a line that Python traces once more where its block ends, before what it entered is
#: left: an error there would leave a lock locked, which no signal and no lack of memory
#: does
_WITH = re.compile(r"\s*with ")


class InjectedError(MemoryError):
    """The error of the fuzz's own."""


@dataclass
class Injection:
    """Counts the lines that run inside of isthmus, and raises at one of them."""

    #: the line that raises, by its number; 0 for none
    at: int = 0
    #: whether a signal comes there, and whether only lines that allocate count
    is_signal: bool = False
    allocates: bool = False
    lines: int = 0
    where: str = ""

    def run(self, call: Callable[[], Any]) -> None:
        """Make a call under this injection."""
        sys.settrace(self._enter)
        try:
            call()
        finally:
            sys.settrace(None)

    def _enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not frame.f_code.co_filename.startswith(_RUNTIME):
            return None
        return self._line

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event != "line" or self.where:
            return self._line
        file, line = frame.f_code.co_filename, frame.f_lineno
        text = linecache.getline(file, line)
        if _WITH.match(text) or (self.allocates and not _ALLOCATES.search(text)):
            return self._line
        self.lines += 1
        if self.lines == self.at:
            self.where = f"{file[len(_RUNTIME) + 1 :]}:{line}"
            sys.settrace(None)
            if self.is_signal:
                signal.raise_signal(signal.SIGINT)
            else:
                raise InjectedError(self.where)
        return self._line


@dataclass
class _Seen:
    """What became of one call on one rank."""

    error: str
    fault: str
    seconds: float
    #: the injected error was raised although all data had come
    was_complete: bool = False


def broken_calls(stage: Stage) -> None:
    """Break a call on one rank, and see what the next one does on all."""
    for part in range(2):
        # of its own, as a rank that is alone in its group draws nothing more
        half = type(stage).of(stage.world, stage.seed, 100 + part)
        half.now = stage.now
        place = places.draw(half.rng, half.world, "bbi")
        if place.ranks > 1:
            place.comm.timeout = LIMIT_SECONDS
            _break_one(half, place)
        # a communicator that was left in the middle of a call is not freed: to free it
        # may wait for what never comes


def _break_one(stage: Stage, place: Place) -> None:
    form = str(stage.rng.choice(["blocking", "blocking", "nonblocking", "persistent"]))
    if not stage.is_multiple:
        form = "blocking"
    options = Options(stage.level, 0.0, 0.0, operations=_OURS, forms=(form,))
    series = Series(place, stage.rng, stage.alone, options)
    if series.algorithm == "native":
        series.algorithm = None
    stage.now[threading.get_ident()] = series
    warm = int(stage.rng.integers(3))
    odd = int(stage.rng.integers(1 << 20)) % place.ranks
    position = place.group.me
    for turn in range(warm):
        series.start(turn).end(0)
    counting = Injection(allocates=bool(stage.rng.random() < 0.5))
    _Call(series, warm).make(counting)
    if not stage.rng.random() < 0.5:  # what is kept for the call is not there
        sizes = {"equal": "some", "some": "equal", "zeros": "long", "long": "zeros"}
        size = sizes.get(series.drawn.size, series.drawn.size)
        series.drawn = type(series.drawn)(**{**vars(series.drawn), "size": size})
    at = 1 + int(stage.rng.random() * counting.lines)
    is_signal = bool(stage.rng.random() < 0.5) and not counting.allocates
    injection = None
    if position == odd:
        injection = Injection(at, is_signal, counting.allocates)
    else:
        place.comm.timeout = OTHERS_SECONDS
    one = _Call(series, warm + 1)
    calls = [one.make(injection)]
    if injection is not None and calls[0].error:
        # at once, and with the same data: where nothing was said, this is the call that
        # the others are waiting in
        calls.append(one.make(None))
    where = injection.where if injection else ""
    rows = place.everyone.allgather((calls, where))
    last: list[_Seen] = []
    # without threads nobody hears in the MPI library's own call that a rank refuses it
    if stage.is_multiple or not any(row[-1].error for row, _ in rows):
        last = place.everyone.allgather(_Call(series, warm + 1).make(None))
    wheres = " ".join(x for _, x in rows)
    kind = "SIGINT" if is_signal else "MemoryError"
    series.now = f"{kind} on rank {odd} at {wheres}, {form} {series}"
    wrong = _judged([x for x, _ in rows], last, odd)
    if wrong:
        raise FaultError(f"{series.now}: {wrong}")


_OURS = (
    "Allgather",
    "Allgatherv",
    "Allreduce",
    "Alltoall",
    "Alltoallv",
    "Reduce_scatter",
)


class _Call:
    """A call with its data, made once, or again where it has failed.

    A persistent call that was set up is started again: to set it up again would be
    another call, which the other ranks do not make. Where an error has ended the wait,
    the call may go on, and is waited for again.
    """

    def __init__(self, series: Series, turn: int) -> None:
        mine = transfer(series.place.group, series.drawn, turn)
        self.series = series
        self.args, self.buffers = series.arguments(mine)
        self._persistent: MPI.Prequest | None = None
        self._interrupted: MPI.Request | None = None

    def make(self, injection: Injection | None) -> _Seen:
        """Make the call, whatever comes of it."""
        begin, error = time.monotonic(), ""
        try:
            if injection is None:
                self._go()
            else:
                injection.run(self._go)
        except BaseException as raised:
            error = f"{type(raised).__name__}: {str(raised)[:200]}"
        seconds = time.monotonic() - begin
        fault = "".join(x.fault() for x in self.buffers)
        return _Seen(error, "" if error else fault, seconds, bool(error) and not fault)

    def _go(self) -> None:
        request, self._interrupted = self._interrupted or self._begun(), None
        try:
            if request is not None:
                request.Wait()
        except BaseException:
            self._interrupted = request
            raise

    def _begun(self) -> MPI.Request | None:
        """The request of the call; None if it is blocking."""
        series = self.series
        if series.form != "persistent":
            return series.make(series.form, self.args, series.algorithm)
        if self._persistent is None:
            self._persistent = series.set_up(self.args, series.algorithm)
        self._persistent.Start()
        return self._persistent


def _judged(calls: list[list[_Seen]], last: list[_Seen], odd: int) -> str:
    """What is wrong with a call that was broken, and the one after it, if there is."""
    for rank, row in enumerate(calls):
        for k, one in enumerate([*row, *last[rank : rank + 1]]):
            if one.fault:
                return f"rank {rank} has wrong data in call {k}: {one.fault}"
            if one.seconds > 2 * OTHERS_SECONDS:
                return f"rank {rank} took {one.seconds:.1f} s in call {k}: {one.error}"
    broken, *again = calls[odd]
    errors = {i: row[0].error for i, row in enumerate(calls) if row[0].error}
    later = {i: x.error for i, x in enumerate(last) if x.error}
    if broken.was_complete:
        return ""  # the call was over: what comes next is another one
    if not again or not again[0].error:
        others = {i: x for i, x in errors.items() if i != odd}
        if others or later:
            how = "its call well" if not again else "well when it tried again"
            return f"rank {odd} ended {how}, others raise {others}, then {later}"
        return ""
    if again[0].seconds > REFUSED_SECONDS:
        return (
            f"rank {odd} is a call behind: when it tried again, it took "
            f"{again[0].seconds:.1f} s: {again[0].error}; others: {errors}"
        )
    if last and odd not in later:
        return f"rank {odd} was refused, and then not: {again[0].error}"
    return ""
