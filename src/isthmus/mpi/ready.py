"""A request of the MPI library's that is ready for any buffers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mpi4py import MPI

from . import memory
from .buffers import Message
from .memory import Piece


@dataclass(frozen=True, slots=True)
class Ready:
    """A persistent request in memory of its own: what is sent is copied there, and what
    was received from there. Open MPI's persistent sums take so much less time than its
    blocking ones."""

    request: MPI.Prequest
    send: Message
    recv: Message

    def run(self) -> None:
        """Do it, with whatever is there."""
        self.request.Start()
        self.request.Wait()

    def bound(self, send: Message, recv: Message) -> tuple[Callable[[], Any], ...]:
        """The steps that do it for these buffers."""
        give = memory.copier(_pieces(send), _pieces(self.send))
        take = memory.copier(_pieces(self.recv), _pieces(recv))
        return give, self.request.Start, self.request.Wait, take


def _pieces(message: Message) -> list[Piece]:
    """Where elements without gaps lie."""
    view = memory.message_view(message)
    assert view is not None
    return view.pieces(0, view.nbytes)
