"""The intercommunicator of isthmus."""

from __future__ import annotations

from typing import Any, ClassVar

from mpi4py import MPI

from . import forms_inter
from .context import Context
from .context_inter import InterContext
from .family import COMMON, making
from .gathering import Gathering
from .keys import Key
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

    def _anew(self, key: Key, args: tuple[Any, ...], values: Any) -> None:
        (op, algorithm, *_), context = key, self._context()
        if op in ("Allgather", "Allgatherv") and context.lays(algorithm, op[-1] == "v"):
            made = self._task(op, args, "auto")
            self._ask(made, "auto", key, args, values)
            return
        if op != "Allgatherv" or not context.must_ask(algorithm):
            super()._anew(key, args, values)
            return
        # an irregular call first asks what its own group sends
        with context.uninterrupted():
            own = context.asked_again(values)
            if own is not None and context.run((values, own)):
                return
        send, recv = args
        call = forms_inter.prepare(context, send, recv, algorithm, op)
        if own is None:
            with context.uninterrupted():
                own = context.ask(values, forms_inter.question(call).now)
        forms_inter.blocking(call, values and (values, own), own)
