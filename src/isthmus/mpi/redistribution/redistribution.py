"""`isthmus.Redistribution`: the move of a distributed array between two layouts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from ...redistribution.exchange import replication_rounds
from ...redistribution.layouts import Layout
from ...redistribution.picture import draw
from ...redistribution.runs import spread
from ..buffers.datatypes import datatype_of
from ..buffers.selection import HOST_PACKER
from ..comm.intercomm import Intercomm
from ..comm.intracomm import Intracomm
from ..plan.plan import Plan
from ..plan.steps import FURTHER
from ..waiting.bounded import bounded
from .compile import compiled
from .fields import field_of
from .mover import (
    Fields,
    FieldsCall,
    Mover,
    check_disjoint_fields,
    check_field,
    fields_call,
    listed,
)
from .setup import set_up

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..context.context import Context

#: the name of the class in errors, after "isthmus."
_REDISTRIBUTION = "Redistribution"


class Redistribution:
    """Moves arrays from one layout to another, between two groups or inside a group.

    All ranks of the communicator create a redistribution together. Between groups,
    `source` is the layout of the array on the own group if the group sends, `target`
    the layout on the own group if the group receives; inside a group each rank gives
    both. `combine` is for elements that several ranks have: None takes the element of
    a single rank, an `MPI.Op` combines the elements, "mean" gives the mean.
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
        self.one_group = not comm.Is_inter()
        with self.context.uninterrupted():
            args = self.context, self.one_group, source, target, combine
            #: the agreement of all ranks
            self.setup = bounded(partial(set_up, *args), self.context.limit)
        #: the messages of this rank
        self.exchange = self.setup.exchange
        rank = self.context.index
        self._shapes = {
            name: x.local_shape(rank if x.is_regular else None)
            for name, x in (("source", source), ("target", target))
            if x is not None
        }
        self._mover = Mover(
            self.context,
            _REDISTRIBUTION,
            read=self._read,
            signature=self._signature,
            words=_signature_in_words,
            compiled=self._compiled,
        )

    # -- moving

    def __call__(self, field: Fields, into: Fields | None = None) -> None:
        """Send or receive fields.

        With a source and a target, `field` is sent and `into` receives.
        """
        self._mover.move(field, into)

    def start(self, field: Fields, into: Fields | None = None) -> MPI.Request:
        """Start to move fields, and return an MPI request."""
        return self._mover.start(field, into)

    def init(self, field: Fields, into: Fields | None = None) -> MPI.Prequest:
        """A persistent MPI request whose starts move the fields."""
        return self._mover.init(field, into)

    def draw(self) -> Figure:
        """A picture of both layouts and of the messages between ranks.

        Shows the way from A to B if the array moves both ways. Collective for layouts
        by slices or indices, since no rank knows the layouts of all ranks.
        """
        context = self.context
        source, source_base, target, target_base = self.setup.flows[0]
        size = context.comm.size if self.one_group else None
        if isinstance(source, Layout) and isinstance(target, Layout):
            return draw(source, target, size)
        group_layouts = context.comm.allgather((self.source, self.target))
        p = (
            context.local.size
            if context.number == context.index
            else context.comm.size - context.local.size
        )
        held, wanted = group_layouts[:p], group_layouts[p:] or group_layouts
        if source_base > target_base:
            held, wanted = wanted, held
        sources = [x for x, _ in held if x is not None]
        return draw(sources, [y for _, y in wanted if y is not None], size)

    def Free(self) -> None:
        """Release the plans of the redistribution."""
        self._mover.forget()

    # -- fields

    def _read(self, field: Fields, into: Fields | None) -> FieldsCall:
        """The checked fields of a call."""
        if (into is not None) != (self.source is not None and self.target is not None):
            expected = (
                "what is sent and what is received" if into is None else "one field"
            )
            raise TypeError(f"expecting {expected}")
        first, second = listed(field), [] if into is None else listed(into)
        ends = (first, second) if self.source else ([], first)
        may_pack = self.combine is None
        call = fields_call(self.context, _REDISTRIBUTION, *ends, may_pack=may_pack)
        source, target = call.source, call.target
        for name, fields in (("source", source), ("target", target)):
            for k, x in enumerate(fields):
                check_field(f"{name} field {k}", x, is_written=name == "target")
                if x.shape != self._shapes[name]:
                    raise ValueError(
                        f"{name} field {k} has shape {x.shape}, its layout "
                        f"{self._shapes[name]}"
                    )
        if self.one_group and [x.dtype for x in source] != [x.dtype for x in target]:
            raise ValueError(
                f"what is sent is {_types(source)}, what is received {_types(target)}"
            )
        check_disjoint_fields(source, target)
        if self.combine == "mean":
            for x in target:
                if x.dtype.kind not in "fc":
                    raise ValueError(
                        f"a mean needs floating-point fields, not {x.dtype}"
                    )
        operator = self._operator()
        if operator is not None:
            call.operators = [(operator, datatype_of(None, x)) for x in target]
        return call

    def _operator(self) -> MPI.Op | None:
        """The operator on elements of several ranks, or None to take a single one."""
        if self.combine is None:
            return None
        return self.combine if isinstance(self.combine, MPI.Op) else MPI.SUM

    def _signature(self, call: FieldsCall) -> tuple[tuple[str, ...], ...]:
        """The types of the fields from A to B, or inside, and of the way back."""
        ends = call.source, call.target
        sent, received = (tuple(_type(x.dtype) for x in fields) for fields in ends)
        is_group_a = self.one_group or self.context.number == self.context.index
        if len(self.setup.flows) == 1:
            return (sent or received,)
        return (sent, received) if is_group_a else (received, sent)

    # -- plans

    def _compiled(self, values: tuple[Any, ...], call: FieldsCall) -> Plan:
        """The plan for the fields of a call."""
        fields = (*call.source, *call.target)
        layouts = [field_of(x, FURTHER + k) for k, x in enumerate(fields)]
        n = len(call.source)
        source, target = layouts[:n], layouts[n:]
        unit = sum(x.dtype.itemsize for x in source or target)
        compiler = compiled(
            self.setup.transfer_rounds(unit),
            replication_rounds(self.exchange, unit, self.context.nodes),
            source,
            target,
            self._divisors() if self.combine == "mean" else None,
            cut=self.context.cut,
            is_typed=call.packer is HOST_PACKER,
        )
        steps, slots = tuple(compiler.steps), compiler.slots
        plan = Plan(values, "redistribution", steps, slots, compiler.scratch)
        return call.with_copies(plan)

    def _divisors(self) -> np.ndarray:
        """The number of ranks that have each element of the target."""
        counts = np.zeros(self.exchange.wanted, np.int64)
        for m in self.exchange.receives:
            np.add.at(counts, spread(m.start, m.size), 1)
        return np.maximum(counts, 1)


def _signature_in_words(signature: tuple[tuple[str, ...], ...]) -> str:
    return "moves " + " and ".join(", ".join(x) or "nothing" for x in signature)


def _type(dtype: np.dtype) -> str:
    return str(dtype) if dtype.isnative else dtype.str


def _types(fields: Sequence[np.ndarray]) -> str:
    return ", ".join(str(x.dtype) for x in fields) or "nothing"
