"""Operators of MPI on the elements of a buffer, checked before a call."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from mpi4py import MPI

from .user_buffer import UserBuffer


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator, with the datatype and the extent in bytes of the elements."""

    op: MPI.Op
    datatype: MPI.Datatype
    extent: int

    @property
    def name(self) -> str:
        """The name of a predefined operator, or a description of a user's."""
        if self.op.is_predefined:
            return next(name for name, op in vars(MPI).items() if op == self.op)
        order = "a commutative" if self.op.is_commutative else "an ordered"
        return f"{order} operator of the user"


def operator_for(op: MPI.Op, buffer: UserBuffer) -> Operator:
    """The operator for the elements of a buffer.

    An operator that MPI does not define for the type raises an error before the call,
    since an error of MPI in the middle would leave the communicator refused.
    """
    if not isinstance(op, MPI.Op):
        raise TypeError(f"{op!r} is no operator of MPI")
    if op in (MPI.OP_NULL, MPI.REPLACE, MPI.NO_OP):
        raise ValueError(f"{_name(op)} does not combine two values")
    datatype = buffer.datatype
    if datatype.Get_true_extent()[0] < 0:
        raise ValueError("message: elements that begin before their place")
    is_defined = not op.is_predefined or (
        datatype.is_predefined and _is_defined(op.handle, datatype.handle)
    )
    if not is_defined:
        raise ValueError(f"{_name(op)} is not defined for {_name(datatype)}")
    return Operator(op, datatype, datatype.Get_extent()[1])


def _name(handle: MPI.Op | MPI.Datatype) -> str:
    """The name of an operator or datatype that MPI predefines."""
    return str(handle.__reduce__()) if handle.is_predefined else "a derived type"


@cache
def _is_defined(op: int, datatype: int) -> bool:
    """Whether MPI can combine two elements of a predefined type."""
    kind = MPI.Datatype.fromhandle(datatype)
    elements = [bytearray(max(kind.Get_extent()[1], 1)) for _ in range(2)]
    try:
        MPI.Op.fromhandle(op).Reduce_local(*([x, 1, kind] for x in elements))
    except MPI.Exception:
        return False
    return True
