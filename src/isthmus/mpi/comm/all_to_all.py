"""Collectives in which all ranks contribute and all receive, as MPI groups them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from .collective import Collective, nonblocking

if TYPE_CHECKING:
    from mpi4py.typing import BufSpec, BufSpecB, BufSpecV, InPlace


class Gathering(Collective):
    """A communicator with an Allgather of isthmus in all its forms.

    `algorithm` may name one; what a form leaves to the MPI library goes to the class
    behind this one.
    """

    def Allgather(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecB,
        *,
        algorithm: str | None = None,
    ) -> None:
        """The blocks of all ranks, or of the other group, to every rank."""
        self._blocking("Allgather", algorithm, sendbuf, recvbuf)

    Iallgather = nonblocking(Allgather)

    def Allgather_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecB,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Persistent Allgather."""
        return self._persistent("Allgather", (sendbuf, recvbuf), info, algorithm)

    def Allgatherv(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecV,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Allgather with blocks of different sizes."""
        self._blocking("Allgatherv", algorithm, sendbuf, recvbuf)

    Iallgatherv = nonblocking(Allgatherv)

    def Allgatherv_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecV,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Persistent Allgatherv."""
        return self._persistent("Allgatherv", (sendbuf, recvbuf), info, algorithm)

    def allgather(self, sendobj: Any, *, algorithm: str | None = None) -> list[Any]:
        """Allgather of any object; large arrays in it are not pickled."""
        from ..objects import objects

        context = self._context()
        name = context.asked_for("Allgatherv", algorithm)
        if name == "native":
            objects.agree(context, "allgather", name, bool)
            return super().allgather(sendobj)  # type: ignore[misc,no-any-return]
        return objects.allgather(context, sendobj, name)


class Sums(Collective):
    """Vectors that are combined: inside a group those of all, between groups those of
    the other one."""

    def Allreduce(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        op: MPI.Op = MPI.SUM,
        *,
        algorithm: str | None = None,
    ) -> None:
        """The sum over all ranks, or over the other group, to every rank."""
        self._blocking("Allreduce", algorithm, sendbuf, recvbuf, op)

    Iallreduce = nonblocking(Allreduce)

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
        """Reduce-Scatter: the sum of all, or of the other group, cut by the counts."""
        if isinstance(recvcounts, np.ndarray):
            recvcounts = recvcounts.tolist()
        self._blocking("Reduce_scatter", algorithm, sendbuf, recvbuf, recvcounts, op)

    Ireduce_scatter = nonblocking(Reduce_scatter)

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

    Ireduce_scatter_block = nonblocking(Reduce_scatter_block)

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


class Exchanges(Collective):
    """A block from every process to every process, or to each of the other group."""

    def Alltoall(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpecB,
        *,
        algorithm: str | None = None,
    ) -> None:
        """A block to, and one from, each rank, or each of the other group."""
        self._blocking("Alltoall", algorithm, sendbuf, recvbuf)

    Ialltoall = nonblocking(Alltoall)

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
        """Alltoall with blocks of different sizes."""
        self._blocking("Alltoallv", algorithm, sendbuf, recvbuf)

    Ialltoallv = nonblocking(Alltoallv)

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
