"""mpi4py's own collectives inside a group, and its messages, with arrays on a device.

They are called on host memory that stands for the arrays. That is a matter of each rank
alone, so nothing is agreed, and no context is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from mpi4py import MPI

from ... import settings
from ..buffers import on_devices
from ..waiting.waiting import TimeLimit

if TYPE_CHECKING:
    from ..buffers.devices.staged import Copies
    from ..buffers.devices.transfer import Transfer
    from ..context.channel import Channel
    from ..plan.operation import Operation

Class = TypeVar("Class", bound=type)
_ndarray = np.ndarray


class _LoneContext:
    """What calls of mpi4py's own need of a communicator: no limit, and nothing that
    other calls depend on."""

    number, refused = 0, ""
    limit = TimeLimit()

    def failed(self, error: BaseException, *_: Any, **__: Any) -> BaseException:
        """The error to raise."""
        return error

    def check_usable(self) -> None:
        """They can always be made."""


class _LoneChannel:
    """Calls that are not counted, as the MPI library makes them."""

    context = _LoneContext()
    scratch = isend = irecv = None

    @property
    def turns(self) -> _LoneChannel:
        """Nobody takes turns with these calls."""
        return self

    def count(self, operation: Operation) -> None:
        """Let a call go ahead."""
        operation.number = 0

    def end(self, operation: Operation) -> None:
        """A call is over."""

    def check(self) -> None:
        """Nobody tells of failures."""

    def advance_others(self, waiting: Operation) -> None:
        """Bring forward what else is under way in this process."""
        from ..requests.progress import progress

        progress.advance_others(waiting)

    def close(self) -> None:
        """There is nothing to give back."""


#: a channel, as far as the steps of such calls use one
_LONE = cast("Channel", _LoneChannel())


class _StagedCall:
    """A call of mpi4py's own between copies from and to devices."""

    operators: Sequence[tuple[MPI.Op, MPI.Datatype]] = ()

    def __init__(self, name: str, start: Callable[[], Any], copies: Copies) -> None:
        """`start` starts it on the host memory that stands for the arrays."""
        from ..buffers.devices.overlap import around
        from ..buffers.selection import HOST_PACKER, Packer
        from ..plan.native import NativeCall
        from ..plan.plan import Plan
        from ..plan.steps import FURTHER

        self.name, self._start, self._copies = name, start, copies
        numbers = range(len(copies.staged))
        sizes = {k: copies.staged[k].nbytes for k in numbers}
        read = [k for k in numbers if copies.read[k]]
        written = [k for k in numbers if copies.written[k]]
        native = NativeCall(name, is_raw=True)
        self.plan = around(Plan((), "native", native=native), sizes, read, written)
        self._buffers = FURTHER
        self.packer: Packer = HOST_PACKER

    def operation(self) -> Operation:
        """The call under way."""
        from ..plan.operation import Operation

        return Operation(_LONE, self.plan, self, [None] * self._buffers)

    def begin_transfer(self, plan: Any) -> Transfer:
        """The copies of a call that is about to begin."""
        from ..buffers.devices.transfer import Transfer

        arrays = {k: k for k in range(len(self._copies.staged))}
        return Transfer(plan.transfers, self._copies, arrays)

    def start_native(self, plan: Any, buffers: Any) -> MPI.Request:
        """Start mpi4py's own call."""
        request: MPI.Request = self._start()
        return request


def _copies(op: str, args: tuple[Any, ...], sends: bool, form: str) -> Copies | None:
    """The copies of a call; None where the MPI library takes its buffers."""
    if not on_devices.among(args):
        return None
    way = on_devices.way(settings.device(), on_devices.taken())
    if way == "refuse":
        on_devices.refuse()
    from ..buffers.devices import staged

    if way == "direct":
        staged.wait_for_producers(args)
        return None
    if form and MPI.Query_thread() != MPI.THREAD_MULTIPLE:
        raise RuntimeError(
            f"the nonblocking and persistent forms of {op} need MPI_THREAD_MULTIPLE "
            "where arrays are on a device"
        )
    return staged.copies(op, args, sends=sends, is_persistent=form == "init")


def _call(
    native: Any, form: str, copies: Copies, self: Any, *more: Any, **named: Any
) -> Any:
    call = partial(native, self, *copies.args, *more, **named)
    name = getattr(native, "__name__", "call")
    if form == "I":
        from ..requests.request import start

        return start(_StagedCall(name, call, copies).operation())
    if form == "init":
        from ..requests.persistent import persistent

        request = call()
        staged_call = _StagedCall(name, partial(_started, request), copies)
        return persistent(staged_call.operation, _LONE)
    copies.fetch_all()
    result = call()
    copies.store_all()
    return result


def _started(request: MPI.Prequest) -> MPI.Prequest:
    request.Start()
    return request


def _staged(op: str, form: str, native: Any) -> Any:
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
            forms = ("", op), ("I", f"I{op.lower()}"), ("init", f"{op}_init")
            for form, name in forms:
                native = getattr(base, name, None)
                if native is not None and getattr(cls, name) is native:
                    setattr(cls, name, _staged(op, form, native))
        return cls

    return decorate


# -- single messages: one end of a Bcast, as far as copies are concerned


def _sending(native: Any) -> Any:
    """What is sent is copied first; so the request of a nonblocking send is mpi4py's,
    which keeps the copy."""

    @wraps(native)
    def method(self: Any, buf: Any, *args: Any, **kwargs: Any) -> Any:
        if type(buf) is not _ndarray:
            copies = _copies("Bcast", (buf,), True, "")
            if copies is not None:
                copies.fetch_all()
                (buf,) = copies.args
        return native(self, buf, *args, **kwargs)

    return method


def _receiving(native: Any) -> Any:
    """What is not written stays: all of it is copied before and after."""

    @wraps(native)
    def method(self: Any, buf: Any, *args: Any, **kwargs: Any) -> Any:
        if type(buf) is not _ndarray:
            copies = _copies("Bcast", (buf,), False, "")
            if copies is not None:
                return _call(native, "", copies, self, *args, **kwargs)
        return native(self, buf, *args, **kwargs)

    return method


def _exchanging(native: Any) -> Any:
    @wraps(native)
    def method(
        self: Any,
        sendbuf: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        def call(self: Any, sendbuf: Any, recvbuf: Any) -> Any:
            return native(self, sendbuf, dest, sendtag, recvbuf, *args, **kwargs)

        copies = _copies("Sendrecv", (sendbuf, recvbuf), False, "")
        if copies is not None:
            return _call(call, "", copies, self)
        return call(self, sendbuf, recvbuf)

    return method


def _refusing(native: Any) -> Any:
    """Nobody would copy when such a request is started, or complete."""

    @wraps(native)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        some = *args, *kwargs.values()
        if on_devices.among(some):
            if on_devices.way(settings.device(), on_devices.taken()) != "direct":
                raise ValueError(
                    f"{native.__name__}: the buffer is in the memory of a device; "
                    "pass host memory, or use the blocking form"
                )
            from ..buffers.devices import staged

            staged.wait_for_producers(some)
        return native(self, *args, **kwargs)

    return method


#: how each method for messages takes arrays on a device
_MESSAGES = {
    _sending: "Send Bsend Rsend Ssend Isend Ibsend Irsend Issend",
    _receiving: "Recv Sendrecv_replace",
    _exchanging: "Sendrecv",
    _refusing: "Irecv Isendrecv Isendrecv_replace Send_init Bsend_init Rsend_init "
    "Ssend_init Recv_init Psend_init Precv_init",
}


def staging_messages(cls: Class) -> Class:
    """A class decorator: messages, which are mpi4py's own, take arrays on a device."""
    for wrap, names in _MESSAGES.items():
        for name in names.split():
            native = getattr(cls, name, None)  # mpi4py 4.0 has no Isendrecv
            if native is not None:
                setattr(cls, name, wrap(native))
    return cls


def messages(cls: Class) -> Class:
    """The same where there may be such arrays: others do not pay for it."""
    return staging_messages(cls) if on_devices.present() else cls
