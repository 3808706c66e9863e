"""Several groups: what each process gets from all groups but its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar

from mpi4py import MPI

from ..context.attribute import release
from .all_to_all import Exchanges, Gathering
from .collective import load

if TYPE_CHECKING:
    from ..context.context import Context
    from ..context.several import SeveralContext
    from ..waiting.waiting import TimeLimit
    from .intercomm import Intercomm
    from .intracomm import Intracomm

_numbers = count()


class Coupling(Gathering, Exchanges):
    """The groups that `isthmus.couple` found, any number of them.

    `Allgather` gives every process the blocks of all groups but its own, in the order
    of the groups and of their ranks, and `Alltoall` exchanges a block with each process
    of the other groups; both in all forms, the blocks of all in one size. Those of
    `Allgatherv` and `Alltoallv` may differ. The first such call makes private
    communicators and so waits for all processes of all groups.

    `inside, others = isthmus.couple(comm, name)` takes the communicator of the own
    group and the intercommunicators only.
    """

    _base: ClassVar[Any] = MPI.Intracomm

    def __init__(
        self,
        comm: MPI.Intracomm,
        inside: Intracomm | MPI.Comm,
        others: dict[Any, Intercomm],
        sizes: Mapping[Any, int],
        members: Callable[[], tuple[list[list[int]], int]] | None = None,
    ) -> None:
        """Groups on a communicator, of which `members` tells the ranks; users call
        `couple`."""
        load()
        self._everyone, self._members = comm, members
        self._name = f"coupling {next(_numbers)}"
        #: the communicator inside the own group; null on a process without one
        self.comm = inside
        #: by name, an intercommunicator to each of the other groups
        self.others = others
        #: by name, in the order of the groups, how many processes each has
        self.sizes = sizes

    def __iter__(self) -> Iterator[Any]:
        """The communicator of the own group, and the intercommunicators."""
        return iter((self.comm, self.others))

    @property
    def _limit(self) -> TimeLimit:
        from ..context.attribute import limit_of

        return limit_of(self._everyone)

    def _looked_up(self) -> Context:
        from ..context.context import context_of

        made: Context = context_of(self._everyone, self._made, self._name)
        return made

    def _made(self, comm: MPI.Intracomm) -> SeveralContext:
        from ..context.several import SeveralContext

        if self._members is None:
            raise ValueError("this process is in none of the groups")
        return SeveralContext(comm, *self._members())

    def Free(self) -> None:
        """Free the communicators of this process's group and to the others, and what
        is kept for calls among all; collective."""
        release(self._everyone, self._name)
        for comm in (*self.others.values(), self.comm):
            if comm != MPI.COMM_NULL:
                comm.Free()
