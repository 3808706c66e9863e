"""Gathering to all: the same methods between groups and inside one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from mpi4py import MPI

from .collective import Collective

if TYPE_CHECKING:
    from mpi4py.typing import BufSpec, BufSpecB, BufSpecV, InPlace


class Gathering(Collective):
    """A communicator with an Allgather of isthmus in all its forms.

    `algorithm` may name one; what a form leaves to the MPI library goes to the class
    behind this one.
    """

    #: the module that reads its arguments
    _tasks: ClassVar[Any]

    def Allgather(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpecB,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Gather to All; between groups, everyone receives those of the other one."""
        self._blocking("Allgather", algorithm, sendbuf, recvbuf)

    def Iallgather(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpecB,
        *,
        algorithm: str | None = None,
    ) -> MPI.Request:
        """Nonblocking Gather to All."""
        return self._nonblocking("Allgather", (sendbuf, recvbuf), algorithm)

    def Allgather_init(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpecB,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Persistent Gather to All."""
        return self._persistent("Allgather", (sendbuf, recvbuf), info, algorithm)

    def Allgatherv(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecV,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Gather to All Vector: as Allgather, with blocks of different sizes."""
        self._blocking("Allgatherv", algorithm, sendbuf, recvbuf)

    def Iallgatherv(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecV,
        *,
        algorithm: str | None = None,
    ) -> MPI.Request:
        """Nonblocking Gather to All Vector."""
        return self._nonblocking("Allgatherv", (sendbuf, recvbuf), algorithm)

    def Allgatherv_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecV,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Persistent Gather to All Vector."""
        return self._persistent("Allgatherv", (sendbuf, recvbuf), info, algorithm)

    def allgather(self, sendobj: Any, *, algorithm: str | None = None) -> list[Any]:
        """Gather to All, for any object; large arrays in it are not pickled."""
        from ..operations.call import checked_value
        from . import objects

        context = self._context()
        name = context.asked_for("Allgatherv", algorithm)

        def parse() -> list[Any]:
            self._tasks.known(context, name)
            return [] if name == "native" else objects.encode(sendobj)

        data = checked_value(context, "allgather", name, parse)
        if name == "native":
            return super().allgather(sendobj)  # type: ignore[misc,no-any-return]
        return objects.allgather(self._tasks, context, data, name)
