"""Gathering to all: the same methods between groups and inside one."""

from __future__ import annotations

from typing import Any, ClassVar

from mpi4py import MPI

from . import library, objects, requests
from .again import Again
from .call import checked_value
from .keys import Key


class Gathering(Again):
    """A communicator with an Allgather of isthmus in all its forms.

    `algorithm` may name one; what a form leaves to the MPI library goes to the class
    behind this one.
    """

    #: forms_inter or forms_intra
    _forms: ClassVar[Any]

    def Allgather(
        self, sendbuf: Any, recvbuf: Any, algorithm: str | None = None
    ) -> None:
        """Gather to All; between groups, everyone receives those of the other one."""
        send, recv, name, do = self._last.Allgather
        if send() is sendbuf and recv() is recvbuf and name is algorithm:
            do()
        else:
            self._again("Allgather", algorithm, sendbuf, recvbuf)

    def Allgatherv(
        self, sendbuf: Any, recvbuf: Any, algorithm: str | None = None
    ) -> None:
        """Gather to All Vector: as Allgather, with blocks of different sizes."""
        # `is_counted` without calling it, which shows where caches are cold
        send, recv, counts, name, do = self._last.Allgatherv
        try:
            array, given = recvbuf
        except Exception:  # not an array and its counts
            array = given = None
        if (
            recv() is array
            and send() is sendbuf
            and type(given) is list
            and counts == given
            and name is algorithm
        ):
            do()
        else:
            self._again("Allgatherv", algorithm, sendbuf, recvbuf)

    def _anew(self, key: Key, args: tuple[Any, ...], values: Any) -> None:
        op, algorithm, *_ = key
        if op not in ("Allgather", "Allgatherv"):
            super()._anew(key, args, values)
            return
        call = self._forms.prepare(self._context(), *args, algorithm, op)
        if call.name == "native":
            self._native(op)(*args)
        else:
            self._forms.blocking(call, values)

    def Iallgather(
        self, sendbuf: Any, recvbuf: Any, algorithm: str | None = None
    ) -> MPI.Request:
        """Nonblocking Gather to All."""
        return self._start("Iallgather", sendbuf, recvbuf, algorithm)

    def Iallgatherv(
        self, sendbuf: Any, recvbuf: Any, algorithm: str | None = None
    ) -> MPI.Request:
        """Nonblocking Gather to All Vector."""
        return self._start("Iallgatherv", sendbuf, recvbuf, algorithm)

    def _start(
        self, op: str, sendbuf: Any, recvbuf: Any, algorithm: str | None
    ) -> MPI.Request:
        call = self._forms.prepare(self._context(), sendbuf, recvbuf, algorithm, op)
        ours: MPI.Request | None = self._forms.nonblocking(call)
        if ours is not None:
            return ours
        recv = library.beside(call, recvbuf)
        native: MPI.Request = getattr(super(), op)(sendbuf, recv)
        return native if recv is recvbuf else requests.request(native, None, call)

    def Allgather_init(
        self,
        sendbuf: Any,
        recvbuf: Any,
        info: MPI.Info = MPI.INFO_NULL,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Persistent Gather to All."""
        return self._init("Allgather_init", sendbuf, recvbuf, info, algorithm)

    def Allgatherv_init(
        self,
        sendbuf: Any,
        recvbuf: Any,
        info: MPI.Info = MPI.INFO_NULL,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Persistent Gather to All Vector."""
        return self._init("Allgatherv_init", sendbuf, recvbuf, info, algorithm)

    def _init(
        self, op: str, sendbuf: Any, recvbuf: Any, info: Any, algorithm: str | None
    ) -> MPI.Prequest:
        call = self._forms.prepare(self._context(), sendbuf, recvbuf, algorithm, op)
        ours: MPI.Prequest | None = self._forms.persistent(call)
        if ours is not None:
            return ours
        recv = library.beside(call, recvbuf)
        native = requests.own(getattr(super(), op), sendbuf, recv, info)
        if native is None:
            if call.name != "auto":
                raise NotImplementedError(f"this MPI library has no {op}")
            return self._forms.driven(call)  # type: ignore[no-any-return]
        return native if recv is recvbuf else requests.kept(native, call)

    def allgather(self, sendobj: Any, algorithm: str | None = None) -> list[Any]:
        """Gather to All, for any object; large arrays in it are not pickled."""
        context = self._context()
        name = context.name(algorithm, True)

        def parse() -> list[Any]:
            self._forms.known(context, name)
            return [] if name == "native" else objects.encode(sendobj)

        data = checked_value(context, "allgather", name, parse)
        if name == "native":
            return super().allgather(sendobj)  # type: ignore[misc,no-any-return]
        return objects.allgather(self._forms, context, data, name)
