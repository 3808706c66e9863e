"""The intracommunicator of isthmus."""

from __future__ import annotations

from typing import Any, ClassVar

from mpi4py import MPI

from . import forms, forms_bcast, forms_intra
from .context import Context
from .context_intra import IntraContext
from .device import checking
from .family import COMMON, making
from .gathering import Gathering
from .keys import Key


@checking(
    MPI.Intracomm,
    "Bcast",
    "Gather",
    "Gatherv",
    "Scatter",
    "Scatterv",
    "Alltoall",
    "Alltoallv",
    "Alltoallw",
    "Reduce",
    "Allreduce",
    "Reduce_scatter",
    "Reduce_scatter_block",
    "Scan",
    "Exscan",
)
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
class Intracomm(Gathering, MPI.Intracomm):
    """An `MPI.Intracomm` that gathers pieces of any sizes close to the physical limit.

    `isthmus.Intracomm(comm)` is a view of the same communicator: same handle, same
    methods, same buffer specifications, and `MPI.IN_PLACE`. `algorithm` names one of
    isthmus; "native" is the MPI library's own call, "auto" a choice by the counts and
    by what messages cost here, which is measured once for each communicator. The first
    collective call makes a private communicator and so waits for all processes.
    """

    _forms: ClassVar[Any] = forms_intra
    _make: ClassVar[type[Context]] = IntraContext

    def __new__(cls, comm: MPI.Intracomm | None = None) -> Intracomm:
        """A view of the same communicator."""
        return super().__new__(cls, comm)

    def Bcast(self, buf: Any, root: int = 0, algorithm: str | None = None) -> None:
        """Broadcast data from one rank to all."""
        data, to, name, do = self._last.Bcast
        if data() is buf and to == root and name is algorithm:
            do()
        else:
            self._again("Bcast", algorithm, buf, root)

    def _anew(self, key: Key, args: tuple[Any, ...], values: Any) -> None:
        op, algorithm, *_ = key
        if op != "Bcast":
            super()._anew(key, args, values)
            return
        buf, root = args
        call = forms_bcast.prepare(self._context(), buf, root, algorithm)
        if call.name == "native":
            self._native(op)(*args)
        else:
            forms.blocking(call.context, values, forms_bcast.plan(call))
