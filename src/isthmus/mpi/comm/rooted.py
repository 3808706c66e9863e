"""Collectives that have a root, in all forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpi4py import MPI

from .collective import Collective, nonblocking

if TYPE_CHECKING:
    from mpi4py.typing import BufSpec, BufSpecB, BufSpecV, InPlace


class Rooted(Collective):
    """Data from or to one process: the root.

    Inside a group all processes give the root's rank. Between groups, in the root's
    group it gives MPI.ROOT as the root, the others give MPI.PROC_NULL and have no part
    in it; the processes of the other group give the root's rank.
    """

    def Bcast(
        self, buf: BufSpec | None, root: int = 0, *, algorithm: str | None = None
    ) -> None:
        """Broadcast from the root to all, or to all of the other group."""
        self._blocking("Bcast", algorithm, buf, root)

    Ibcast = nonblocking(Bcast)

    def Bcast_init(
        self,
        buf: BufSpec | None,
        root: int = 0,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Persistent Bcast."""
        return self._persistent("Bcast", (buf, root), info, algorithm)

    def Reduce(
        self,
        sendbuf: BufSpec | InPlace | None,
        recvbuf: BufSpec | InPlace | None,
        op: MPI.Op = MPI.SUM,
        root: int = 0,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Reduce what all send, or the other group, to the root."""
        self._blocking("Reduce", algorithm, sendbuf, recvbuf, op, root)

    Ireduce = nonblocking(Reduce)

    def Reduce_init(
        self,
        sendbuf: BufSpec | InPlace | None,
        recvbuf: BufSpec | InPlace | None,
        op: MPI.Op = MPI.SUM,
        root: int = 0,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Persistent Reduce."""
        return self._persistent("Reduce", (sendbuf, recvbuf, op, root), info, algorithm)

    def Gather(
        self,
        sendbuf: BufSpec | InPlace | None,
        recvbuf: BufSpecB | InPlace | None,
        root: int = 0,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Gather from all, or from the other group, to the root."""
        self._blocking("Gather", algorithm, sendbuf, recvbuf, root)

    Igather = nonblocking(Gather)

    def Gather_init(
        self,
        sendbuf: BufSpec | InPlace | None,
        recvbuf: BufSpecB | InPlace | None,
        root: int = 0,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Persistent Gather."""
        return self._persistent("Gather", (sendbuf, recvbuf, root), info, algorithm)

    def Gatherv(
        self,
        sendbuf: BufSpec | InPlace | None,
        recvbuf: BufSpecV | InPlace | None,
        root: int = 0,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Gather Vector: as Gather, with blocks of different sizes."""
        self._blocking("Gatherv", algorithm, sendbuf, recvbuf, root)

    Igatherv = nonblocking(Gatherv)

    def Gatherv_init(
        self,
        sendbuf: BufSpec | InPlace | None,
        recvbuf: BufSpecV | InPlace | None,
        root: int = 0,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Persistent Gatherv."""
        return self._persistent("Gatherv", (sendbuf, recvbuf, root), info, algorithm)

    def Scatter(
        self,
        sendbuf: BufSpecB | InPlace | None,
        recvbuf: BufSpec | InPlace | None,
        root: int = 0,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Scatter from the root to all, or to the other group."""
        self._blocking("Scatter", algorithm, sendbuf, recvbuf, root)

    Iscatter = nonblocking(Scatter)

    def Scatter_init(
        self,
        sendbuf: BufSpecB | InPlace | None,
        recvbuf: BufSpec | InPlace | None,
        root: int = 0,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Persistent Scatter."""
        return self._persistent("Scatter", (sendbuf, recvbuf, root), info, algorithm)

    def Scatterv(
        self,
        sendbuf: BufSpecV | InPlace | None,
        recvbuf: BufSpec | InPlace | None,
        root: int = 0,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Scatter Vector: as Scatter, with blocks of different sizes."""
        self._blocking("Scatterv", algorithm, sendbuf, recvbuf, root)

    Iscatterv = nonblocking(Scatterv)

    def Scatterv_init(
        self,
        sendbuf: BufSpecV | InPlace | None,
        recvbuf: BufSpec | InPlace | None,
        root: int = 0,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Persistent Scatterv."""
        return self._persistent("Scatterv", (sendbuf, recvbuf, root), info, algorithm)
