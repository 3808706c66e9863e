"""One call of a communicator, made many times: in all forms, each time with other data
at another place, now and then after one that is refused."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mpi4py import MPI

import isthmus
from isthmus.schedules import registry

from . import spellings
from .places import Place
from .spellings import Buffer, Saying
from .transfers import (
    OPERATIONS,
    REDUCTIONS,
    ROOTED,
    SEVERAL,
    SIZES,
    Drawn,
    Transfer,
    compose,
    transfer,
)
from .wrong import spoil

FORMS = ("blocking", "nonblocking", "persistent")
#: how many groups a kind of place has, as records count them
GROUPS = {"inside": 1, "between": 2, "several": 3}
#: operations that are ours inside a group; the others are mpi4py's own there, and take
#: no algorithm
OURS_INSIDE = (
    "Allgather",
    "Allgatherv",
    "Allreduce",
    "Alltoall",
    "Alltoallv",
    "Reduce_scatter",
    "Reduce_scatter_block",
    *ROOTED,
)
#: where the MPI library's own nonblocking call leaves requests of others hanging, on
#: ranks without a part in it (MPICH 5.0.2, Open MPI 5.0.11)
HANGS_OTHERS = ("Bcast", "Reduce")
#: where Open MPI's own call between groups takes one type for that of all ranks, and
#: fails where some name pairs and others numbers, with too long a message (5.0.11)
IS_OPEN_MPI = MPI.get_vendor()[0] == "Open MPI"
TAKES_ONE_TYPE_FOR_ALL = ("Allgatherv", "Gatherv", "Scatterv") if IS_OPEN_MPI else ()
#: where MPICH's own call between groups receives the first block only: blocks of 4 KB
#: of three ranks into a derived type at the root; of 2 KB and 8 KB all come (5.0.2)
RECEIVES_ONE_BLOCK = () if IS_OPEN_MPI else ("Gather",)

#: the variables that have every call printed before it is made, and that name
#: operations to leave out, or "refused" calls, where one fault hides others
TRACE, WITHOUT = "ISTHMUS_FUZZ_TRACE", "ISTHMUS_FUZZ_WITHOUT"

Rng = np.random.Generator


@dataclass(frozen=True)
class Options:
    """What holds for all series of an episode."""

    #: MPI's thread level: 0 to 3
    level: int = MPI.THREAD_MULTIPLE
    #: of all buffers, so many lie on a device
    devices: float = 0.0
    #: of all calls, so many are made wrong first by some ranks, which catch the error
    refused: float = 0.1
    #: an operator that is not commutative
    composition: MPI.Op = field(default_factory=lambda: MPI.OP_NULL)
    operations: Sequence[str] = tuple(OPERATIONS)
    forms: Sequence[str] = FORMS


#: calls that this process has made, by their operations
made: Counter[str] = Counter()


class FaultError(Exception):
    """Something does not hold that must; the episode ends."""


@dataclass
class Going:
    """A call that goes on, and what it must give."""

    what: str
    request: MPI.Request | None
    buffers: list[Buffer]

    def end(self, how: int) -> None:
        """Wait in one of several ways, look at the memory, and give all of it back."""
        self.look(how)
        if isinstance(self.request, MPI.Prequest):
            self.request.Free()
        for buffer in self.buffers:
            buffer.free()
        self.buffers = []

    def look(self, how: int) -> None:
        """Wait in one of several ways, and look at the memory."""
        if self.request is not None:
            try:
                _complete(self.request, how)
            except Exception as error:
                text = f"{self.what}: {type(error).__name__}: {error}"
                raise FaultError(text) from error
        for buffer in self.buffers:
            if fault := buffer.fault():
                raise FaultError(f"{self.what}: {buffer.saying}: {fault}")

    def start_again(self) -> None:
        """Start a persistent call once more, with its buffers as they were before."""
        self.look(0)
        for buffer in self.buffers:
            buffer.refill()
        assert isinstance(self.request, MPI.Prequest)
        self.request.Start()


def _complete(request: MPI.Request, how: int) -> None:
    if how == 0:
        request.Wait()
    elif how == 1:
        while not request.Test():
            time.sleep(0)
    elif how == 2 or isinstance(request, MPI.Prequest):
        # Testall fails for MPICH's own persistent collectives (5.0.2)
        MPI.Request.Waitall([request])
    else:
        while not MPI.Request.Testall([request]):
            time.sleep(0)


@dataclass
class Series:
    """A call that is drawn once, and made many times."""

    place: Place
    rng: Rng
    alone: Rng
    options: Options
    drawn: Drawn = field(init=False)
    algorithm: str | None = field(init=False)
    form: str = field(init=False)
    keeps_form: bool = field(init=False)
    keeps_data: bool = field(init=False)
    sayings: dict[str, Saying] = field(default_factory=dict)
    #: what the rank does now, in words, for who asks where it hangs
    now: str = ""

    def __post_init__(self) -> None:
        rng, place, options = self.rng, self.place, self.options
        operations = [x for x in options.operations if self._has(x)]
        op = str(rng.choice(operations))
        size, dtype = str(rng.choice(list(SIZES))), str(rng.choice(spellings.DTYPES))
        root = int(rng.integers(1 << 20)) % place.ranks
        in_place, brief = bool(rng.random() < 0.3), bool(rng.random() < 0.5)
        operator, combine, is_ordered = MPI.SUM, np.add, bool(rng.random() < 0.25)
        if op in REDUCTIONS and rng.random() < 0.3 and dtype != "c16":
            operator, combine = MPI.MAX, np.maximum  # type: ignore[assignment]
        if is_ordered and op in REDUCTIONS and options.composition != MPI.OP_NULL:
            operator, combine, dtype = options.composition, compose, "i8"  # type: ignore
        else:
            is_ordered = False
        brief &= op == "Reduce_scatter"
        ways = (op, size, dtype, operator, combine, root, in_place, brief)
        self.drawn = Drawn(*ways)
        self.algorithm = self._algorithm(is_ordered)
        self.form = str(rng.choice(options.forms))
        # some calls are made in one form only: what happens at the n-th call of a form
        # is seen nowhere else
        self.keeps_form = bool(rng.random() < 0.5)
        # what is known by its content must not be taken for what had it before
        self.keeps_data = bool(rng.random() < 0.3)
        self.devices = options.devices

    def _has(self, op: str) -> bool:
        """Whether an operation is ours on this communicator; others are mpi4py's own,
        which its suite tests."""
        own = {"several": SEVERAL, "inside": OURS_INSIDE}
        return op in own.get(self.place.kind, (op,)) and op not in _left_out()

    def _algorithm(self, is_ordered: bool) -> str | None:
        """An algorithm; None where the call names none."""
        at, named = float(self.rng.random()), bool(self.rng.random() < 0.5)
        if not named:
            return None
        names = algorithms(self.place, self.drawn, is_ordered=is_ordered)
        return names[int(at * len(names))]

    def __str__(self) -> str:
        drawn, comm = self.drawn, self.place.name
        more = ", in place" * drawn.in_place + ", brief" * drawn.brief
        root = f", root {drawn.root}" * (drawn.op in ROOTED)
        operator = "" if drawn.op not in REDUCTIONS else f", {_operator(drawn)}"
        return (
            f"{drawn.op} by {self.algorithm} on {comm}: {drawn.size} "
            f"{drawn.dtype}{root}{operator}{more}"
        )

    # -- calls

    def start(self, turn: int, form: str = "") -> Going:
        """Make a call in a form, or in one that is drawn; before it, perhaps, one that
        is refused."""
        if not form:
            other = str(self.rng.choice(self.options.forms))
            is_other = self.rng.random() < 0.3 and not self.keeps_form
            form = other if is_other else self.form
        if self.algorithm == "native" and self.drawn.op in HANGS_OTHERS:
            form = "blocking"
        content = 0 if self.keeps_data else turn
        mine = transfer(self.place.group, self.drawn, content)
        args, buffers = self.arguments(mine)
        said = "".join(f", {x} {y}" for x, y in self.sayings.items())
        refusals = self.place.refusals
        after = f" after {refusals} refused" * bool(refusals)
        self.now = f"call {turn}{after}, {form} {self}{said}"
        if TRACE in os.environ:
            print(f"rank {MPI.COMM_WORLD.rank}: {self.now}", flush=True)
        self._refused(form, args, mine)
        restarts = int(self.rng.integers(3))
        going = Going(self.now, self.make(form, args, self.algorithm), buffers)
        if form == "persistent":
            for _ in range(restarts):
                going.start_again()
        return going

    def arguments(self, mine: Transfer) -> tuple[tuple[Any, ...], list[Buffer]]:
        """The arguments of a call, and the buffers in them."""
        if self.drawn.op == "Barrier":
            return (), []
        specs, buffers = [], []
        for name, side in (("send", mine.send), ("recv", mine.recv)):
            if mine.in_place == name:
                specs.append(MPI.IN_PLACE)
            elif side is None:
                specs.append(None)
            else:
                buffer = self._buffer(name, side)
                specs.append(buffer.spec)
                buffers.append(buffer)
        if mine.is_single:
            specs = [next((x for x in specs if x is not None), None)]
        further = (spellings.numbers_in(x, self.alone) for x in mine.rest)
        return (*specs, *further), buffers

    def _buffer(self, name: str, side: Any) -> Buffer:
        if name not in self.sayings:
            self.sayings[name] = spellings.draw(
                self.alone,
                side.shape,
                is_sent=name == "send",
                is_combined=self.drawn.op in REDUCTIONS,
                on_device=bool(self.alone.random() < self.devices),
            )
        saying, dtype = self.sayings[name], np.dtype(self.drawn.dtype)
        return Buffer(saying, side, dtype, name == "send")

    def make(
        self, form: str, args: tuple[Any, ...], algorithm: str | None, **more: Any
    ) -> MPI.Request | None:
        """Make a call in one of its forms."""
        comm, op = self.place.comm, self.drawn.op
        how = _how(algorithm, **more)
        made[op] += 1
        if form == "blocking":
            getattr(comm, op)(*args, **how)
            return None
        if form == "nonblocking":
            request: MPI.Request = getattr(comm, f"I{op.lower()}")(*args, **how)
            return request
        persistent = self.set_up(args, algorithm, **more)
        persistent.Start()
        return persistent

    def set_up(
        self, args: tuple[Any, ...], algorithm: str | None, **more: Any
    ) -> MPI.Prequest:
        """Make a persistent call, and do not start it."""
        how = _how(algorithm, **more)
        request: MPI.Prequest = getattr(self.place.comm, f"{self.drawn.op}_init")(
            *args, **how
        )
        return request

    # -- calls that are refused

    def _refused(self, form: str, args: tuple[Any, ...], mine: Transfer) -> None:
        """A wrong call on some of the ranks, each wrong in its own way; those that have
        no part in a rooted call make it as it is, and so once more than the others."""
        # as many numbers on every rank, whatever the size of its group
        some = self.rng.random(64) < 0.5
        if self.rng.random() >= self.options.refused or "refused" in _left_out():
            return
        # of isthmus, which says when it refuses
        group, is_ours = self.place.group, self.algorithm != "native"
        position = group.here.index(group.me) if group.is_one else group.me
        if not args or not mine.takes_part or not some[position] or not is_ours:
            return
        way, wrong, more = spoil(self.alone, self.drawn.op, args)
        before, self.now = self.now, f"{self.now}, refused for {way}"
        if TRACE in os.environ:
            print(f"rank {MPI.COMM_WORLD.rank}: refused for {way}", flush=True)
        try:
            self.make(form, wrong, self.algorithm, **more)
        except Exception as error:
            if isinstance(error, isthmus.Stalled | isthmus.ProcessLost):
                raise FaultError(f"{self.now}: {error}") from error
        else:
            raise FaultError(f"{before}: {way} was not refused")
        self.place.refusals += 1
        self.now = before


def algorithms(place: Place, drawn: Drawn, *, is_ordered: bool) -> list[str]:
    """The algorithms of a call, "auto" and the MPI library's own among them.

    Of an earlier source without records, those two alone (see `fuzz_finds.py`).
    """
    names = ["auto"]
    try:
        from isthmus.collectives.collective import INSIDE
        from isthmus.collectives.records import record_of
    except ImportError:
        return [*names, "native"][: 2 - drawn.brief]
    record = record_of(drawn.op, GROUPS[place.kind])
    for entry in registry.algorithms(record.name):
        is_made = record.groups != INSIDE or entry.needs(place.comm.size)
        if is_made and not (is_ordered and entry.commutative):
            names.append(entry.name)
    # mpi4py knows no None between groups; inside one it holds Python's lock while it
    # asks for the counts, and no other call goes forward then (4.1)
    wrong = (*TAKES_ONE_TYPE_FOR_ALL, *RECEIVES_ONE_BLOCK)
    is_wrong = place.kind == "between" and drawn.op in wrong
    has_native = place.kind != "several" and not drawn.brief and not is_wrong
    return names + ["native"] * has_native


def _how(algorithm: str | None, **more: Any) -> dict[str, Any]:
    """The arguments of a call by name."""
    return more if algorithm is None else {"algorithm": algorithm, **more}


def _left_out() -> list[str]:
    return os.environ.get(WITHOUT, "").split(",")


def _operator(drawn: Drawn) -> str:
    return {MPI.SUM.handle: "sum", MPI.MAX.handle: "max"}.get(
        drawn.operator.handle, "in order"
    )
