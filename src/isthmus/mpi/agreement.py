"""What ranks told each other, so that they need not tell all of it in every call."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mpi4py import MPI

from .context import PLANS
from .flags import Flags
from .ready import Ready

#: a call that was made so often in a row is expected to be made again
OFTEN = 4


@dataclass(frozen=True, slots=True)
class Kept:
    """A call that depends on what others say: the number of their answer, what does it
    by that, step by step, and what a rank does instead so that others who make it can
    end."""

    number: int
    steps: tuple[Callable[[], Any], ...]
    stand_in: Callable[[], Any] | None = None


class Agreement:
    """The answers that ranks of a communicator were given, by number.

    All of them ask at the same time, and an answer means the same to all; so it has the
    same number everywhere, and to compare numbers is to compare answers.

    Where a call has a stand-in and was made often in a row, all expect it again, and
    compare while they do it: who makes another then says so, and does the stand-in.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.comm = comm
        self._numbers: dict[Any, int] = {}
        self._given = 0
        self.flags = Flags(comm)
        #: by the number of an answer, a request that does such calls; None has none
        self.ready: dict[int, Ready | None] = {}
        #: the number of the call that is expected, if any
        self.expected = 0
        self._stand_in: Callable[[], Any] = int
        self._last, self._times = 0, 0

    def number(self, answer: Any) -> int:
        """The number of an answer that all of them were just given."""
        if answer not in self._numbers:
            self._given += 1
            self._numbers[answer] = self._given
            if len(self._numbers) > PLANS:
                self._numbers.pop(next(iter(self._numbers)))
        return self._numbers[answer]

    @cached_property
    def _rounds(self) -> list[tuple[Any, ...]]:
        """Dissemination: after each round a rank speaks for twice as many."""
        comm, rounds = self.comm, []
        n, me = comm.Get_size(), comm.Get_rank()
        for k in range((n - 1).bit_length()):
            told, heard = array("q", [0]), array("q", [0])
            send = comm.Send_init(told, (me + (1 << k)) % n, tag=0)
            recv = comm.Recv_init(heard, (me - (1 << k)) % n, tag=0)
            rounds.append((told, heard, send, recv))
        return rounds

    def same(self, number: int) -> bool:
        """Whether all of them expect the answer of this number; 0 expects none."""
        for told, heard, send, recv in self._rounds:
            told[0] = number
            recv.Start()
            send.Start()
            recv.Wait()
            if heard[0] != number:
                number = 0
            send.Wait()
        return number > 0

    def made(self, kept: Kept) -> None:
        """All of them made this call, and know that."""
        self._times = self._times + 1 if kept.number == self._last else 1
        self._last = kept.number
        if kept.stand_in and self._times >= OFTEN and self.flags.ready():
            self.expected, self._stand_in = kept.number, kept.stand_in

    def refuse(self) -> None:
        """Tell them that this rank does not make the call that they expect, if any."""
        if self.expected:
            self.flags.say_no()
            self._stand_in()
            self.surprised()

    def surprised(self) -> None:
        """Someone did not make the call that was expected: none is, from now on."""
        self.expected = self._last = 0

    def free(self) -> None:
        """Give the requests and the memory back."""
        self.flags.free()
        for ready in self.ready.values():
            if ready is not None:
                ready.request.Free()
        self.ready.clear()
        for *_, send, recv in self.__dict__.pop("_rounds", ()):
            send.Free()
            recv.Free()


def as_before(
    among: Agreement, ask: Callable[[], Kept | None], kept: Kept
) -> Callable[[], None]:
    """What does a call that depends on what others say, by what they said the last
    time."""
    number, steps = kept.number, kept.steps
    flags, turns = among.flags, among.flags.turns

    def do() -> None:
        # in one function, as each that is called shows where processes share cores
        if among.expected == number:
            mine, yes, row, all_yes = next(turns)
            raised = flags.raised
            raised[mine] = yes
            for step in steps:
                step()
            if raised[row] == all_yes or flags.all_do(row, all_yes):
                return
            among.surprised()
        compare()

    def compare() -> None:
        """Do it as before if everyone does; else ask, and do it by what they say."""
        nonlocal kept, number, steps
        among.refuse()
        if among.same(number):
            for step in steps:
                step()
            among.made(kept)
        else:
            kept = ask() or kept
            number, steps = kept.number, kept.steps

    return do
