"""Operators of MPI on ranges of memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from mpi4py import MPI

from . import memory
from .buffers import Message, is_dense
from .memory import Given, Piece

#: so many elements are combined by one call at most
CHUNK = 1 << 30


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator and the type of what it combines; an element takes `unit` bytes."""

    op: MPI.Op
    datatype: MPI.Datatype
    unit: int

    @property
    def name(self) -> str:
        """In words: one of MPI's own, or what is known of a user's."""
        if self.op.is_predefined:
            return next(x for x, op in vars(MPI).items() if op == self.op)
        order = "a commutative" if self.op.is_commutative else "an ordered"
        return f"{order} operator of the user"

    @property
    def is_plain(self) -> bool:
        """Whether MPI knows the operator, and elements lie in memory as they travel."""
        return bool(self.op.is_predefined) and is_dense(self.datatype)

    def step(self, src: Piece, dst: Piece) -> Callable[[], None]:
        """A function that does dst := src (op) dst."""
        count = dst[1] // self.unit
        if count <= CHUNK:
            return partial(self.op.Reduce_local, *self._specs(src[0], dst[0], count))
        parts = [
            self._specs(src[0] + at * self.unit, dst[0] + at * self.unit, n)
            for at in range(0, count, CHUNK)
            for n in [min(CHUNK, count - at)]
        ]

        def combine() -> None:
            for part in parts:
                self.op.Reduce_local(*part)

        return combine

    def given_step(
        self, given: Given, src: Piece, dst: Piece, frm: str, to: str
    ) -> Callable[[], None]:
        """As `step`, between memory and the buffers of a call, by their names."""
        n, combine, datatype = dst[1], self.op.Reduce_local, self.datatype

        def end(name: str, at: int) -> Any:
            return getattr(given, name)[at : at + n] if name else memory.buffer(at, n)

        def step() -> None:
            combine([end(frm, src[0]), datatype], [end(to, dst[0]), datatype])

        return step

    def _specs(self, src: int, dst: int, count: int) -> list[list[object]]:
        return [[memory.buffer(x), count, self.datatype] for x in (src, dst)]


def operator(op: MPI.Op, message: Message) -> Operator:
    """The operator for a message, if it is defined for its type."""
    if not isinstance(op, MPI.Op):
        raise TypeError(f"{op!r} is no operator of MPI")
    if op in (MPI.OP_NULL, MPI.REPLACE, MPI.NO_OP):
        raise ValueError(f"{_called(op)} does not combine two values")
    datatype = message.datatype
    if datatype.Get_true_extent()[0] < 0:
        raise ValueError("message: elements that begin before their place")
    known = not op.is_predefined or (
        datatype.is_predefined and _defined(op.handle, datatype.handle)
    )
    if not known:
        raise ValueError(f"{_called(op)} is not defined for {_called(datatype)}")
    return Operator(op, datatype, datatype.Get_extent()[1])


def _called(x: MPI.Op | MPI.Datatype) -> str:
    """The name of what MPI defines."""
    return str(x.__reduce__()) if x.is_predefined else "a derived type"


@cache
def _defined(op: int, datatype: int) -> bool:
    """Whether MPI can combine two elements of a type."""
    kind = MPI.Datatype.fromhandle(datatype)
    rooms = [bytearray(max(kind.Get_extent()[1], 1)) for _ in range(2)]
    try:
        MPI.Op.fromhandle(op).Reduce_local(*([room, 1, kind] for room in rooms))
    except MPI.Exception:
        return False
    return True
