"""mpi4py's own collectives and messages, with arrays on a device.

If the MPI library does not take device memory, mpi4py's methods get a copy in host
memory. Copies concern each rank alone, so no rank agrees on anything with others, and
the communicator needs no context.
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


class _NoContext:
    """The context of calls outside of any channel: no limit, and never refused."""

    number, refused = 0, ""
    limit = TimeLimit()

    def failed(self, error: BaseException, *_: Any, **__: Any) -> BaseException:
        """The error as it is, since no other rank must hear of the failure."""
        return error

    def check_usable(self) -> None:
        """Do nothing, since calls are always possible."""


class _UncountedChannel:
    """The channel of calls that have no number, since the MPI library orders its own.

    An operation calls the methods of a channel in any case; here they do nothing.
    """

    context = _NoContext()
    scratch = isend = irecv = None

    @property
    def turns(self) -> _UncountedChannel:
        return self

    def count(self, operation: Operation) -> None:
        operation.number = 0

    def end(self, operation: Operation) -> None:
        pass

    def check(self) -> None:
        pass

    def advance_others(self, waiting: Operation) -> None:
        """Advance the other operations of this process."""
        from ..requests.progress import progress

        progress.advance_others(waiting)

    def close(self) -> None:
        pass


#: a channel, as far as the steps of a staged call use a channel
_UNCOUNTED = cast("Channel", _UncountedChannel())


class _StagedCall:
    """A call of mpi4py's own method between copies from and to devices."""

    operators: Sequence[tuple[MPI.Op, MPI.Datatype]] = ()

    def __init__(self, name: str, start: Callable[[], Any], copies: Copies) -> None:
        """A call that `start` starts, with host memory in place of the arrays."""
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
        """A new operation of the call."""
        from ..plan.operation import Operation

        return Operation(_UNCOUNTED, self.plan, self, [None] * self._buffers)

    def begin_transfer(self, plan: Any) -> Transfer:
        """Begin the copies from and to devices."""
        from ..buffers.devices.transfer import Transfer

        arrays = {k: k for k in range(len(self._copies.staged))}
        return Transfer(plan.transfers, self._copies, arrays)

    def start_native(self, plan: Any, buffers: Any) -> MPI.Request:
        """Start the call of mpi4py's own method."""
        request: MPI.Request = self._start()
        return request


def _copies_for(
    operation: str, args: tuple[Any, ...], sends: bool, form: str
) -> Copies | None:
    """The copies of a call; None if the MPI library takes the buffers as they are."""
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
            f"the nonblocking and persistent forms of {operation} need "
            "MPI_THREAD_MULTIPLE where arrays are on a device"
        )
    return staged.copies(operation, args, sends=sends, is_persistent=form == "init")


def _call_staged(
    native: Any, form: str, copies: Copies, comm: Any, *rest: Any, **named: Any
) -> Any:
    """Call mpi4py's own method on host memory, in the form "", "I" or "init"."""
    call = partial(native, comm, *copies.args, *rest, **named)
    name = getattr(native, "__name__", "call")
    if form == "I":
        from ..requests.request import start

        return start(_StagedCall(name, call, copies).operation())
    if form == "init":
        from ..requests.persistent import persistent

        request = call()
        staged_call = _StagedCall(name, partial(_start, request), copies)
        return persistent(staged_call.operation, _UNCOUNTED, request)
    copies.fetch_all()
    result = call()
    copies.store_all()
    return result


def _start(request: MPI.Prequest) -> MPI.Prequest:
    request.Start()
    return request


def stages_collectives(base: type, *operations: str) -> Callable[[Class], Class]:
    """A class decorator: operations that are mpi4py's own take arrays on a device.

    All forms do, unless the class has a method of its own.
    """

    def decorate(cls: Class) -> Class:
        for operation in operations:
            names = operation, f"I{operation.lower()}", f"{operation}_init"
            for form, name in zip(("", "I", "init"), names, strict=True):
                native = getattr(base, name, None)
                if native is not None and getattr(cls, name) is native:
                    setattr(cls, name, _staged_collective(operation, form, native))
        return cls

    return decorate


def _staged_collective(operation: str, form: str, native: Any) -> Any:
    @wraps(native)
    def method(self: Any, sendbuf: Any, recvbuf: Any, *args: Any, **kwargs: Any) -> Any:
        if type(sendbuf) is not _ndarray or type(recvbuf) is not _ndarray:
            copies = _copies_for(operation, (sendbuf, recvbuf), False, form)
            if copies is not None:
                return _call_staged(native, form, copies, self, *args, **kwargs)
        return native(self, sendbuf, recvbuf, *args, **kwargs)

    return method


# -- messages, with copies as at an end of a Bcast


def _staged_send(native: Any) -> Any:
    """A send of a copy. The request of a nonblocking send is mpi4py's own, because it
    keeps the copy alive."""

    @wraps(native)
    def method(self: Any, buf: Any, *args: Any, **kwargs: Any) -> Any:
        if type(buf) is not _ndarray:
            copies = _copies_for("Bcast", (buf,), True, "")
            if copies is not None:
                copies.fetch_all()
                (buf,) = copies.args
        return native(self, buf, *args, **kwargs)

    return method


def _staged_receive(native: Any) -> Any:
    """A receive into a copy. The buffer is copied before and after, since bytes that no
    message overwrites must stay."""

    @wraps(native)
    def method(self: Any, buf: Any, *args: Any, **kwargs: Any) -> Any:
        if type(buf) is not _ndarray:
            copies = _copies_for("Bcast", (buf,), False, "")
            if copies is not None:
                return _call_staged(native, "", copies, self, *args, **kwargs)
        return native(self, buf, *args, **kwargs)

    return method


def _staged_exchange(native: Any) -> Any:
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

        copies = _copies_for("Sendrecv", (sendbuf, recvbuf), False, "")
        if copies is not None:
            return _call_staged(call, "", copies, self)
        return call(self, sendbuf, recvbuf)

    return method


def _refused_message(native: Any) -> Any:
    """A method that refuses arrays on devices, since its request starts or completes
    inside of MPI, where no code of isthmus could copy."""

    @wraps(native)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        arguments = *args, *kwargs.values()
        if on_devices.among(arguments):
            if on_devices.way(settings.device(), on_devices.taken()) != "direct":
                raise ValueError(
                    f"{native.__name__}: the buffer is in the memory of a device; "
                    "pass host memory, or use the blocking form"
                )
            from ..buffers.devices import staged

            staged.wait_for_producers(arguments)
        return native(self, *args, **kwargs)

    return method


#: the wrapper of each method for messages
_MESSAGE_WRAPPERS = {
    _staged_send: "Send Bsend Rsend Ssend Isend Ibsend Irsend Issend",
    _staged_receive: "Recv Sendrecv_replace",
    _staged_exchange: "Sendrecv",
    _refused_message: "Irecv Isendrecv Isendrecv_replace Send_init Bsend_init "
    "Rsend_init Ssend_init Recv_init Psend_init Precv_init",
}


def stages_messages(cls: Class) -> Class:
    """A class decorator: mpi4py's methods for messages take arrays on a device."""
    for wrap, names in _MESSAGE_WRAPPERS.items():
        for name in names.split():
            native = getattr(cls, name, None)  # mpi4py 4.0 has no Isendrecv
            if native is not None:
                setattr(cls, name, wrap(native))
    return cls


def stages_messages_if_devices(cls: Class) -> Class:
    """A class decorator: `stages_messages` on a machine with devices.

    On other machines every message would take longer otherwise.
    """
    return stages_messages(cls) if on_devices.present() else cls
