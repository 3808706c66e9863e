"""`isthmus.Redistribution`: a distributed array comes to lie in another way."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from mpi4py import MPI

from ...redistribution.exchange import crossing, spreading
from ...redistribution.layouts import Layout
from ...redistribution.order import LEAST, turns
from ...redistribution.picture import draw
from ...redistribution.runs import spread
from ...schedules.ir import Round
from ..buffers.datatypes import datatype_of
from ..buffers.dlpack import on_device as is_on_device
from ..buffers.selection import HOST_PACKER, Packer
from ..buffers.user_buffer import view
from ..comm.intercomm import Intercomm
from ..comm.intracomm import Intracomm
from ..forms import check_threads
from ..plan.operation import Operation
from ..plan.plan import Plan
from ..plan.steps import FURTHER
from ..requests.persistent import persistent
from ..requests.request import start
from ..waiting.bounded import bounded
from .agreement import agree, without_error
from .compile import compiled
from .fields import field_of, memory_of
from .setup import set_up

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..buffers.devices.staged import Copies
    from ..buffers.devices.transfer import Transfer
    from ..context.channel import Channel
    from ..context.context import Context

#: one field, or several that travel together
Fields: TypeAlias = np.ndarray | Sequence[np.ndarray]
#: how errors name it
_WHAT = "Redistribution"
_numbers = count()


class FieldsCall:
    """A call of a redistribution: the fields of this rank, as buffers."""

    name = label = _WHAT

    def __init__(
        self,
        source: Sequence[np.ndarray],
        target: Sequence[np.ndarray],
        *,
        combine: MPI.Op | None = None,
        packer: Packer = HOST_PACKER,
        copies: Copies | None = None,
    ) -> None:
        """What comes from several ranks is combined by an operator, if there is one.
        Arrays are of the host, or stand for fields on a device that are copied; or they
        say where fields lie on a device, which a packer copies."""
        self.source, self.target, self.packer = source, target, packer
        self.copies = copies
        self.operators: Sequence[tuple[MPI.Op, MPI.Datatype]] = ()
        if combine is not None:
            self.operators = [(combine, datatype_of(None, x)) for x in target]

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


class Redistribution:
    """Moves arrays from one layout to another, between two groups or inside one.

    All ranks of the communicator make it together. Between groups, `source` is how the
    array lies on the own group if that sends, `target` how it is to lie if it receives;
    inside one group every rank gives both. `combine` says what becomes of elements that
    several ranks have: one of them is taken, or they are combined by an `MPI.Op` or to
    their "mean".
    """

    def __init__(
        self,
        comm: MPI.Intercomm | MPI.Intracomm,
        source: Layout | None = None,
        target: Layout | None = None,
        combine: MPI.Op | str | None = None,
    ) -> None:
        ours = Intercomm(comm) if comm.Is_inter() else Intracomm(comm)  # type: ignore[arg-type]
        self.context: Context = ours._context()
        self.source, self.target, self.combine = source, target, combine
        self.same = not comm.Is_inter()
        with self.context.uninterrupted():
            args = self.context, self.same, source, target, combine
            self._setup = bounded(partial(set_up, *args), self.context.limit)
        #: what this rank sends and receives
        self.exchange = self._setup.exchange
        rank = self.context.index
        self._shapes = {
            name: x.local_shape(rank if x.is_regular else None)
            for name, x in (("source", source), ("target", target))
            if x is not None
        }
        self._rounds: dict[int, list[Round]] = {}
        self._has_agreed = False
        self._number = next(_numbers)

    # -- moving

    def __call__(self, field: Fields, into: Fields | None = None) -> None:
        """Send, or receive, a field or several; with a source and a target, `field` is
        what is sent and `into` where the other array belongs."""
        call = self._read(field, into)
        self._operation(self.context.channel, self._plan(call), call).wait()

    def start(self, field: Fields, into: Fields | None = None) -> MPI.Request:
        """Begin to move, and give an MPI request."""
        call = self._read(field, into)
        return start(self._operation(self.context.channel, self._plan(call), call))

    def init(self, field: Fields, into: Fields | None = None) -> MPI.Prequest:
        """A persistent MPI request that moves whenever it is started."""
        call = self._read(field, into)
        if call.copies is not None:
            call.copies.is_persistent = True
        check_threads(self.context, "redistribution")
        plan = self._plan(call)
        with self.context.uninterrupted(_WHAT):
            make = partial(self.context.persistent_channel, plan)
            channel = bounded(make, self.context.limit)
            assert channel is not None  # no rank needs memory of its node
            return persistent(partial(self._operation, channel, plan, call), channel)

    def _operation(self, channel: Channel, plan: Plan, call: FieldsCall) -> Operation:
        """The operation of a call."""
        call.packer.begin()
        return Operation(channel, plan, call, call.buffers())

    def draw(self) -> Figure:
        """A picture of both layouts and of who sends what to whom, from A to B if there
        are two ways. Collective where layouts are by slices or indices."""
        c, (source, s, target, t) = self.context, self._setup.flows[0]
        size = c.comm.size if self.same else None
        if isinstance(source, Layout) and isinstance(target, Layout):
            return draw(source, target, size)
        every = c.comm.allgather((self.source, self.target))
        p = c.local.size if c.number == c.index else c.comm.size - c.local.size
        held, wanted = every[:p], every[p:] or every
        if s > t:
            held, wanted = wanted, held
        sources = [x for x, _ in held if x is not None]
        return draw(sources, [y for _, y in wanted if y is not None], size)

    def Free(self) -> None:
        """Give back what is kept for the redistribution."""
        self.context.plans.forget(lambda values: values[:2] == (_WHAT, self._number))
        self._rounds.clear()

    # -- fields

    def _read(self, field: Fields, into: Fields | None) -> FieldsCall:
        """The fields that are sent and received, checked; the first time, and in the
        checked mode, together with all ranks."""
        c = self.context
        c.check_usable()
        if self._has_agreed and not c.checked:
            return self._fields(field, into)
        call = error = None
        try:
            call = self._fields(field, into)
        except BaseException as wrong:
            error = wrong
        with c.uninterrupted(_WHAT):
            return bounded(partial(self._agreed, call, error), c.limit)

    def _agreed(
        self, call: FieldsCall | None, error: BaseException | None
    ) -> FieldsCall:
        """The fields of this rank, if those of all are right and of the same types."""

        def mine() -> FieldsCall:
            if error is not None:
                raise error
            assert call is not None
            return call

        checked = without_error(self.context, mine)
        agree(self.context, self.context.comm, self._signature(checked), _types)
        self._has_agreed = True
        return checked

    def _fields(self, field: Fields, into: Fields | None) -> FieldsCall:
        if (into is not None) != (self.source is not None and self.target is not None):
            both = "what is sent and what is received" if into is None else "one field"
            raise TypeError(f"expecting {both}")
        first, second = _listed(field), [] if into is None else _listed(into)
        ends = (first, second) if self.source else ([], first)
        found = self._located(*ends)
        source, target = found.source, found.target
        for name, some in (("source", source), ("target", target)):
            for k, x in enumerate(some):
                _check(f"{name} field {k}", x, self._shapes[name], name == "target")
        if self.same and [x.dtype for x in source] != [x.dtype for x in target]:
            raise ValueError(
                f"what is sent is {_names(source)}, what is received {_names(target)}"
            )
        for x in source:
            for y in target:
                if _overlap(x, y):
                    raise ValueError("a source and a target field overlap in memory")
        if self.combine == "mean":
            for x in target:
                if x.dtype.kind not in "fc":
                    raise ValueError(
                        f"a mean needs floating-point fields, not {x.dtype}"
                    )
        return found

    def _located(
        self, source: list[np.ndarray], target: list[np.ndarray]
    ) -> FieldsCall:
        """The call on the fields; of those on a device, on the host memory that stands
        for them, or where they lie: then nobody but their library may touch them."""
        fields = [*source, *target]
        n = len(source)
        how: dict[str, Any] = {"combine": self._operator()}
        if any(type(x) is not np.ndarray and is_on_device(x) for x in fields):
            from ..buffers.devices import fields as devices

            call: FieldsCall = devices.located(
                FieldsCall, self.context, fields, n, **how
            )
            return call
        return FieldsCall(source, target, **how)

    def _operator(self) -> MPI.Op | None:
        if self.combine is None:
            return None
        return self.combine if isinstance(self.combine, MPI.Op) else MPI.SUM

    def _signature(self, call: FieldsCall) -> tuple[tuple[str, ...], ...]:
        """The types of what goes from A to B, or inside, and from B to A."""
        ends = call.source, call.target
        sent, got = (tuple(_type(x.dtype) for x in some) for some in ends)
        first = self.same or self.context.number == self.context.index
        if len(self._setup.flows) == 1:
            return (sent or got,)
        return (sent, got) if first else (got, sent)

    # -- plans

    def _plan(self, call: FieldsCall) -> Plan:
        """The plan for fields of some shapes, strides and types."""
        values = _WHAT, self._number, *call.values
        return self.context.plans.find(values, partial(self._compiled, values, call))

    def _compiled(self, values: tuple[Any, ...], call: FieldsCall) -> Plan:
        fields = (*call.source, *call.target)
        known = [field_of(x, FURTHER + k) for k, x in enumerate(fields)]
        n = len(call.source)
        source, target = known[:n], known[n:]
        unit = sum(x.dtype.itemsize for x in source or target)
        compiler = compiled(
            self._crossing(unit),
            spreading(self.exchange, unit, self.context.nodes),
            source,
            target,
            self._divisors() if self.combine == "mean" else None,
            cut=self.context.cut,
            is_typed=call.packer is HOST_PACKER,
        )
        steps, slots = tuple(compiler.steps), compiler.slots
        plan = Plan(values, "redistribution", steps, slots, compiler.scratch)
        return call.with_copies(plan)

    def _crossing(self, unit: int) -> list[Round]:
        """The rounds from sources to targets, for elements of so many bytes."""
        rounds = self._rounds.get(unit)
        if rounds is None:
            table = self._setup.table
            least = max(LEAST // max(unit, 1), 1)
            order = None if table is None else turns(table, least)
            rounds = self._rounds[unit] = crossing(self.exchange, order)
        return rounds

    def _divisors(self) -> np.ndarray:
        """How many ranks have each element of the target."""
        times = np.zeros(self.exchange.wanted, np.int64)
        for m in self.exchange.receives:
            np.add.at(times, spread(m.start, m.size), 1)
        return np.maximum(times, 1)


def _types(found: tuple[tuple[str, ...], ...]) -> str:
    return "moves " + " and ".join(", ".join(x) or "nothing" for x in found)


def _type(dtype: np.dtype) -> str:
    return str(dtype) if dtype.isnative else dtype.str


def _names(some: Sequence[np.ndarray]) -> str:
    return ", ".join(str(x.dtype) for x in some) or "nothing"


def _listed(x: Fields) -> list[np.ndarray]:
    return list(x) if isinstance(x, list | tuple) else [x]  # type: ignore[list-item]


def _check(what: str, x: Any, shape: tuple[int, ...], written: bool) -> None:
    if not isinstance(x, np.ndarray):
        raise TypeError(f"{what} must be a numpy array, not {type(x).__name__}")
    if x.shape != shape:
        raise ValueError(f"{what} has shape {x.shape}, its layout {shape}")
    if x.dtype.hasobject:
        raise TypeError(f"{what} has Python objects")
    if written and not x.flags.writeable:
        raise ValueError(f"{what} is read-only")


def _overlap(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether two arrays have memory in common, or may have if that is hard to say."""
    work: Any = 1000
    try:
        return bool(np.shares_memory(x, y, work))
    except RuntimeError:  # numpy's TooHardError
        return True
