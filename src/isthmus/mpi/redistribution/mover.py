"""The three forms in which fields are moved, by a redistribution or a remapping.

The two differ in the fields that they accept and in the steps of their plans. This file
has the rest: agreement of all ranks before the first call, plans by the values of the
fields, and the operations on them.
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

#: one field, or several that travel together
Fields: TypeAlias = np.ndarray | Sequence[np.ndarray]
#: numbers of the movers of this process, which keep their plans apart
_mover_numbers = count()


class FieldsCall:
    """A call that moves the fields of this rank."""

    def __init__(
        self,
        name: str,
        source: Sequence[np.ndarray],
        target: Sequence[np.ndarray],
        *,
        packer: Packer = HOST_PACKER,
        copies: Copies | None = None,
    ) -> None:
        """`source` and `target` are arrays of the host, or stand for fields on a device
        that `copies` stages; or they say where fields lie on a device, and `packer`
        copies their bytes."""
        self.name = self.label = name
        self.source, self.target, self.packer = source, target, packer
        self.copies = copies
        #: for each field, the operator on elements that several ranks have
        self.operators: Sequence[tuple[MPI.Op, MPI.Datatype]] = ()

    @property
    def values(self) -> tuple[Any, ...]:
        """The fields without their addresses, as plans are found by."""
        fields = (*self.source, *self.target)
        layouts = [(x.shape, x.strides, x.dtype) for x in fields]
        copied = None if self.copies is None else self.copies.values
        return (len(self.source), self.packer is HOST_PACKER, copied, *layouts)

    def buffers(self) -> list[Any]:
        """The buffers of the operation: those of every operation, then the memory of
        each field."""
        fields = map(memory_of, (*self.source, *self.target))
        is_host = self.packer is HOST_PACKER
        memories = [view(x) if is_host else x for x in fields]
        return [*[None] * FURTHER, *memories]

    def with_copies(self, plan: Plan) -> Plan:
        """The plan, with copies from and to devices beside its messages."""
        if self.copies is None:
            return plan
        from ..buffers.devices.calls import with_copies

        element = max((x.dtype.itemsize for x in self.target), default=1)
        return with_copies(plan, self.copies, self._arrays(), element)

    def begin_transfer(self, plan: Plan) -> Transfer:
        """The copies between host and devices of a call that is about to begin."""
        from ..buffers.devices.transfer import Transfer

        assert self.copies is not None and plan.transfers is not None
        return Transfer(plan.transfers, self.copies, self._arrays())

    def _arrays(self) -> dict[int, int]:
        """The number of the staged array for each buffer that stands for one."""
        assert self.copies is not None
        return {FURTHER + place: k for place, k in self.copies.arrays.items()}


class Mover:
    """Moves fields for one redistribution or remapping, by the plans that it
    compiles."""

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
        """`read` checks the arguments of a call; `signature` of a call must be equal on
        all ranks, and `words` tells a signature in errors; `compiled` makes the plan of
        a call."""
        self.context, self.name = context, name
        self._read_own, self._compiled = read, compiled
        self._signature, self._words = signature, words
        self._has_agreed = False
        self._number = next(_mover_numbers)

    def move(self, field: Fields, into: Fields | None = None) -> None:
        """Move fields, and wait until they have come."""
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
        """Release the plans."""
        own = self.name, self._number
        self.context.plans.forget(lambda values: values[:2] == own)

    def _operation(self, channel: Channel, plan: Plan, call: FieldsCall) -> Operation:
        call.packer.begin()
        return Operation(channel, plan, call, call.buffers())

    def _plan(self, call: FieldsCall) -> Plan:
        """The plan for fields of some shapes, strides and types."""
        values = self.name, self._number, *call.values
        compiled = partial(self._compiled, values, call)
        return self.context.plans.find(values, compiled)

    def _read(self, field: Fields, into: Fields | None) -> FieldsCall:
        """The fields of a call, checked: for the first call, and in the checked mode,
        together with all ranks."""
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
        """The fields of this rank, if those of all ranks are right and match."""
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
    """The call on the fields.

    Of fields on a device, the call has the host memory that stands for them; or, where
    steps only pack them, the places on the device, which only the library of the device
    may touch.
    """
    fields = [*source, *target]
    n = len(source)
    if any(type(x) is not np.ndarray and is_on_device(x) for x in fields):
        from ..buffers.devices import fields as devices

        make_call = partial(FieldsCall, name)
        call: FieldsCall = devices.located(
            make_call, context, fields, n, may_pack=may_pack
        )
        return call
    return FieldsCall(name, source, target)


def listed(fields: Fields) -> list[np.ndarray]:
    """One field, or several, as a list."""
    return list(fields) if isinstance(fields, list | tuple) else [fields]  # type: ignore[list-item]


def check_field(what: str, x: Any, *, is_written: bool) -> None:
    """Refuse an object that is no array of numbers, or a read-only array to be
    written."""
    if not isinstance(x, np.ndarray):
        raise TypeError(f"{what} must be a numpy array, not {type(x).__name__}")
    if x.dtype.hasobject:
        raise TypeError(f"{what} has Python objects")
    if is_written and not x.flags.writeable:
        raise ValueError(f"{what} is read-only")


def check_disjoint_fields(
    source: Sequence[np.ndarray], target: Sequence[np.ndarray]
) -> None:
    """Refuse a source and a target field that overlap in memory."""
    if any(_overlap(x, y) for x in source for y in target):
        raise ValueError("a source and a target field overlap in memory")


def _overlap(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether two arrays overlap, or may overlap where an answer would take long."""
    work_limit: Any = 1000
    try:
        return bool(np.shares_memory(x, y, work_limit))
    except RuntimeError:  # numpy's TooHardError
        return True
