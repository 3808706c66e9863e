"""What reads the arguments of an operation, and the forms in which it may be called."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ..plan.task import Task

#: reads the arguments of an operation for a communicator, an algorithm and a form
Reader: TypeAlias = Callable[..., Task]


class Readers(dict[str, Reader]):
    """The readers of one kind of communicator, by MPI's names of the operations."""

    def reads(self, operation: str) -> Callable[[Reader], Reader]:
        """Make the function below the reader of an operation."""

        def register(reader: Reader) -> Reader:
            self[operation] = reader
            return reader

        return register


BLOCKING, NONBLOCKING, PERSISTENT = "blocking", "nonblocking", "persistent"
#: of a call that is a part of another one, and never left to the MPI library
OURS = "ours"
