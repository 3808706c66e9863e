"""Communicators made from those of isthmus: of isthmus as well, not of mpi4py."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from mpi4py import MPI

from ..context.attribute import release

Class = TypeVar("Class", bound=type)

#: the class of isthmus for each class of mpi4py. A table that `extends` fills, since
#: each of the two classes makes communicators of the other, and neither file can import
#: the other one first
_classes: dict[type, Any] = {}


def as_isthmus(comm: Any) -> Any:
    """The communicator in the class of isthmus, if there is a class for its type."""
    isthmus_class = _classes.get(type(comm))
    return comm if isthmus_class is None else isthmus_class(comm)


def extends(base: type, *names: str) -> Callable[[Class], Class]:
    """A class decorator: the named methods of mpi4py's class return communicators of
    isthmus.

    The decorated class becomes the class of isthmus for communicators of `base`.
    """

    def decorate(cls: Class) -> Class:
        _classes[base] = cls
        for name in names:
            native = getattr(base, name, None)
            if native is not None:
                is_class_method = getattr(native, "__self__", None) is base
                wrap = _wrap_class_method if is_class_method else _wrap_method
                setattr(cls, name, wrap(native))
        return cls

    return decorate


def _wrap_method(native: Any) -> Any:
    @wraps(native)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return as_isthmus(native(self, *args, **kwargs))

    return method


def _wrap_class_method(native: Any) -> Any:
    @wraps(native)
    def method(cls: Any, *args: Any, **kwargs: Any) -> Any:
        return as_isthmus(native(*args, **kwargs))

    return classmethod(method)


#: the methods of all communicators that return communicators
COMM_CONSTRUCTORS = (
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
#: the names of communicators that mean the same in every process
_CONSTANTS = "COMM_NULL", "COMM_WORLD", "COMM_SELF"


class Comm:
    """The methods besides collectives that all communicators of isthmus share."""

    def Free(self) -> None:
        """Free the context of the communicator, and the communicator."""
        release(cast("MPI.Comm", self))
        super().Free()  # type: ignore[misc]

    def Disconnect(self) -> None:
        """Free the context of the communicator, and disconnect."""
        release(cast("MPI.Comm", self))
        super().Disconnect()  # type: ignore[misc]

    def free(self) -> None:
        """Call `Free`; only the view becomes null if the communicator is MPI's own.

        MPI's own communicators are not freed, as in mpi4py.
        """
        if self in (MPI.COMM_NULL, MPI.COMM_WORLD, MPI.COMM_SELF):
            super().free()  # type: ignore[misc]
        else:
            self.Free()

    def __reduce__(self) -> tuple[Any, ...]:
        """The pickled form of MPI's own communicators, by name; an error for others,
        since no other handle has a meaning in another process.

        Not mpi4py's form, a name under which pickle expects mpi4py's own object, since
        a view is a different object.
        """
        for name in _CONSTANTS:
            constant = getattr(MPI, name)
            if self == constant:
                return _constant, (name, None if self is constant else type(self))
        raise ValueError(f"cannot serialize {type(self).__name__!r} instance")


def _constant(name: str, cls: Any) -> Any:
    """A communicator of MPI's own, or a view of class `cls`."""
    comm = getattr(MPI, name)
    return comm if cls is None else cls(comm)
