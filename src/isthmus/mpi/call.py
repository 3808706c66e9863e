"""The arguments of a call: checked, shared with the other ranks where asked, keyed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from mpi4py import MPI

from . import buffers
from .buffers import Message
from .check import agree, share
from .context import Context

_memory = MPI.memory
_ndarray = np.ndarray


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
        known(name, True)
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


def _part(x: Any) -> Any:
    """Counts, displacements or a type, as a value that can be compared."""
    kind = type(x)
    if kind is list:
        return tuple(x)
    if kind is tuple:
        return tuple, *map(_part, x)
    if kind is _ndarray:
        return x.dtype, x.tobytes()
    if isinstance(x, MPI.Datatype):
        if not x.is_predefined:  # when freed, its handle may come to mean another type
            raise LookupError
        return x.handle
    return x


def _spec(spec: Any) -> Any:
    """What a buffer specification says, as a value; `LookupError` where that is not
    known to be all it says."""
    if type(spec) is _ndarray:
        m = _memory(spec)
        return m.address, m.nbytes, m.readonly, spec.dtype
    if spec is MPI.IN_PLACE or spec is None:
        return ("in place",)
    if type(spec) is int:  # a root
        return (spec,)
    if type(spec) is list:
        return *_spec(spec[0]), *[_part(x) for x in spec[1:]]
    raise LookupError


def call_key(op: str, sendbuf: Any, recvbuf: Any, algorithm: str | None) -> Any:
    """What a call's plan depends on; None where it must be made anew.

    Addresses are compared, not objects: a plan holds on to no buffer of the user's.
    """
    if type(sendbuf) is _ndarray and type(recvbuf) is _ndarray:
        s, r = _memory(sendbuf), _memory(recvbuf)
        return (
            op,
            s.address,
            s.nbytes,
            sendbuf.dtype,
            r.address,
            r.nbytes,
            r.readonly,
            recvbuf.dtype,
            algorithm,
        )
    try:
        return op, _spec(sendbuf), _spec(recvbuf), algorithm
    except LookupError:
        return None
