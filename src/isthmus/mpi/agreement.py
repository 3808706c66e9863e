"""What ranks told each other, so that they need not tell all of it in every call."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import cached_property
from typing import Any

from mpi4py import MPI

from .context import PLANS

#: the number of an answer, and what does a call by it
Kept = tuple[int, Callable[[], Any]]


class Agreement:
    """The answers that ranks of a communicator were given, by number.

    All of them ask at the same time, and an answer means the same to all; so it has the
    same number everywhere, and to compare numbers is to compare answers.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.comm = comm
        self._numbers: dict[Any, int] = {}
        self._given = 0

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

    def free(self) -> None:
        """Give the requests back."""
        for *_, send, recv in self.__dict__.pop("_rounds", ()):
            send.Free()
            recv.Free()


class AsBefore:
    """A call that depends on what others say, by what they said the last time."""

    def __init__(
        self, agreement: Agreement, ask: Callable[[], Kept | None], kept: Kept
    ) -> None:
        self._same, self._ask, self._kept = agreement.same, ask, kept

    def __call__(self) -> None:
        """Do it as before if everyone does; else ask, and do it by what they say."""
        number, run = self._kept
        if self._same(number):
            run()
        else:
            self._kept = self._ask() or self._kept
