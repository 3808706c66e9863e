"""The arguments of a call: checked, and compared with other ranks' where asked."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

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
        return dict(zip(self.context.senders, self.recv.nbytes, strict=True))

    @property
    def root(self) -> None:
        """There is none."""


class Checkable(Protocol):
    """Arguments that other ranks can compare with theirs."""

    @property
    def sent(self) -> int | dict[int, int]:
        """The bytes this rank contributes, to everyone or to each."""

    @property
    def expected(self) -> dict[int, int]:
        """The bytes that are expected from each rank."""

    @property
    def root(self) -> int | None:
        """The number of the root, if this rank names one."""


Arguments = TypeVar("Arguments", bound=Checkable)
Value = TypeVar("Value")


def checked(
    context: Context, op: str, name: str, parse: Callable[[], Arguments]
) -> Arguments:
    """The call, once it is known to be right; in the checked mode, on every rank."""
    call = _read(context, op, parse)
    if context.checked:
        agree(context, op, name, call.sent, call.expected, call.root)
    return call


def checked_value(
    context: Context, op: str, name: str, parse: Callable[[], Value]
) -> Value:
    """As `checked`, of a call that has nothing but its algorithm to agree on."""
    found = _read(context, op, parse)
    if context.checked:
        agree(context, op, name, 0, {})
    return found


def _read(context: Context, op: str, parse: Callable[[], Value]) -> Value:
    """The arguments; in the checked mode, what is wrong with them on all ranks."""
    try:
        return parse()
    except BaseException as error:
        if context.checked and not context.refused:
            share(context, op, error)
        raise


def check_disjoint(send: Message, recv: Message, hint: str = "") -> None:
    """What is sent must not be overwritten while it is being sent."""
    if not (buffers.is_dense(send.datatype) and buffers.is_dense(recv.datatype)):
        return
    arriving = sorted(_ranges(recv))
    for start, end in _ranges(send):
        i = bisect_left(arriving, (end, 0)) - 1
        if i >= 0 and arriving[i][1] > start:
            raise ValueError(f"message: send and receive buffers overlap{hint}")


def _ranges(message: Message) -> list[tuple[int, int]]:
    """First and last address of every block that is not empty."""
    starts = [message.base + displ for displ in message.displs]
    return [(x, x + n) for x, n in zip(starts, message.nbytes, strict=True) if n]
