"""Gathering to all: the same methods between groups and inside one."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, cast

from mpi4py import MPI

from . import objects
from .call import check_name
from .context import Context, context_of
from .family import Comm
from .keys import call_key


class Gathering(Comm):
    """A communicator with an Allgather of isthmus in all its forms.

    `algorithm` may name one; what a form leaves to the MPI library goes to the class
    behind this one.
    """

    #: forms_inter or forms_intra
    _forms: ClassVar[Any]
    _make: ClassVar[type[Context]]
    #: what is kept for the communicator, once this view has looked it up
    _found: Any = None

    def _context(self) -> Any:
        """What is kept for the communicator, made at the first collective call."""
        if self._found is None or self._found.freed:
            self._found = context_of(cast("MPI.Comm", self), self._make)
        return self._found

    def Allgather(
        self, sendbuf: Any, recvbuf: Any, algorithm: str | None = None
    ) -> None:
        """Gather to All; between groups, everyone receives those of the other one."""
        found = self._found or self._context()
        if not found.again("Allgather", (sendbuf, recvbuf), algorithm):
            self._gather("Allgather", sendbuf, recvbuf, algorithm)

    def Allgatherv(
        self, sendbuf: Any, recvbuf: Any, algorithm: str | None = None
    ) -> None:
        """Gather to All Vector: as Allgather, with blocks of different sizes."""
        found = self._found or self._context()
        if not found.again("Allgatherv", (sendbuf, recvbuf), algorithm):
            self._gather("Allgatherv", sendbuf, recvbuf, algorithm)

    def _gather(
        self, op: str, sendbuf: Any, recvbuf: Any, algorithm: str | None
    ) -> None:
        """A blocking call for which no plan is kept."""
        call = self._forms.prepare(self._context(), sendbuf, recvbuf, algorithm, op)
        if call.name == "native":
            getattr(super(), op)(sendbuf, recvbuf)
        else:
            key = call_key(op, (sendbuf, recvbuf), algorithm)
            self._forms.blocking(call, key)

    def Iallgather(
        self, sendbuf: Any, recvbuf: Any, algorithm: str | None = None
    ) -> MPI.Request:
        """Nonblocking Gather to All."""
        return self._start("Iallgather", sendbuf, recvbuf, algorithm)

    def Iallgatherv(
        self, sendbuf: Any, recvbuf: Any, algorithm: str | None = None
    ) -> MPI.Request:
        """Nonblocking Gather to All Vector."""
        return self._start("Iallgatherv", sendbuf, recvbuf, algorithm)

    def _start(
        self, op: str, sendbuf: Any, recvbuf: Any, algorithm: str | None
    ) -> MPI.Request:
        call = self._forms.prepare(self._context(), sendbuf, recvbuf, algorithm, op)
        ours: MPI.Request | None = self._forms.nonblocking(call)
        return getattr(super(), op)(sendbuf, recvbuf) if ours is None else ours

    def Allgather_init(
        self,
        sendbuf: Any,
        recvbuf: Any,
        info: MPI.Info = MPI.INFO_NULL,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Persistent Gather to All."""
        return self._init("Allgather_init", sendbuf, recvbuf, info, algorithm)

    def Allgatherv_init(
        self,
        sendbuf: Any,
        recvbuf: Any,
        info: MPI.Info = MPI.INFO_NULL,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Persistent Gather to All Vector."""
        return self._init("Allgatherv_init", sendbuf, recvbuf, info, algorithm)

    def _init(
        self, op: str, sendbuf: Any, recvbuf: Any, info: Any, algorithm: str | None
    ) -> MPI.Prequest:
        call = self._forms.prepare(self._context(), sendbuf, recvbuf, algorithm, op)
        ours: MPI.Prequest | None = self._forms.persistent(call)
        return getattr(super(), op)(sendbuf, recvbuf, info) if ours is None else ours

    def allgather(self, sendobj: Any, algorithm: str | None = None) -> list[Any]:
        """Gather to All, for any object; large arrays in it are not pickled."""
        context = self._context()
        name = context.name(algorithm, True)
        check_name(context, name, "allgather", partial(self._forms.known, context))
        if name == "native":
            return super().allgather(sendobj)  # type: ignore[misc,no-any-return]
        return objects.allgather(self._forms, context, sendobj, name)
