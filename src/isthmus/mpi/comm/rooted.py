"""Methods of collectives that have a root, in all forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpi4py import MPI

from .collective import CollectiveMethods

if TYPE_CHECKING:
    from mpi4py.typing import BufSpec, BufSpecB, BufSpecV, InPlace


class RootedMethods(CollectiveMethods):
    """The methods of collectives from or to a root.

    Inside a group all processes pass the rank of the root. Between groups, the root
    passes MPI.ROOT, the peers in its group pass MPI.PROC_NULL and have no part in the
    call, and the remote group passes the rank of the root.
    """

    def Bcast(
        self, buf: BufSpec | None, root: int = 0, *, algorithm: str | None = None
    ) -> None:
        """Broadcast from the root to all ranks, or to the remote group."""
        self._blocking("Bcast", algorithm, buf, root)

    def Ibcast(
        self, buf: BufSpec | None, root: int = 0, *, algorithm: str | None = None
    ) -> MPI.Request:
        """Start a nonblocking Bcast and return the request."""
        return self._nonblocking("Bcast", algorithm, (buf, root))

    def Bcast_init(
        self,
        buf: BufSpec | None,
        root: int = 0,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Set a persistent Bcast up and return the request."""
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
        """Reduce the vectors of all ranks, or of the remote group, to the root."""
        self._blocking("Reduce", algorithm, sendbuf, recvbuf, op, root)

    def Ireduce(
        self,
        sendbuf: BufSpec | InPlace | None,
        recvbuf: BufSpec | InPlace | None,
        op: MPI.Op = MPI.SUM,
        root: int = 0,
        *,
        algorithm: str | None = None,
    ) -> MPI.Request:
        """Start a nonblocking Reduce and return the request."""
        return self._nonblocking("Reduce", algorithm, (sendbuf, recvbuf, op, root))

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
        """Set a persistent Reduce up and return the request."""
        return self._persistent("Reduce", (sendbuf, recvbuf, op, root), info, algorithm)

    def Gather(
        self,
        sendbuf: BufSpec | InPlace | None,
        recvbuf: BufSpecB | InPlace | None,
        root: int = 0,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Gather the blocks of all ranks, or of the remote group, on the root."""
        self._blocking("Gather", algorithm, sendbuf, recvbuf, root)

    def Igather(
        self,
        sendbuf: BufSpec | InPlace | None,
        recvbuf: BufSpecB | InPlace | None,
        root: int = 0,
        *,
        algorithm: str | None = None,
    ) -> MPI.Request:
        """Start a nonblocking Gather and return the request."""
        return self._nonblocking("Gather", algorithm, (sendbuf, recvbuf, root))

    def Gather_init(
        self,
        sendbuf: BufSpec | InPlace | None,
        recvbuf: BufSpecB | InPlace | None,
        root: int = 0,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Set a persistent Gather up and return the request."""
        return self._persistent("Gather", (sendbuf, recvbuf, root), info, algorithm)

    def Gatherv(
        self,
        sendbuf: BufSpec | InPlace | None,
        recvbuf: BufSpecV | InPlace | None,
        root: int = 0,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Gather blocks of different sizes on the root, as `Gather`."""
        self._blocking("Gatherv", algorithm, sendbuf, recvbuf, root)

    def Igatherv(
        self,
        sendbuf: BufSpec | InPlace | None,
        recvbuf: BufSpecV | InPlace | None,
        root: int = 0,
        *,
        algorithm: str | None = None,
    ) -> MPI.Request:
        """Start a nonblocking Gatherv and return the request."""
        return self._nonblocking("Gatherv", algorithm, (sendbuf, recvbuf, root))

    def Gatherv_init(
        self,
        sendbuf: BufSpec | InPlace | None,
        recvbuf: BufSpecV | InPlace | None,
        root: int = 0,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Set a persistent Gatherv up and return the request."""
        return self._persistent("Gatherv", (sendbuf, recvbuf, root), info, algorithm)

    def Scatter(
        self,
        sendbuf: BufSpecB | InPlace | None,
        recvbuf: BufSpec | InPlace | None,
        root: int = 0,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Scatter blocks from the root to all ranks, or to the remote group."""
        self._blocking("Scatter", algorithm, sendbuf, recvbuf, root)

    def Iscatter(
        self,
        sendbuf: BufSpecB | InPlace | None,
        recvbuf: BufSpec | InPlace | None,
        root: int = 0,
        *,
        algorithm: str | None = None,
    ) -> MPI.Request:
        """Start a nonblocking Scatter and return the request."""
        return self._nonblocking("Scatter", algorithm, (sendbuf, recvbuf, root))

    def Scatter_init(
        self,
        sendbuf: BufSpecB | InPlace | None,
        recvbuf: BufSpec | InPlace | None,
        root: int = 0,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Set a persistent Scatter up and return the request."""
        return self._persistent("Scatter", (sendbuf, recvbuf, root), info, algorithm)

    def Scatterv(
        self,
        sendbuf: BufSpecV | InPlace | None,
        recvbuf: BufSpec | InPlace | None,
        root: int = 0,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Scatter blocks of different sizes from the root, as `Scatter`."""
        self._blocking("Scatterv", algorithm, sendbuf, recvbuf, root)

    def Iscatterv(
        self,
        sendbuf: BufSpecV | InPlace | None,
        recvbuf: BufSpec | InPlace | None,
        root: int = 0,
        *,
        algorithm: str | None = None,
    ) -> MPI.Request:
        """Start a nonblocking Scatterv and return the request."""
        return self._nonblocking("Scatterv", algorithm, (sendbuf, recvbuf, root))

    def Scatterv_init(
        self,
        sendbuf: BufSpecV | InPlace | None,
        recvbuf: BufSpec | InPlace | None,
        root: int = 0,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Set a persistent Scatterv up and return the request."""
        return self._persistent("Scatterv", (sendbuf, recvbuf, root), info, algorithm)
