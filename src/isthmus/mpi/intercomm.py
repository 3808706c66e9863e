"""The intercommunicator of isthmus."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from . import forms, forms_inter, objects
from .call import call_key, check_name
from .context import context_of
from .context_inter import InterContext
from .counts import alone, complete
from .family import COMMON, Comm, making
from .forms_inter import known, prepare


@making(MPI.Intercomm, *COMMON, "Create_from_groups", "Merge")
class Intercomm(Comm, MPI.Intercomm):
    """An `MPI.Intercomm` whose collectives run close to the physical limit.

    `isthmus.Intercomm(inter)` is a view of the same communicator: same handle, same
    methods, same buffer specifications. `algorithm` names an algorithm of isthmus, with
    an intragroup stage after a "+" where it has one; "native" is the MPI library's own
    call, "auto" a choice by size. The first collective call on a communicator makes
    private communicators and so waits for all its processes.
    """

    def __new__(cls, comm: MPI.Intercomm | None = None) -> Intercomm:
        """A view of the same communicator."""
        return super().__new__(cls, comm)

    #: what is kept for the communicator, once this view has looked it up
    _found: InterContext | None = None

    def _context(self) -> InterContext:
        """What is kept for the communicator, made at the first collective call."""
        if self._found is None or self._found.freed:
            self._found = context_of(self, InterContext)
        return self._found

    def Allgather(
        self, sendbuf: Any, recvbuf: Any, algorithm: str | None = None
    ) -> None:
        """Gather to All: everyone receives the blocks of the whole other group."""
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
            forms.blocking(context, key, forms_inter.plan(call, None))

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
        call = own = None
        if context.must_ask(algorithm):
            question = context.questions.get(key)
            if question is None:
                call = prepare(context, sendbuf, recvbuf, algorithm, "Allgatherv")
                question = forms_inter.question(call)
                if key is not None:
                    context.keep_question(key, question)
            own = complete(question.ask(tag=0))
            key = key and (key, own)
            if context.run(key):
                return
        call = call or prepare(context, sendbuf, recvbuf, algorithm, "Allgatherv")
        if call.name == "native":
            super().Allgatherv(sendbuf, recvbuf)
        else:
            own = own or alone(context, call.sent)
            forms.blocking(context, key, forms_inter.plan(call, own))

    def Iallgather(
        self, sendbuf: Any, recvbuf: Any, algorithm: str | None = None
    ) -> MPI.Request:
        """Nonblocking Gather to All."""
        call = prepare(self._context(), sendbuf, recvbuf, algorithm, "Iallgather")
        if call.name == "native":
            return super().Iallgather(sendbuf, recvbuf)
        return forms_inter.nonblocking(call)

    def Iallgatherv(
        self, sendbuf: Any, recvbuf: Any, algorithm: str | None = None
    ) -> MPI.Request:
        """Nonblocking Gather to All Vector."""
        call = prepare(self._context(), sendbuf, recvbuf, algorithm, "Iallgatherv")
        if call.name == "native":
            return super().Iallgatherv(sendbuf, recvbuf)
        return forms_inter.nonblocking(call)

    def Allgather_init(
        self,
        sendbuf: Any,
        recvbuf: Any,
        info: MPI.Info = MPI.INFO_NULL,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Persistent Gather to All."""
        call = prepare(self._context(), sendbuf, recvbuf, algorithm, "Allgather_init")
        if call.name == "native":
            return super().Allgather_init(sendbuf, recvbuf, info)
        return forms_inter.persistent(call)

    def Allgatherv_init(
        self,
        sendbuf: Any,
        recvbuf: Any,
        info: MPI.Info = MPI.INFO_NULL,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Persistent Gather to All Vector."""
        call = prepare(self._context(), sendbuf, recvbuf, algorithm, "Allgatherv_init")
        if call.name == "native":
            return super().Allgatherv_init(sendbuf, recvbuf, info)
        return forms_inter.persistent(call)

    def allgather(self, sendobj: Any, algorithm: str | None = None) -> list[Any]:
        """Gather to All, for any object; large arrays in it are not pickled."""
        context = self._context()
        name = context.name(algorithm, True)
        check_name(context, name, "allgather", known)
        if name == "native":
            return super().allgather(sendobj)
        return objects.exchange(context, sendobj, name)
