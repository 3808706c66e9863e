"""`isthmus.Redistribution`: a distributed array comes to lie in another way."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from ...redistribution.exchange import spreading
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
from .mover import Fields, FieldsCall, Mover, check_apart, check_field, listed, located
from .setup import set_up

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..context.context import Context

#: how errors name it
_WHAT = "Redistribution"


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
            #: what all ranks agreed on, and the messages of this one
            self.setup = bounded(partial(set_up, *args), self.context.limit)
        #: what this rank sends and receives
        self.exchange = self.setup.exchange
        rank = self.context.index
        self._shapes = {
            name: x.local_shape(rank if x.is_regular else None)
            for name, x in (("source", source), ("target", target))
            if x is not None
        }
        how = self._read, self._signature, _types, self._compiled
        self._mover = Mover(self.context, _WHAT, *how)

    # -- moving

    def __call__(self, field: Fields, into: Fields | None = None) -> None:
        """Send, or receive, a field or several; with a source and a target, `field` is
        what is sent and `into` where the other array belongs."""
        self._mover.move(field, into)

    def start(self, field: Fields, into: Fields | None = None) -> MPI.Request:
        """Begin to move, and give an MPI request."""
        return self._mover.start(field, into)

    def init(self, field: Fields, into: Fields | None = None) -> MPI.Prequest:
        """A persistent MPI request that moves whenever it is started."""
        return self._mover.init(field, into)

    def draw(self) -> Figure:
        """A picture of both layouts and of who sends what to whom, from A to B if there
        are two ways. Collective where layouts are by slices or indices."""
        c, (source, s, target, t) = self.context, self.setup.flows[0]
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
        self._mover.forget()

    # -- fields

    def _read(self, field: Fields, into: Fields | None) -> FieldsCall:
        if (into is not None) != (self.source is not None and self.target is not None):
            both = "what is sent and what is received" if into is None else "one field"
            raise TypeError(f"expecting {both}")
        first, second = listed(field), [] if into is None else listed(into)
        ends = (first, second) if self.source else ([], first)
        may_pack = self.combine is None
        call = located(self.context, _WHAT, *ends, may_pack=may_pack)
        source, target = call.source, call.target
        for name, fields in (("source", source), ("target", target)):
            for k, x in enumerate(fields):
                check_field(f"{name} field {k}", x, is_written=name == "target")
                if x.shape != self._shapes[name]:
                    raise ValueError(
                        f"{name} field {k} has shape {x.shape}, its layout "
                        f"{self._shapes[name]}"
                    )
        if self.same and [x.dtype for x in source] != [x.dtype for x in target]:
            raise ValueError(
                f"what is sent is {_names(source)}, what is received {_names(target)}"
            )
        check_apart(source, target)
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
        if self.combine is None:
            return None
        return self.combine if isinstance(self.combine, MPI.Op) else MPI.SUM

    def _signature(self, call: FieldsCall) -> tuple[tuple[str, ...], ...]:
        """The types of what goes from A to B, or inside, and from B to A."""
        ends = call.source, call.target
        sent, got = (tuple(_type(x.dtype) for x in some) for some in ends)
        first = self.same or self.context.number == self.context.index
        if len(self.setup.flows) == 1:
            return (sent or got,)
        return (sent, got) if first else (got, sent)

    # -- plans

    def _compiled(self, values: tuple[Any, ...], call: FieldsCall) -> Plan:
        fields = (*call.source, *call.target)
        known = [field_of(x, FURTHER + k) for k, x in enumerate(fields)]
        n = len(call.source)
        source, target = known[:n], known[n:]
        unit = sum(x.dtype.itemsize for x in source or target)
        compiler = compiled(
            self.setup.crossing(unit),
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
