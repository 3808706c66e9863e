"""The arguments of a call: checked, and compared with other ranks' where asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from . import buffers
from .buffers import Message
from .check import agree, share
from .context import Context


@dataclass(frozen=True, slots=True)
class Call:
    """What a rank passed to Allgather (v false) or Allgatherv (v true).

    `send` is None where its contribution is already in its place.
    """

    context: Context
    name: str
    send: Message | None
    recv: Message
    v: bool

    @property
    def sent(self) -> int:
        """The bytes this rank contributes."""
        if self.send is None:
            return self.recv.nbytes[self.context.index]
        return sum(self.send.nbytes)

    @property
    def expected(self) -> dict[int, int]:
        """The bytes that are expected from each rank."""
        c = self.context
        return dict(zip(c.senders(c.number), self.recv.nbytes, strict=True))


class Checkable(Protocol):
    """Arguments that other ranks can compare with theirs."""

    @property
    def sent(self) -> int:
        """The bytes this rank contributes."""

    @property
    def expected(self) -> dict[int, int]:
        """The bytes that are expected from each rank."""


Arguments = TypeVar("Arguments", bound=Checkable)


def checked(
    context: Context, op: str, name: str, parse: Callable[[], Arguments]
) -> Arguments:
    """The call, once it is known to be right; in the checked mode, on every rank."""
    try:
        call = parse()
    except (TypeError, ValueError, KeyError, BufferError) as error:
        if context.checked:
            share(context, op, error)
        raise
    if context.checked:
        agree(context, op, name, call.sent, call.expected)
    return call


def check_name(context: Context, name: str, op: str, known: Callable[..., Any]) -> None:
    """Check an operation that has no argument but its algorithm to agree on."""
    try:
        known(name)
    except ValueError as error:
        if context.checked:
            share(context, op, error)
        raise
    if context.checked:
        agree(context, op, name, 0, {})


def check_disjoint(send: Message, recv: Message, hint: str = "") -> None:
    """What is sent must not be overwritten while it is being sent."""
    if not (buffers.is_dense(send.datatype) and buffers.is_dense(recv.datatype)):
        return
    start = send.base + send.displs[0]
    end = start + send.nbytes[0]
    for at, n in zip(recv.displs, recv.nbytes, strict=True):
        if max(start, recv.base + at) < min(end, recv.base + at + n):
            raise ValueError(f"message: send and receive buffers overlap{hint}")
