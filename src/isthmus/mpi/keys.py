"""How a call is known again: the last one by its very objects, others by value."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpi4py import MPI

from .plan import Plan

_memory = MPI.memory
_ndarray = np.ndarray


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


@dataclass(slots=True)
class Last:
    """The arguments of a call of arrays, and its plan.

    To compare objects takes a fraction of the time of a key, above all when caches are
    cold. No array is kept alive.
    """

    op: str
    send: Callable[[], Any]
    recv: Callable[[], Any]
    #: the counts that followed the receive buffer, if any did
    counts: list[int] | None
    algorithm: str | None
    plan: Plan

    def is_same(self, op: str, send: Any, recv: Any, algorithm: str | None) -> bool:
        """Whether these are the very same arguments."""
        if send is not self.send() or op != self.op or algorithm != self.algorithm:
            return False
        if self.counts is None:
            return recv is self.recv()
        return (
            type(recv) is list
            and len(recv) == 2
            and recv[0] is self.recv()
            and recv[1] == self.counts
        )


def last_call(
    op: str, send: Any, recv: Any, algorithm: str | None, plan: Plan
) -> Last | None:
    """What to know a call by; None where its buffers are no arrays."""
    array, counts = recv, None
    if type(recv) is list and len(recv) == 2 and type(recv[1]) is list:
        array, counts = recv[0], list(recv[1])
    sent, received = _reference(send), _reference(array)
    if sent is None or received is None:
        return None
    return Last(op, sent, received, counts, algorithm, plan)


def _reference(x: Any) -> Callable[[], Any] | None:
    """What gives an argument back without keeping it alive; none for other buffers
    than arrays, whose memory might move."""
    if x is MPI.IN_PLACE or x is None or type(x) is int:
        return lambda: x
    return weakref.ref(x) if type(x) is _ndarray else None
