"""mpi4py's own collectives inside a group, with arrays on a device.

They are called on host memory that stands for the arrays. That is a matter of each rank
alone, so nothing is agreed, and no context is made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from mpi4py import MPI

from ... import settings
from ..memory import device
from ..waiting.waiting import Limit

if TYPE_CHECKING:
    from ..memory.staged import Copies

Class = TypeVar("Class", bound=type)
_ndarray = np.ndarray


class _Alone:
    """The owner of calls of the MPI library's."""

    number = 0
    limit = Limit()

    def refuse(self, number: int, error: BaseException | None = None) -> None:
        """Other calls do not depend on one that failed."""

    def failed(self, error: BaseException, *_: str) -> BaseException:
        """What to raise."""
        return error

    def check_usable(self) -> None:
        """They can always be made."""


_ALONE = _Alone()


def _copies(op: str, args: tuple[Any, ...], sends: bool, form: str) -> Copies | None:
    """The copies of a call; None where the MPI library takes its buffers."""
    if not device.among(args):
        return None
    way = device.way(settings.device(), device.taken())
    if way == "refuse":
        device.refuse()
    from ..memory import staged

    if way == "direct":
        staged.wait_for_producers(args)
        return None
    if form and MPI.Query_thread() != MPI.THREAD_MULTIPLE:
        raise RuntimeError(
            f"the nonblocking and persistent forms of {op} need MPI_THREAD_MULTIPLE "
            "where arrays are on a device"
        )
    return staged.copies(op, args, sends, form == "init")


def _call(
    native: Any, form: str, copies: Copies, self: Any, *more: Any, **named: Any
) -> Any:
    from ..engine import devices

    call = partial(native, self, *copies.args, *more, **named)
    if form == "I":
        return devices.beside(call, copies, _ALONE)
    if form == "init":
        return devices.again(call(), copies, _ALONE)
    copies.bring()
    result = call()
    copies.take()
    return result


def _of_one(op: str, form: str, native: Any) -> Any:
    @wraps(native)
    def method(self: Any, buf: Any, root: int = 0, *args: Any, **kwargs: Any) -> Any:
        if type(buf) is not _ndarray:
            copies = _copies(op, (buf,), root == self.rank, form)
            if copies is not None:
                return _call(native, form, copies, self, root, *args, **kwargs)
        return native(self, buf, root, *args, **kwargs)

    return method


def _of_two(op: str, form: str, native: Any) -> Any:
    @wraps(native)
    def method(self: Any, sendbuf: Any, recvbuf: Any, *args: Any, **kwargs: Any) -> Any:
        if type(sendbuf) is not _ndarray or type(recvbuf) is not _ndarray:
            copies = _copies(op, (sendbuf, recvbuf), False, form)
            if copies is not None:
                return _call(native, form, copies, self, *args, **kwargs)
        return native(self, sendbuf, recvbuf, *args, **kwargs)

    return method


def staging(base: type, *operations: str) -> Callable[[Class], Class]:
    """A class decorator: those operations that are still mpi4py's own take arrays on a
    device, in all forms."""

    def decorate(cls: Class) -> Class:
        for op in operations:
            wrap = _of_one if op == "Bcast" else _of_two
            forms = ("", op), ("I", f"I{op.lower()}"), ("init", f"{op}_init")
            for form, name in forms:
                native = getattr(base, name, None)
                if native is not None and getattr(cls, name) is native:
                    setattr(cls, name, wrap(op, form, native))
        return cls

    return decorate
