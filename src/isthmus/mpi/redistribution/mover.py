"""The three forms in which fields are moved, whatever becomes of them on the way.

A redistribution and a remapping differ in what they accept and in the steps of their
plans. All else is here: that all ranks agree before the first call, the plans by the
values of the fields, and the operations on them.
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
_numbers = count()


class FieldsCall:
    """A call that moves fields: those of this rank, as buffers."""

    def __init__(
        self,
        name: str,
        source: Sequence[np.ndarray],
        target: Sequence[np.ndarray],
        *,
        packer: Packer = HOST_PACKER,
        copies: Copies | None = None,
    ) -> None:
        """Arrays are of the host, or stand for fields on a device that are copied; or
        they say where fields lie on a device, which a packer copies."""
        self.name = self.label = name
        self.source, self.target, self.packer = source, target, packer
        self.copies = copies
        #: what combines elements of each field that come from several ranks
        self.operators: Sequence[tuple[MPI.Op, MPI.Datatype]] = ()

    @property
    def values(self) -> tuple[Any, ...]:
        """What the fields are, without where they lie."""
        fields = (*self.source, *self.target)
        known = [(x.shape, x.strides, x.dtype) for x in fields]
        copied = None if self.copies is None else self.copies.values
        return (len(self.source), self.packer is HOST_PACKER, copied, *known)

    def buffers(self) -> list[Any]:
        """The memory of each field, after the buffers that every operation has."""
        fields = map(memory_of, (*self.source, *self.target))
        is_host = self.packer is HOST_PACKER
        memories = [view(x) if is_host else x for x in fields]
        return [*[None] * FURTHER, *memories]

    def with_copies(self, plan: Plan) -> Plan:
        """The plan with copies from and to devices beside its messages."""
        if self.copies is None:
            return plan
        from ..buffers.devices.calls import with_copies

        element = max((x.dtype.itemsize for x in self.target), default=1)
        return with_copies(plan, self.copies, self._arrays(), element)

    def begin_transfer(self, plan: Plan) -> Transfer:
        """The copies of a call that is about to begin."""
        from ..buffers.devices.transfer import Transfer

        assert self.copies is not None and plan.transfers is not None
        return Transfer(plan.transfers, self.copies, self._arrays())

    def _arrays(self) -> dict[int, int]:
        assert self.copies is not None
        return {FURTHER + place: k for place, k in self.copies.arrays.items()}


class Mover:
    """Moves the fields that one object accepts, by the plans that it compiles."""

    def __init__(
        self,
        context: Context,
        name: str,
        read: Callable[[Any, Any], FieldsCall],
        signature: Callable[[FieldsCall], Any],
        words: Callable[[Any], str],
        compiled: Callable[[tuple[Any, ...], FieldsCall], Plan],
    ) -> None:
        """`read` checks what the user passed; `signature` is what all ranks must have
        alike, and `words` says it to people."""
        self.context, self.name = context, name
        self._accepted, self._compiled = read, compiled
        self._signature, self._words = signature, words
        self._has_agreed = False
        self._number = next(_numbers)

    def move(self, field: Fields, into: Fields | None = None) -> None:
        """Move fields, and wait."""
        call = self._read(field, into)
        self._operation(self.context.channel, self._plan(call), call).wait()

    def start(self, field: Fields, into: Fields | None = None) -> MPI.Request:
        """Begin to move fields."""
        call = self._read(field, into)
        return start(self._operation(self.context.channel, self._plan(call), call))

    def init(self, field: Fields, into: Fields | None = None) -> MPI.Prequest:
        """A persistent request; collective."""
        call = self._read(field, into)
        if call.copies is not None:
            call.copies.is_persistent = True
        check_threads(self.context, self.name.lower())
        plan = self._plan(call)
        with self.context.uninterrupted(self.name):
            make = partial(self.context.persistent_channel, plan)
            channel = bounded(make, self.context.limit)
            assert channel is not None  # no rank needs memory of its node
            return persistent(partial(self._operation, channel, plan, call), channel)

    def forget(self) -> None:
        """Give the plans up."""
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
        """The fields of a call, checked; the first time, and in the checked mode,
        together with all ranks."""
        c = self.context
        c.check_usable()
        if self._has_agreed and not c.checked:
            return self._accepted(field, into)
        call = error = None
        try:
            call = self._accepted(field, into)
        except BaseException as wrong:
            error = wrong
        with c.uninterrupted(self.name):
            return bounded(partial(self._agreed, call, error), c.limit)

    def _agreed(
        self, call: FieldsCall | None, error: BaseException | None
    ) -> FieldsCall:
        """The fields of this rank, if those of all are right and match."""
        name = f"isthmus.{self.name}"

        def mine() -> FieldsCall:
            if error is not None:
                raise error
            assert call is not None
            return call

        checked = without_error(self.context, mine, name)
        signature = self._signature(checked)
        agree(self.context, self.context.comm, signature, self._words, name)
        self._has_agreed = True
        return checked


def located(
    context: Context,
    name: str,
    source: list[np.ndarray],
    target: list[np.ndarray],
    *,
    may_pack: bool,
) -> FieldsCall:
    """The call on the fields; of those on a device, on the host memory that stands for
    them, or, where steps only pack them, on where they lie: then nobody but their
    library may touch them."""
    fields = [*source, *target]
    n = len(source)
    if any(type(x) is not np.ndarray and is_on_device(x) for x in fields):
        from ..buffers.devices import fields as devices

        make = partial(FieldsCall, name)
        call: FieldsCall = devices.located(make, context, fields, n, may_pack=may_pack)
        return call
    return FieldsCall(name, source, target)


def listed(x: Fields) -> list[np.ndarray]:
    """Fields as a list."""
    return list(x) if isinstance(x, list | tuple) else [x]  # type: ignore[list-item]


def check_field(what: str, x: Any, *, is_written: bool) -> None:
    """Refuse what is no array of numbers, or cannot be written and must be."""
    if not isinstance(x, np.ndarray):
        raise TypeError(f"{what} must be a numpy array, not {type(x).__name__}")
    if x.dtype.hasobject:
        raise TypeError(f"{what} has Python objects")
    if is_written and not x.flags.writeable:
        raise ValueError(f"{what} is read-only")


def check_apart(source: Sequence[np.ndarray], target: Sequence[np.ndarray]) -> None:
    """Refuse what is sent and received at once."""
    if any(_overlap(x, y) for x in source for y in target):
        raise ValueError("a source and a target field overlap in memory")


def _overlap(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether two arrays have memory in common, or may have if that is hard to say."""
    work: Any = 1000
    try:
        return bool(np.shares_memory(x, y, work))
    except RuntimeError:  # numpy's TooHardError
        return True
