"""Methods of collectives in which all ranks contribute and all ranks receive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from .collective import CollectiveMethods

if TYPE_CHECKING:
    from mpi4py.typing import BufSpec, BufSpecB, BufSpecV, InPlace


class AllgatherMethods(CollectiveMethods):
    """The methods of Allgather and Allgatherv, in all forms.

    `algorithm` names an algorithm. Methods that are left to the MPI library are those
    of the next class, mpi4py's own.
    """

    def Allgather(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecB,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Gather the blocks of all ranks, or of the remote group, on every rank."""
        self._blocking("Allgather", algorithm, sendbuf, recvbuf)

    def Iallgather(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecB,
        *,
        algorithm: str | None = None,
    ) -> MPI.Request:
        """Start a nonblocking Allgather and return the request."""
        return self._nonblocking("Allgather", algorithm, (sendbuf, recvbuf))

    def Allgather_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecB,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Set a persistent Allgather up and return the request."""
        return self._persistent("Allgather", (sendbuf, recvbuf), info, algorithm)

    def Allgatherv(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecV,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Gather blocks of different sizes, as `Allgather`."""
        self._blocking("Allgatherv", algorithm, sendbuf, recvbuf)

    def Iallgatherv(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecV,
        *,
        algorithm: str | None = None,
    ) -> MPI.Request:
        """Start a nonblocking Allgatherv and return the request."""
        return self._nonblocking("Allgatherv", algorithm, (sendbuf, recvbuf))

    def Allgatherv_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecV,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Set a persistent Allgatherv up and return the request."""
        return self._persistent("Allgatherv", (sendbuf, recvbuf), info, algorithm)

    def allgather(self, sendobj: Any, *, algorithm: str | None = None) -> list[Any]:
        """Gather any objects on every rank; large arrays in objects are not pickled."""
        from ..objects import objects

        context = self._context()
        resolved = context.asked_for("Allgatherv", algorithm)
        if resolved == "native":
            objects.agree(context, "allgather", resolved, bool)
            return super().allgather(sendobj)  # type: ignore[misc,no-any-return]
        return objects.allgather(context, sendobj, resolved)


class ReductionMethods(CollectiveMethods):
    """The methods of reductions without a root, in all forms.

    Inside a group the vectors of all ranks are combined; between groups, the vectors of
    the remote group.
    """

    def Allreduce(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        op: MPI.Op = MPI.SUM,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Reduce the vectors of all ranks, or of the remote group, to every rank."""
        self._blocking("Allreduce", algorithm, sendbuf, recvbuf, op)

    def Iallreduce(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        op: MPI.Op = MPI.SUM,
        *,
        algorithm: str | None = None,
    ) -> MPI.Request:
        """Start a nonblocking Allreduce and return the request."""
        return self._nonblocking("Allreduce", algorithm, (sendbuf, recvbuf, op))

    def Allreduce_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        op: MPI.Op = MPI.SUM,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Set a persistent Allreduce up and return the request."""
        return self._persistent("Allreduce", (sendbuf, recvbuf, op), info, algorithm)

    def Reduce_scatter(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        recvcounts: Sequence[int] | np.ndarray | None = None,
        op: MPI.Op = MPI.SUM,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Reduce vectors of all ranks, or of the remote group, and cut the result."""
        self._blocking("Reduce_scatter", algorithm, sendbuf, recvbuf, recvcounts, op)

    def Ireduce_scatter(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        recvcounts: Sequence[int] | np.ndarray | None = None,
        op: MPI.Op = MPI.SUM,
        *,
        algorithm: str | None = None,
    ) -> MPI.Request:
        """Start a nonblocking Reduce_scatter and return the request."""
        return self._nonblocking(
            "Reduce_scatter", algorithm, (sendbuf, recvbuf, recvcounts, op)
        )

    def Reduce_scatter_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        recvcounts: Sequence[int] | np.ndarray | None = None,
        op: MPI.Op = MPI.SUM,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Set a persistent Reduce_scatter up and return the request."""
        return self._persistent(
            "Reduce_scatter", (sendbuf, recvbuf, recvcounts, op), info, algorithm
        )

    def Reduce_scatter_block(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpec | BufSpecB,
        op: MPI.Op = MPI.SUM,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Reduce vectors cut into blocks of equal size, as `Reduce_scatter`."""
        self._blocking("Reduce_scatter_block", algorithm, sendbuf, recvbuf, op)

    def Ireduce_scatter_block(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpec | BufSpecB,
        op: MPI.Op = MPI.SUM,
        *,
        algorithm: str | None = None,
    ) -> MPI.Request:
        """Start a nonblocking Reduce_scatter_block and return the request."""
        return self._nonblocking(
            "Reduce_scatter_block", algorithm, (sendbuf, recvbuf, op)
        )

    def Reduce_scatter_block_init(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpec | BufSpecB,
        op: MPI.Op = MPI.SUM,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Set a persistent Reduce_scatter_block up and return the request."""
        return self._persistent(
            "Reduce_scatter_block", (sendbuf, recvbuf, op), info, algorithm
        )


class AlltoallMethods(CollectiveMethods):
    """The methods of Alltoall and Alltoallv, in all forms."""

    def Alltoall(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpecB,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Send a block to each rank, or each remote rank, and receive a block back."""
        self._blocking("Alltoall", algorithm, sendbuf, recvbuf)

    def Ialltoall(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpecB,
        *,
        algorithm: str | None = None,
    ) -> MPI.Request:
        """Start a nonblocking Alltoall and return the request."""
        return self._nonblocking("Alltoall", algorithm, (sendbuf, recvbuf))

    def Alltoall_init(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpecB,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Set a persistent Alltoall up and return the request."""
        return self._persistent("Alltoall", (sendbuf, recvbuf), info, algorithm)

    def Alltoallv(
        self,
        sendbuf: BufSpecV | InPlace,
        recvbuf: BufSpecV,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Exchange blocks of different sizes, as `Alltoall`."""
        self._blocking("Alltoallv", algorithm, sendbuf, recvbuf)

    def Ialltoallv(
        self,
        sendbuf: BufSpecV | InPlace,
        recvbuf: BufSpecV,
        *,
        algorithm: str | None = None,
    ) -> MPI.Request:
        """Start a nonblocking Alltoallv and return the request."""
        return self._nonblocking("Alltoallv", algorithm, (sendbuf, recvbuf))

    def Alltoallv_init(
        self,
        sendbuf: BufSpecV | InPlace,
        recvbuf: BufSpecV,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Set a persistent Alltoallv up and return the request."""
        return self._persistent("Alltoallv", (sendbuf, recvbuf), info, algorithm)
