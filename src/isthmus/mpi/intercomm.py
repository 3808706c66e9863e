"""The intercommunicator of isthmus."""

from __future__ import annotations

from typing import Any, ClassVar

from mpi4py import MPI

from . import forms_inter
from .context import Context
from .context_inter import InterContext
from .counts import complete
from .family import COMMON, making
from .gathering import Gathering
from .keys import call_key
from .mutual import Mutual
from .rooted import Rooted


@making(MPI.Intercomm, *COMMON, "Create_from_groups", "Merge")
class Intercomm(Gathering, Rooted, Mutual, MPI.Intercomm):
    """An `MPI.Intercomm` whose collectives run close to the physical limit.

    `isthmus.Intercomm(inter)` is a view of the same communicator: same handle, same
    methods, same buffer specifications. `algorithm` names an algorithm of isthmus, with
    an intragroup stage after a "+" where it has one; "native" is the MPI library's own
    call, "auto" a choice by size. The first collective call on a communicator makes
    private communicators and so waits for all its processes.
    """

    _forms: ClassVar[Any] = forms_inter
    _make: ClassVar[type[Context]] = InterContext

    def __new__(cls, comm: MPI.Intercomm | None = None) -> Intercomm:
        """A view of the same communicator."""
        return super().__new__(cls, comm)

    def _anew(self, op: str, args: tuple[Any, ...], algorithm: str | None) -> None:
        context: InterContext = self._context()
        if op != "Allgatherv" or not context.must_ask(algorithm):
            super()._anew(op, args, algorithm)
            return
        # an irregular call first asks what its own group sends
        key = call_key(op, args, algorithm)
        question, call, (send, recv) = context.questions.get(key), None, args
        if question is None:
            call = forms_inter.prepare(context, send, recv, algorithm, op)
            question = forms_inter.question(call)
            context.keep_question(key, question)
        own = complete(question.ask(tag=0))
        key = key and (key, own)
        if not context.run(key):
            call = call or forms_inter.prepare(context, send, recv, algorithm, op)
            forms_inter.blocking(call, key, own)
