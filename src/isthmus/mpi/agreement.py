"""What ranks told each other, so that they need not tell all of it in every call."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from mpi4py import MPI

from .board import NOTHING, Board, Refuse, Ways, board
from .context import PLANS


@dataclass(frozen=True, slots=True)
class Kept:
    """A call that depends on what others say: the number of their answer, and what does
    it by that."""

    number: int
    ways: Ways


class Agreement:
    """The answers that ranks of a communicator were given, by number.

    All of them ask at the same time, and an answer means the same to all; so it has the
    same number everywhere, and to compare numbers is to compare answers. On one node
    they are compared in memory that all share, else in messages.
    """

    def __init__(
        self, comm: MPI.Intracomm, one_node: bool = False, *refuse: Refuse
    ) -> None:
        self.comm, self._one_node, self._refuse = comm, one_node, refuse
        self._numbers: dict[Any, int] = {}
        self._given = 0

    @cached_property
    def board(self) -> Board | None:
        """The memory that all share, if they do; made when all first compare."""
        if not self._one_node:
            return None
        try:
            return board(self.comm, *self._refuse)
        except BaseException as error:
            for refuse in self._refuse:
                refuse(self.comm.Get_rank(), error)
            raise

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

    def same(self, number: int, ways: Ways = NOTHING) -> bool:
        """Whether all of them expect the answer of this number, and then do what they
        do by it; 0 expects none."""
        return self.doing(Kept(number, ways))() and number > 0

    def doing(self, kept: Kept) -> Callable[[], bool]:
        """What does a call if all of them make it, and says whether they do."""
        if self.board is None:
            return partial(self._by_messages, kept)
        return partial(self.board.turn, kept.ways, self.board.said(kept.number))

    def _by_messages(self, kept: Kept) -> bool:
        number = kept.number
        for told, heard, send, recv in self._rounds:
            told[0] = number
            recv.Start()
            send.Start()
            recv.Wait()
            if heard[0] != number:
                number = 0
            send.Wait()
        if number:
            for step in kept.ways[0][1]:
                step()
        return number > 0

    def free(self) -> None:
        """Give the requests and the memory back."""
        if (found := self.__dict__.pop("board", None)) is not None:
            found.free()
        for *_, send, recv in self.__dict__.pop("_rounds", ()):
            send.Free()
            recv.Free()


def as_before(
    among: Agreement, ask: Callable[[], Kept | None], kept: Kept
) -> Callable[[], None]:
    """What does a call that depends on what others say: as before, if they all make
    that call, else it asks, and does it by what they say."""
    same = among.doing(kept)

    def do() -> None:
        nonlocal same
        if not same():
            same = among.doing(ask() or kept)

    return do
