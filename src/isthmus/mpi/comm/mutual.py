"""Collectives between groups in which all do the same, in all forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from .collective import Collective

if TYPE_CHECKING:
    from mpi4py.typing import BufSpec, BufSpecB, BufSpecV, BufSpecW, InPlace


class Mutual(Collective):
    """Data from every process to every process of the other group."""

    def Allreduce(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        op: MPI.Op = MPI.SUM,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Reduce to All: everyone receives what the other group sends, combined."""
        self._blocking("Allreduce", algorithm, sendbuf, recvbuf, op)

    def Iallreduce(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        op: MPI.Op = MPI.SUM,
        *,
        algorithm: str | None = None,
    ) -> MPI.Request:
        """Nonblocking Allreduce."""
        return self._nonblocking("Allreduce", (sendbuf, recvbuf, op), algorithm)

    def Allreduce_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        op: MPI.Op = MPI.SUM,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Persistent Allreduce."""
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
        """Reduce-Scatter: the other group's data combined, and cut by the counts."""
        if isinstance(recvcounts, np.ndarray):
            recvcounts = recvcounts.tolist()
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
        """Nonblocking Reduce_scatter."""
        return self._nonblocking(
            "Reduce_scatter", (sendbuf, recvbuf, recvcounts, op), algorithm
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
        """Persistent Reduce_scatter."""
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
        """Reduce-Scatter Block: as Reduce_scatter, in blocks of one size."""
        self._blocking("Reduce_scatter_block", algorithm, sendbuf, recvbuf, op)

    def Ireduce_scatter_block(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpec | BufSpecB,
        op: MPI.Op = MPI.SUM,
        *,
        algorithm: str | None = None,
    ) -> MPI.Request:
        """Nonblocking Reduce_scatter_block."""
        return self._nonblocking(
            "Reduce_scatter_block", (sendbuf, recvbuf, op), algorithm
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
        """Persistent Reduce_scatter_block."""
        return self._persistent(
            "Reduce_scatter_block", (sendbuf, recvbuf, op), info, algorithm
        )

    def Alltoall(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpecB,
        *,
        algorithm: str | None = None,
    ) -> None:
        """All to All: a block to, and one from, each of the other group."""
        self._blocking("Alltoall", algorithm, sendbuf, recvbuf)

    def Ialltoall(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpecB,
        *,
        algorithm: str | None = None,
    ) -> MPI.Request:
        """Nonblocking Alltoall."""
        return self._nonblocking("Alltoall", (sendbuf, recvbuf), algorithm)

    def Alltoall_init(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpecB,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Persistent Alltoall."""
        return self._persistent("Alltoall", (sendbuf, recvbuf), info, algorithm)

    def Alltoallv(
        self,
        sendbuf: BufSpecV | InPlace,
        recvbuf: BufSpecV,
        *,
        algorithm: str | None = None,
    ) -> None:
        """All to All Vector: as Alltoall, with blocks of different sizes."""
        self._blocking("Alltoallv", algorithm, sendbuf, recvbuf)

    def Ialltoallv(
        self,
        sendbuf: BufSpecV | InPlace,
        recvbuf: BufSpecV,
        *,
        algorithm: str | None = None,
    ) -> MPI.Request:
        """Nonblocking Alltoallv."""
        return self._nonblocking("Alltoallv", (sendbuf, recvbuf), algorithm)

    def Alltoallv_init(
        self,
        sendbuf: BufSpecV | InPlace,
        recvbuf: BufSpecV,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Persistent Alltoallv."""
        return self._persistent("Alltoallv", (sendbuf, recvbuf), info, algorithm)

    def Alltoallw(
        self,
        sendbuf: BufSpecW | InPlace,
        recvbuf: BufSpecW,
        *,
        algorithm: str | None = None,
    ) -> None:
        """All to All General: as Alltoallv, with blocks of different types."""
        self._blocking("Alltoallw", algorithm, sendbuf, recvbuf)

    def Ialltoallw(
        self,
        sendbuf: BufSpecW | InPlace,
        recvbuf: BufSpecW,
        *,
        algorithm: str | None = None,
    ) -> MPI.Request:
        """Nonblocking Alltoallw."""
        return self._nonblocking("Alltoallw", (sendbuf, recvbuf), algorithm)

    def Alltoallw_init(
        self,
        sendbuf: BufSpecW | InPlace,
        recvbuf: BufSpecW,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Persistent Alltoallw."""
        return self._persistent("Alltoallw", (sendbuf, recvbuf), info, algorithm)

    def Barrier(self, *, algorithm: str | None = None) -> None:
        """Wait until all of both groups have come."""
        self._blocking("Barrier", algorithm)

    def Ibarrier(self, *, algorithm: str | None = None) -> MPI.Request:
        """Nonblocking Barrier."""
        context = self._context()
        if context.asked_for("Barrier", algorithm) == "auto":
            request: MPI.Request = context.request(context.comm.Ibarrier(), None)
            return request
        return self._nonblocking("Barrier", (), algorithm)

    def Barrier_init(
        self, info: MPI.Info = MPI.INFO_NULL, *, algorithm: str | None = None
    ) -> MPI.Prequest:
        """Persistent Barrier."""
        from ..context.library_requests import made_by

        context = self._context()
        if context.asked_for("Barrier", algorithm) == "auto":
            request = made_by(context.comm.Barrier_init)
            if request is not None:
                kept: MPI.Prequest = context.request(request, None)
                return kept
        return self._persistent("Barrier", (), info, algorithm)

    def alltoall(self, sendobj: Sequence[Any]) -> list[Any]:
        """All to All, for any objects; large arrays in them are not pickled."""
        from . import objects_between

        return objects_between.alltoall(self._context(), sendobj)

    def barrier(self) -> None:
        """Wait until all of both groups have come."""
        self.Barrier()
