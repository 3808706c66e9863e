"""The intracommunicator of isthmus."""

from __future__ import annotations

from functools import partial
from typing import Any

from mpi4py import MPI

from . import forms, forms_bcast, forms_intra, objects
from .call import call_key, check_name
from .context import context_of
from .context_intra import IntraContext
from .family import COMMON, Comm, making
from .forms_intra import in_background, known, prepare, settle


@making(
    MPI.Intracomm,
    *COMMON,
    "Create_group",
    "Create_from_group",
    "Create_intercomm",
    "Spawn",
    "Spawn_multiple",
    "Accept",
    "Connect",
)
class Intracomm(Comm, MPI.Intracomm):
    """An `MPI.Intracomm` that gathers pieces of any sizes close to the physical limit.

    `isthmus.Intracomm(comm)` is a view of the same communicator: same handle, same
    methods, same buffer specifications, and `MPI.IN_PLACE`. `algorithm` names one of
    isthmus; "native" is the MPI library's own call, "auto" a choice by the counts and
    by what messages cost here, which is measured once for each communicator. The first
    collective call makes a private communicator and so waits for all processes.
    """

    def __new__(cls, comm: MPI.Intracomm | None = None) -> Intracomm:
        """A view of the same communicator."""
        return super().__new__(cls, comm)

    #: what is kept for the communicator, once this view has looked it up
    _found: IntraContext | None = None

    def _context(self) -> IntraContext:
        """What is kept for the communicator, made at the first collective call."""
        if self._found is None or self._found.freed:
            self._found = context_of(self, IntraContext)
        return self._found

    def Allgather(
        self, sendbuf: Any, recvbuf: Any, algorithm: str | None = None
    ) -> None:
        """Gather to All."""
        context = self._found
        if context is not None and context.repeat(
            "Allgather", sendbuf, recvbuf, algorithm
        ):
            return
        context = self._context()
        key = call_key("Allgather", sendbuf, recvbuf, algorithm)
        if context.run(key):
            context.remember("Allgather", sendbuf, recvbuf, algorithm, key)
            return
        call = prepare(context, sendbuf, recvbuf, algorithm, "Allgather")
        if call.name == "native":
            super().Allgather(sendbuf, recvbuf)
        else:
            forms.blocking(context, key, forms_intra.plan(call, settle(call)))

    def Allgatherv(
        self, sendbuf: Any, recvbuf: Any, algorithm: str | None = None
    ) -> None:
        """Gather to All Vector: as Allgather, with blocks of different sizes."""
        context = self._found
        if context is not None and context.repeat(
            "Allgatherv", sendbuf, recvbuf, algorithm
        ):
            return
        context = self._context()
        key = call_key("Allgatherv", sendbuf, recvbuf, algorithm)
        if context.run(key):
            context.remember("Allgatherv", sendbuf, recvbuf, algorithm, key)
            return
        call = prepare(context, sendbuf, recvbuf, algorithm, "Allgatherv")
        if call.name == "native":
            super().Allgatherv(sendbuf, recvbuf)
        else:
            forms.blocking(context, key, forms_intra.plan(call, settle(call)))

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
        context = self._context()
        call = prepare(context, sendbuf, recvbuf, algorithm, op)
        tag, name = context.next_tag(), in_background(call)
        if name == "native":
            request: MPI.Request = getattr(super(), op)(sendbuf, recvbuf)
            return request
        return forms.nonblocking(call, forms_intra.plan(call, name, tag))

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
        context = self._context()
        call = prepare(context, sendbuf, recvbuf, algorithm, op)
        tag, name = context.next_tag(), in_background(call)
        if name == "native":
            request: MPI.Prequest = getattr(super(), op)(sendbuf, recvbuf, info)
            return request
        return forms.persistent(call, forms_intra.plan(call, name, tag))

    def Bcast(self, buf: Any, root: int = 0, algorithm: str | None = None) -> None:
        """Broadcast data from one rank to all."""
        found = self._found
        if found is not None and found.repeat("Bcast", buf, root, algorithm):
            return
        context = self._context()
        key = call_key("Bcast", buf, root, algorithm)
        if context.run(key):
            context.remember("Bcast", buf, root, algorithm, key)
            return
        call = forms_bcast.prepare(context, buf, root, algorithm)
        if call.name == "native":
            super().Bcast(buf, root)
        else:
            forms.blocking(context, key, forms_bcast.plan(call))

    def allgather(self, sendobj: Any, algorithm: str | None = None) -> list[Any]:
        """Gather to All, for any object; large arrays in it are not pickled."""
        context = self._context()
        name = context.name(algorithm, True)
        check_name(context, name, "allgather", partial(known, p=context.p))
        if name == "native":
            return super().allgather(sendobj)
        return objects.gather(context, sendobj, name)
