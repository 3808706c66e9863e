"""Communicators made from ours are ours, where mpi4py would give its own class."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from mpi4py import MPI

from ..context.attribute import release

Class = TypeVar("Class", bound=type)


#: our class for each of mpi4py's: `making` enters them, since each of the two classes
#: makes communicators of the other, and neither file can import the other one first
_classes: dict[type, Any] = {}


def ours(comm: Any) -> Any:
    """The communicator in our class, if it is of one that we extend."""
    our_class = _classes.get(type(comm))
    return comm if our_class is None else our_class(comm)


def _method(native: Any) -> Any:
    @wraps(native)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return ours(native(self, *args, **kwargs))

    return method


def _class_method(native: Any) -> Any:
    @wraps(native)
    def method(cls: Any, *args: Any, **kwargs: Any) -> Any:
        return ours(native(*args, **kwargs))

    return classmethod(method)


def making(base: type, *names: str) -> Callable[[Class], Class]:
    """A class decorator: the named methods of the base give communicators of ours.

    From then on communicators of the base become communicators of the class.
    """

    def decorate(cls: Class) -> Class:
        _classes[base] = cls
        for name in names:
            native = getattr(base, name, None)
            if native is not None:
                of_class = getattr(native, "__self__", None) is base
                wrap = _class_method if of_class else _method
                setattr(cls, name, wrap(native))
        return cls

    return decorate


#: what every communicator can make
COMMON = (
    "Split",
    "Split_type",
    "Create",
    "Shrink",
    "Get_parent",
    "Join",
    "fromhandle",
    "fromint",
    "f2py",
)


class Comm:
    """What our communicators share."""

    def Free(self) -> None:
        """Free the communicator, and first what is kept for it."""
        release(cast("MPI.Comm", self))
        super().Free()  # type: ignore[misc]

    def Disconnect(self) -> None:
        """Disconnect from the communicator, and first free what is kept for it."""
        release(cast("MPI.Comm", self))
        super().Disconnect()  # type: ignore[misc]

    def free(self) -> None:
        """Call `Free`, or forget which communicator this is if it is null or MPI's own.

        MPI's own communicators are not freed: mpi4py's method makes such a view null.
        """
        if self in (MPI.COMM_NULL, MPI.COMM_WORLD, MPI.COMM_SELF):
            super().free()  # type: ignore[misc]
        else:
            self.Free()

    def __reduce__(self) -> tuple[Any, ...]:
        """What pickle writes: only MPI's own communicators have a meaning elsewhere.

        mpi4py writes a name of its module, under which pickle expects that very object;
        a view is another one.
        """
        for name in _CONSTANTS:
            constant = getattr(MPI, name)
            if self == constant:
                return _constant, (name, None if self is constant else type(self))
        raise ValueError(f"cannot serialize {type(self).__name__!r} instance")


#: the communicators that mean the same in every process
_CONSTANTS = "COMM_NULL", "COMM_WORLD", "COMM_SELF"


def _constant(name: str, cls: Any) -> Any:
    """One of MPI's own communicators, or a view of it."""
    comm = getattr(MPI, name)
    return comm if cls is None else cls(comm)
