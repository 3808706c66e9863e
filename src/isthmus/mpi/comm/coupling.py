"""Collectives among several groups: each process receives from all other groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from ..context.attribute import release
from .all_to_all import AllgatherMethods, AlltoallMethods
from .collective import load

if TYPE_CHECKING:
    from ..context.context import Context
    from ..context.several import SeveralContext
    from ..waiting.waiting import TimeLimit
    from .intercomm import Intercomm
    from .intracomm import Intracomm

_numbers = count()


class Coupling(AllgatherMethods, AlltoallMethods):
    """Any number of groups, as coupled by `isthmus.couple`.

    `Allgather` gathers on every process the blocks of all groups but the own, in the
    order of groups and ranks. `Alltoall` exchanges a block with each process of the
    other groups. Both have all forms and blocks of equal size; blocks of `Allgatherv`
    and `Alltoallv` may differ in size. The first call waits for all processes of all
    groups, since private communicators are made.

    `inside, others = isthmus.couple(comm, name)` takes the communicator of the own
    group and the intercommunicators only.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        inside: Intracomm | MPI.Comm,
        others: dict[Any, Intercomm],
        sizes: Mapping[Any, int],
        members: Callable[[], tuple[list[list[int]], int]] | None = None,
    ) -> None:
        """A coupling on a communicator of all groups; users call `couple`.

        `members` has the ranks of each group, and the number of the own group. A
        function, since the ranks are needed only by collectives among all groups.
        """
        load()
        self._comm_of_all, self._members = comm, members
        self._name = f"coupling {next(_numbers)}"
        #: the communicator inside the own group; null on a process without one
        self.comm = inside
        #: the intercommunicators to the other groups, by name
        self.others = others
        #: the numbers of processes by name, in the order of the groups
        self.sizes = sizes

    def __iter__(self) -> Iterator[Any]:
        """The communicator of the own group, and the intercommunicators."""
        return iter((self.comm, self.others))

    @property
    def _limit(self) -> TimeLimit:
        from ..context.attribute import limit_of

        return limit_of(self._comm_of_all)

    def _find_context(self) -> Context:
        from ..context.context import context_of

        context: Context = context_of(self._comm_of_all, self._new_context, self._name)
        return context

    def _new_context(self, comm: MPI.Intracomm) -> SeveralContext:
        from ..context.several import SeveralContext

        if self._members is None:
            raise ValueError("this process is in none of the groups")
        return SeveralContext(comm, *self._members())

    def Free(self) -> None:
        """Free the communicators and the context of the coupling; collective."""
        release(self._comm_of_all, self._name)
        for comm in (*self.others.values(), self.comm):
            if comm != MPI.COMM_NULL:
                comm.Free()
