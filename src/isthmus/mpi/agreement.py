"""What ranks told each other, so that they need not tell all of it in every call."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from mpi4py import MPI

from .context import PLANS

Run = Callable[..., None]


class Agreement:
    """The answers that ranks of a communicator were given, by number.

    All of them ask at the same time, and an answer means the same to all; so it has the
    same number everywhere, and to compare numbers is to compare answers.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.comm = comm
        self._numbers: dict[Any, int] = {}
        self._given = 0
        self._mine, self._others = array("q", (0, 0)), array("q", (0, 0))
        self._requests: list[MPI.Prequest] = []

    def number(self, answer: Any) -> int:
        """The number of an answer that all of them were just given."""
        if answer not in self._numbers:
            self._given += 1
            self._numbers[answer] = self._given
            if len(self._numbers) > PLANS:
                self._numbers.pop(next(iter(self._numbers)))
        return self._numbers[answer]

    @cached_property
    def _compare(self) -> Callable[[], Any]:
        """Learns the other's numbers; where there are more, the largest of each."""
        comm, mine, others = self.comm, self._mine, self._others
        if comm.Get_size() != 2:
            return partial(comm.Allreduce, mine, others, MPI.MAX)
        peer = 1 - comm.Get_rank()
        recv = comm.Recv_init(others, peer, tag=0)
        send = comm.Send_init(mine, peer, tag=0)
        self._requests = [recv, send]

        def swap() -> None:  # in half the time of an Allreduce
            recv.Start()
            send.Start()
            recv.Wait()
            send.Wait()

        return swap

    def same(self, number: int) -> bool:
        """Whether all of them expect the answer of this number; 0 expects none."""
        self._mine[0], self._mine[1] = number, -number
        self._compare()
        most, least = self._others
        return 0 < number == most == -least

    def free(self) -> None:
        """Give the requests back."""
        for request in self._requests:
            request.Free()


class AsBefore:
    """A call that depends on what others say, by what it did when they last said it."""

    def __init__(
        self,
        agreement: Agreement,
        otherwise: Callable[..., tuple[int, Run]],
        number: int,
        run: Run,
    ) -> None:
        self.same, self.otherwise = agreement.same, otherwise
        self.number, self.run = number, run

    def __call__(self, *args: Any) -> None:
        """Do it as before if everyone does; else ask what to do."""
        if self.same(self.number):
            self.run()
        else:
            self.number, self.run = self.otherwise(*args)
