"""`isthmus.Redistribution`: a distributed array comes to lie in another way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from ..comm.intercomm import Intercomm
from ..comm.intracomm import Intracomm
from ..context.context import SCRATCH, Context
from ..context.progress import driver
from ..engine import requests
from ..engine.engine import check_threads
from ..engine.flow import Slot
from ..engine.plan import Plan, Step
from ..engine.plans import Kept
from ..memory import device, staged
from ..memory.libraries import NUMPY, Library, OnDevice, library
from ..memory.staged import Copies
from ..waiting.bounded import bounded
from ..waiting.waiting import Awaited
from . import fields
from .agreement import agree, without_error
from .binding import bind
from .setup import set_up

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: one field, or several that travel together
Fields: TypeAlias = np.ndarray | Sequence[np.ndarray]
#: plans of blocking calls that are kept for one redistribution
PLANS = 16

#: how errors name it
_WHAT = "Redistribution", ""
_numbers = count()


@dataclass(frozen=True, slots=True)
class Read:
    """The fields of a call; of those on a device, the host memory that stands for them,
    or where they lie: then nobody but their library may touch them."""

    source: list[np.ndarray]
    target: list[np.ndarray]
    #: what copies fields on a device
    copies: Copies | None = None
    #: who packs
    by: Library = NUMPY


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
            found = bounded(partial(set_up, *args), self.context.limit)
        self._setup = found
        #: what this rank sends and receives
        self.exchange = found.exchange
        rank = self.context.index
        self._shapes = {
            name: x.local_shape(rank if x.is_regular else None)
            for name, x in (("source", source), ("target", target))
            if x is not None
        }
        self._rounds: dict[int, list[Round]] = {}
        self._agreed: set[Any] = set()
        #: plans of blocking calls
        self.kept = _Kept(next(_numbers))

    # -- moving

    def __call__(self, field: Fields, into: Fields | None = None) -> None:
        """Send, or receive, a field or several; with a source and a target, `field` is
        what is sent and `into` where the other array belongs."""
        c = self.context
        key = _key(field, into)
        plan = self.kept.plans.get(key)
        copies = None
        if plan is None or c.checked or c.freed or c.refused:
            read = self._read(field, into)
            copies = read.copies
            if copies is not None or read.by is not NUMPY:
                key = _key(read.source, read.target)
            plan = self._plan(key, read)
        self.kept.used = c.clock = c.clock + 1
        try:
            plan.run()
        except BaseException as error:
            driver.failed.append((plan, field, into))
            raise c.failed(error, *_WHAT) from None
        if copies is not None:
            plan.slot.now = None
        if key not in self.kept.plans:
            plan.free()

    def start(self, field: Fields, into: Fields | None = None) -> MPI.Request:
        """Begin to move, and give an MPI request."""
        read = self._read(field, into)
        c = self.context
        check_threads(c, "redistribution")
        plan = self._bound(read, c.next_tag())
        return requests.start(_once(plan), c, (field, into, read, plan), _WHAT)

    def init(self, field: Fields, into: Fields | None = None) -> MPI.Prequest:
        """A persistent MPI request that moves whenever it is started."""
        read = self._read(field, into)
        c = self.context
        check_threads(c, "redistribution")
        tag = c.lasting_tag()
        if read.copies is not None:
            read.copies.lasting = True
        plan = self._bound(read, tag)
        if isinstance(read.by, OnDevice):
            plan.before = [read.by.begin, *plan.before]
        made = requests.persistent([plan], c, (field, into, read), _WHAT)
        c.lasting[tag] = made
        return made

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
        """Give back what is kept for blocking calls."""
        self.context.cached_calls.pop(self.kept.key, None)
        self.kept.free()

    # -- fields

    def _read(self, field: Fields, into: Fields | None) -> Read:
        """The fields that are sent and received, checked, and what copies those on a
        device; the first time that there are such fields, and in the checked mode,
        together with all ranks."""
        c = self.context
        if c.freed:
            raise RuntimeError("the communicator of this redistribution was freed")
        c.check_usable()
        found = error = None
        try:
            found = self._fields(field, into)
            if self._signature(found) in self._agreed and not c.checked:
                return found
        except BaseException as wrong:
            if self._agreed and not c.checked:
                raise
            error = wrong
        with c.uninterrupted(*_WHAT):
            return bounded(partial(self._agree, found, error), c.limit)

    def _agree(self, found: Read | None, error: BaseException | None) -> Read:
        """The fields of this rank, if those of all are right and of the same types."""

        def mine() -> Read:
            if error is not None:
                raise error
            assert found is not None
            return found

        read = without_error(self.context, mine)
        signature = self._signature(read)
        agree(self.context, self.context.comm, signature, _types)
        self._agreed.add(signature)
        return read

    def _fields(self, field: Fields, into: Fields | None) -> Read:
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

    def _located(self, source: list[Any], target: list[Any]) -> Read:
        """Where fields lie. Those on a device are passed to an MPI library that takes
        them, if they can be packed there; host memory stands for others."""
        n, every = len(source), [*source, *target]
        places = device.among(tuple(every))
        if not places:
            return Read(source, target)
        if self.context.device == "refuse":
            device.refuse()
        if self.context.device == "direct" and self.combine is None:
            by = library(every) if len(places) == len(every) else None
            if by is not None:
                found = [by.described(x, i >= n) for i, x in enumerate(every)]
                return Read(found[:n], found[n:], by=by)
        stands = [staged.standing(every[i], i >= n) for i in places]
        for i, x in zip(places, stands, strict=True):
            every[i] = x.host
        written = [i >= n for i in places]
        copies = Copies(stands, (), written, [not x for x in written])
        return Read(every[:n], every[n:], copies)

    def _signature(self, read: Read) -> tuple[tuple[str, ...], ...]:
        """The types of what goes from A to B, or inside, and from B to A."""
        ends = read.source, read.target
        sent, got = (tuple(_type(x.dtype) for x in some) for some in ends)
        first = self.same or self.context.number == self.context.index
        if len(self._setup.flows) == 1:
            return (sent or got,)
        return (sent, got) if first else (got, sent)

    # -- plans

    def _plan(self, key: Any, read: Read) -> Plan:
        """The plan of a blocking call, kept by where the fields lie; one that needs
        much memory is for one call."""
        c = self.context
        plan = self.kept.plans.get(key)  # in the checked mode there may be one
        if plan is None:
            plan = self._bound(read, 0)
            if key is not None and plan.scratch_bytes <= SCRATCH:
                self.kept.plans.keep(key, plan)
                self.kept.used = c.clock = c.clock + 1
                c.keep(self.kept.key, self.kept)
        elif read.copies is not None:
            plan.slot.now = read.copies
        return plan

    def _bound(self, read: Read, tag: int) -> Plan:
        """The rounds bound to fields."""
        unit = sum(x.dtype.itemsize for x in read.source or read.target)
        op = self.combine if isinstance(self.combine, MPI.Op) else MPI.SUM
        last = [self._divide(x) for x in read.target] if self.combine == "mean" else []
        return bind(
            self._crossing(unit),
            spreading(self.exchange, unit, self.context.nodes),
            [fields.array_of(x, read.by) for x in read.source],
            [fields.array_of(x, read.by) for x in read.target],
            self.context.comm,
            self.context.limit,
            tag,
            self.context.cut,
            op.Reduce_local if self.combine is not None else None,
            last,
            read.by,
            None if read.copies is None else Slot(read.copies),
        )

    def _crossing(self, unit: int) -> list[Round]:
        """The rounds from sources to targets, for elements of so many bytes."""
        found = self._rounds.get(unit)
        if found is None:
            table = self._setup.table
            least = max(LEAST // max(unit, 1), 1)
            every = None if table is None else turns(table, least)
            found = self._rounds[unit] = crossing(self.exchange, every)
        return found

    def _divide(self, x: np.ndarray) -> Step:
        """Divide sums by how many there are."""
        times = np.zeros(self.exchange.wanted, np.int64)
        for m in self.exchange.receives:
            np.add.at(times, spread(m.start, m.size), 1)
        by = np.maximum(times, 1).reshape(x.shape)
        view = fields.array_of(x).view()
        return lambda: np.divide(view, by, out=view, casting="same_kind")


class _Kept(Kept):
    """Plans of blocking calls, among those of the communicator."""

    taken = "redistribution"

    def __init__(self, number: int) -> None:
        super().__init__(PLANS)
        self.key = "Redistribution", number


def _once(plan: Plan) -> Iterator[Awaited]:
    yield from plan.steps()
    plan.free()


def _types(found: tuple[tuple[str, ...], ...]) -> str:
    return "moves " + " and ".join(", ".join(x) or "nothing" for x in found)


def _type(dtype: np.dtype) -> str:
    return str(dtype) if dtype.isnative else dtype.str


def _names(some: list[np.ndarray]) -> str:
    return ", ".join(str(x.dtype) for x in some) or "nothing"


def _key(field: Any, into: Any) -> Any:
    """What a call is known by: where its fields lie and what they are. None of what is
    no array."""
    first, second = (x if isinstance(x, list | tuple) else (x,) for x in (field, into))
    found: list[Any] = [len(first)]
    for x in first if into is None else (*first, *second):
        if type(x) is not np.ndarray:
            return None
        place = x.__array_interface__["data"]
        found += *place, x.shape, x.strides, x.dtype
    return tuple(found)


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
