"""The readers of arguments, by operation, and the forms of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ..plan.task import Task

#: from a context, an algorithm, a form, and the arguments of an operation to a task
Reader: TypeAlias = Callable[..., Task]


class Readers(dict[str, Reader]):
    """The readers of one kind of communicator, by MPI's names of the operations."""

    def reads(self, operation: str) -> Callable[[Reader], Reader]:
        """Register the decorated function as the reader of an operation."""

        def register(reader: Reader) -> Reader:
            self[operation] = reader
            return reader

        return register


BLOCKING, NONBLOCKING, PERSISTENT = "blocking", "nonblocking", "persistent"
#: a call that is a part of another call, and never left to the MPI library
INTERNAL = "internal"
