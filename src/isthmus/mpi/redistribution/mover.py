"""The three forms of a redistribution or a remapping, and the plans behind.

Redistributions and remappings differ in the accepted fields and in the steps of plans.
A mover has the common rest: agreement of all ranks before the first call, plans by the
values of fields, and operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from mpi4py import MPI

from ..buffers.dlpack import on_device as is_on_device
from ..buffers.selection import HOST_PACKER, Packer
from ..buffers.user_buffer import view
from ..forms import check_threads
from ..plan.operation import Operation
from ..plan.plan import Plan
from ..plan.steps import FURTHER
from ..requests.persistent import persistent
from ..requests.request import start
from ..waiting.bounded import bounded
from .agreement import agree, without_error
from .fields import memory_of

if TYPE_CHECKING:
    from ..buffers.devices.staged import Copies
    from ..buffers.devices.transfer import Transfer
    from ..context.channel import Channel
    from ..context.context import Context

#: a field, or several fields of a call
Fields: TypeAlias = np.ndarray | Sequence[np.ndarray]
#: the numbers of the movers of this process, parts of the keys of plans
_mover_numbers = count()


class FieldsCall:
    """A call that moves fields of this rank."""

    def __init__(
        self,
        name: str,
        source: Sequence[np.ndarray],
        target: Sequence[np.ndarray],
        *,
        packer: Packer = HOST_PACKER,
        copies: Copies | None = None,
    ) -> None:
        """With arrays of the host, or with places of fields on a device.

        Host arrays may stand for fields on a device that `copies` stages. At places on
        a device only `packer` may copy bytes.
        """
        self.name = self.label = name
        self.source, self.target, self.packer = source, target, packer
        self.copies = copies
        #: the operator on the elements of each field
        self.operators: Sequence[tuple[MPI.Op, MPI.Datatype]] = ()

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of the call in the key of a plan: fields without addresses."""
        fields = (*self.source, *self.target)
        layouts = [(x.shape, x.strides, x.dtype) for x in fields]
        copied = None if self.copies is None else self.copies.values
        return (len(self.source), self.packer is HOST_PACKER, copied, *layouts)

    def buffers(self) -> list[Any]:
        """The buffers of the operation: after the standard ones, one for each field."""
        fields = map(memory_of, (*self.source, *self.target))
        is_host = self.packer is HOST_PACKER
        memories = [view(x) if is_host else x for x in fields]
        return [*[None] * FURTHER, *memories]

    def with_copies(self, plan: Plan) -> Plan:
        """The plan with copies from and to devices beside the messages."""
        if self.copies is None:
            return plan
        from ..buffers.devices.calls import with_copies

        element = max((x.dtype.itemsize for x in self.target), default=1)
        return with_copies(plan, self.copies, self._arrays(), element)

    def begin_transfer(self, plan: Plan) -> Transfer:
        """Begin the copies between host and devices for a call."""
        from ..buffers.devices.transfer import Transfer

        assert self.copies is not None and plan.transfers is not None
        return Transfer(plan.transfers, self.copies, self._arrays())

    def _arrays(self) -> dict[int, int]:
        """The number of the staged array, by number of the buffer."""
        assert self.copies is not None
        return {FURTHER + place: k for place, k in self.copies.arrays.items()}


class Mover:
    """The calls of a redistribution or a remapping."""

    def __init__(
        self,
        context: Context,
        name: str,
        *,
        read: Callable[[Any, Any], FieldsCall],
        signature: Callable[[FieldsCall], Any],
        words: Callable[[Any], str],
        compiled: Callable[[tuple[Any, ...], FieldsCall], Plan],
    ) -> None:
        """With the functions in which redistributions and remappings differ.

        `read` checks the arguments of a call, `compiled` returns the plan of a call.
        `signature` of a call must be equal on all ranks, since messages would not match
        otherwise; `words` gives a signature for errors.
        """
        self.context, self.name = context, name
        self._read_own, self._compiled = read, compiled
        self._signature, self._words = signature, words
        self._has_agreed = False
        self._number = next(_mover_numbers)

    def move(self, field: Fields, into: Fields | None = None) -> None:
        """Move fields, and wait for the end."""
        call = self._read(field, into)
        self._operation(self.context.channel, self._plan(call), call).wait()

    def start(self, field: Fields, into: Fields | None = None) -> MPI.Request:
        """Start to move fields, and return an MPI request."""
        call = self._read(field, into)
        return start(self._operation(self.context.channel, self._plan(call), call))

    def init(self, field: Fields, into: Fields | None = None) -> MPI.Prequest:
        """A persistent request that moves the fields; collective."""
        call = self._read(field, into)
        if call.copies is not None:
            call.copies.is_persistent = True
        check_threads(self.context, self.name.lower())
        plan = self._plan(call)
        with self.context.uninterrupted(self.name):
            make_channel = partial(self.context.persistent_channel, plan)
            channel = bounded(make_channel, self.context.limit)
            assert channel is not None  # no rank needs memory of its node
            return persistent(partial(self._operation, channel, plan, call), channel)

    def forget(self) -> None:
        """Release the plans of the mover."""
        own = self.name, self._number
        self.context.plans.forget(lambda values: values[:2] == own)

    def _operation(self, channel: Channel, plan: Plan, call: FieldsCall) -> Operation:
        call.packer.begin()
        return Operation(channel, plan, call, call.buffers())

    def _plan(self, call: FieldsCall) -> Plan:
        """The plan for the shapes, strides and types of a call's fields."""
        values = self.name, self._number, *call.values
        compiled = partial(self._compiled, values, call)
        return self.context.plans.find(values, compiled)

    def _read(self, field: Fields, into: Fields | None) -> FieldsCall:
        """The checked fields of a call.

        All ranks agree at the first call and in the checked mode. Later calls are not
        compared, since an agreement takes several collectives.
        """
        context = self.context
        context.check_usable()
        if self._has_agreed and not context.checked:
            return self._read_own(field, into)
        call = error = None
        try:
            call = self._read_own(field, into)
        except BaseException as exception:
            error = exception
        with context.uninterrupted(self.name):
            return bounded(partial(self._agreed, call, error), context.limit)

    def _agreed(
        self, call: FieldsCall | None, error: BaseException | None
    ) -> FieldsCall:
        """The call of this rank, if the fields of all ranks are right and match."""
        name = f"isthmus.{self.name}"

        def own_call() -> FieldsCall:
            if error is not None:
                raise error
            assert call is not None
            return call

        checked = without_error(self.context, own_call, name)
        signature = self._signature(checked)
        agree(self.context, self.context.comm, signature, self._words, name)
        self._has_agreed = True
        return checked


def fields_call(
    context: Context,
    name: str,
    source: list[np.ndarray],
    target: list[np.ndarray],
    *,
    may_pack: bool,
) -> FieldsCall:
    """The call on fields of the host or of a device.

    For fields on a device, the call has host memory that stands for the fields, or with
    `may_pack` places on the device, which only the library of the fields may touch.
    """
    fields = [*source, *target]
    n = len(source)
    if any(type(x) is not np.ndarray and is_on_device(x) for x in fields):
        from ..buffers.devices import fields as devices

        make_call = partial(FieldsCall, name)
        return devices.located(make_call, context, fields, n, may_pack=may_pack)
    return FieldsCall(name, source, target)


def listed(fields: Fields) -> list[np.ndarray]:
    """A list of the fields of an argument."""
    return list(fields) if isinstance(fields, list | tuple) else [fields]  # type: ignore[list-item]


def check_field(name: str, x: Any, *, is_written: bool) -> None:
    """Refuse an object that is no array of numbers, or a read-only target."""
    if not isinstance(x, np.ndarray):
        raise TypeError(f"{name} must be a numpy array, not {type(x).__name__}")
    if x.dtype.hasobject:
        raise TypeError(f"{name} has Python objects")
    if is_written and not x.flags.writeable:
        raise ValueError(f"{name} is read-only")


def check_disjoint_fields(
    source: Sequence[np.ndarray], target: Sequence[np.ndarray]
) -> None:
    """Refuse a source and a target field that overlap in memory."""
    if any(_overlap(x, y) for x in source for y in target):
        raise ValueError("a source and a target field overlap in memory")


def _overlap(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether two arrays overlap, or may overlap if the search would take long."""
    work_limit: Any = 1000
    try:
        return bool(np.shares_memory(x, y, work_limit))
    except RuntimeError:  # numpy's TooHardError
        return True
