"""Every algorithm of every collective, in every form, against mpi4py's own call.

A test takes one record and makes calls of all its algorithms. What else a call has is
drawn: the communicator and the nodes of its ranks, sizes, root, type and operator, and
on each rank alone how it says its buffers and in which order it waits. Calls of several
algorithms, and of another collective, are under way at once, each time with other data
in other memory, and some come after one that is refused. All bytes of all buffers are
compared with what numpy says, and that with what mpi4py's own call gives.

All of it follows from one number, which a failure names: `ISTHMUS_TEST_SEED` repeats
its cases, or draws others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar
from zlib import crc32

import numpy as np
import pytest
from mpi4py import MPI

from fuzz import places
from fuzz.modes import variables
from fuzz.places import Place
from fuzz.series import FORMS, GROUPS, FaultError, Going, Options, Series
from fuzz.spellings import Saying, plain
from fuzz.transfers import Drawn, compose, composition, transfer
from isthmus.collectives.collective import SEVERAL, Collective
from isthmus.collectives.records import COLLECTIVES
from isthmus.mpi.arguments.inside_rooted import ENDS_REDUCE_IN_PLACE
from isthmus.mpi.context.context import Context
from isthmus.mpi.context.inter import InterContext
from isthmus.mpi.plan import compile as compiling
from isthmus.schedules import registry
from record_names import OPTIONS, is_declined
from sampling import LONG
from support import HAS_SOUND_PERSISTENT, TURN, without_persistent_collectives

T = TypeVar("T")

pytestmark = pytest.mark.mpi(5, *[8] * LONG)

SEED = int(os.environ.get("ISTHMUS_TEST_SEED", TURN))
#: calls of a case: the third blocking one is in the other half of the node's memory
CALLS = 3 * FORMS[:1] + 2 * FORMS[1:2] + FORMS[2:]
#: cases whose calls are made by turns, and calls that may be under way at once
TOGETHER, UNDER_WAY = 3, 4
#: cases of each algorithm
CASES = 12 if LONG else 1
#: bytes: halves of node memory in which long data take many chunks, messages that are
#: cut, and the longest message
HALF_BYTES, CUT_BYTES, LONGEST_BYTES = 1 << 13, 1000, 3000
#: bytes of pieces
PIECE_BYTES = 300, 5000
#: of algorithms that end with an allgather inside a group
STAGES = ["bruck", "ring", "circulant", "blocked_ring", "recursive_doubling", "library"]
#: calls of the MPI library's own, which may have no persistent form, or a wrong one
LIBRARYS = "native", "library"
#: seconds that a rank waits at most, where there is a limit
LIMIT_SECONDS = 50.0


@dataclass(frozen=True)
class Maker:
    """How a communicator of a launch is made, and what holds for calls on it."""

    make: Callable[[MPI.Intracomm], Place]
    #: so many ranks of a node share memory; 0 for all
    per_node: int = 0
    #: whether long data take many chunks of node memory
    is_small: bool = False
    #: whether messages are cut, as Open MPI has them cut between hosts
    is_cut: bool = False
    #: whether arguments are compared, and waiting has a limit
    is_checked: bool = False

    def __call__(self, comm: MPI.Intracomm) -> Place:
        check = str(int(self.is_checked))
        with variables(ISTHMUS_PER_NODE=str(self.per_node), ISTHMUS_CHECK=check):
            place = self.make(comm)
            with halves(HALF_BYTES if self.is_small else 0):
                places.make_context(place)
        if self.is_cut:
            place.comm._context().cut = CUT_BYTES
        if self.is_checked:
            place.comm.timeout = LIMIT_SECONDS
        return place


@contextmanager
def halves(nbytes: int) -> Iterator[None]:
    """Other halves of node memory, for contexts that are made here."""
    kinds = Context, InterContext
    before = [kind.half_sizes for kind in kinds]
    for kind in kinds if nbytes else ():
        kind.half_sizes = (nbytes,) * len(kind.half_sizes)
    try:
        yield
    finally:
        for kind, sizes in zip(kinds, before, strict=True):
            kind.half_sizes = sizes


def between(p: int) -> Callable[[MPI.Intracomm], Place]:
    """The first p ranks and the others."""
    return lambda comm: places.between(comm, p)


def inside(first: int) -> Callable[[MPI.Intracomm], Place]:
    """The first ranks beside the others, or all."""
    return lambda comm: places.part_of(comm, int(comm.rank < first))


def beside(first: int, make: Callable[[MPI.Intracomm], Place]):
    """Communicators of the first ranks, and of the others."""
    return lambda comm: make(comm.Split(comm.rank < first))


def several(groups: int) -> Callable[[MPI.Intracomm], Place]:
    """Groups whose ranks take turns."""
    return lambda comm: places.several(comm, groups)


MAKERS = {
    5: [
        Maker(between(1), is_small=True),
        Maker(between(3), per_node=2, is_cut=True),
        Maker(between(2), per_node=1, is_checked=True),
        Maker(between(4)),
        Maker(beside(2, between(1)), is_cut=True),
        Maker(inside(0), per_node=2, is_cut=True),
        Maker(inside(0), is_small=True),
        Maker(inside(2), is_checked=True),
        Maker(inside(1), per_node=2),
        Maker(several(3), is_cut=True),
        Maker(several(5), is_checked=True),
        Maker(several(2), per_node=2),
    ],
    8: [
        Maker(between(2), per_node=3),
        Maker(between(4), is_small=True),
        Maker(between(5), per_node=1),
        Maker(inside(0)),
        Maker(inside(0), per_node=3, is_small=True),
        Maker(inside(1), is_small=True),
        Maker(inside(2), per_node=2),
        Maker(inside(3), per_node=1),
        Maker(several(3), per_node=3),
        Maker(several(4), is_small=True),
    ],
}
#: the communicators of this launch serve all tests: to make one, and to measure what
#: messages cost on it, takes longer than most cases
_made: list[Place] = []


def communicators(comm: MPI.Intracomm, groups: int) -> list[Place]:
    """Those of so many groups, made when they are first asked for."""
    if not _made:
        _made.extend(maker(comm) for maker in MAKERS[comm.size])
    return [place for place in _made if GROUPS[place.kind] == groups]


class Cases:
    """Draws cases: all ranks draw alike, and each how it says its buffers."""

    def __init__(
        self,
        comm: MPI.Intracomm,
        on: list[Place],
        record: Collective,
        operator: MPI.Op,
    ) -> None:
        seed = SEED, crc32(record.name.encode()), comm.size
        self.rng = np.random.default_rng(seed)
        self.alone = np.random.default_rng((*seed, comm.rank))
        self.record, self.on = record, on
        self.options = Options(refused=0.1, composition=operator)

    def of_all_algorithms(self) -> list[Series]:
        """Cases of every algorithm of every operation, in any order."""
        record = self.record
        names = ["auto", "auto", *registered(record)]
        names += ["native"] * (record.groups != SEVERAL)
        names += ["library"] * (record.name in ("bcast", "inter_barrier"))
        each = [(op, name) for op in record.operations for name in names]
        order = self.rng.permutation(len(each) * CASES) % len(each)
        return [self.draw(record, *each[k]) for k in order]

    def guest(self) -> Series:
        """A case of any collective on the communicators."""
        same = [r for r in COLLECTIVES.values() if r.groups == self.record.groups]
        record = self.choice([r for r in same if r.is_on_mpi])
        op = self.choice(record.operations)
        return self.draw(record, op, self.choice(["auto", *registered(record)]))

    def choice(self, options: Sequence[T]) -> T:
        return options[int(self.rng.random() * len(options))]

    def draw(self, record: Collective, op: str, name: str) -> Series:
        """A case of an algorithm, or of "auto" where the algorithm is not made for the
        groups of a communicator: parts of one, side by side, draw as many numbers."""
        place = self.choice(self.on)
        options = replace(self.options, operations=(op,))
        if place.comm._context().checked:  # which tells all ranks of a refused call
            options = replace(options, refused=0.0)
        case = Series(place, self.rng, self.alone, options)
        drawn = case.drawn
        if name in registered(record):
            name = self.named(record, name)
            if is_declined(record, name, ranks_of(place)):
                name = "auto"
        if name not in ("auto", "native", "library"):
            entry, _ = registry.resolve(record.name, name)
            if entry.commutative and drawn.combine is compose:
                drawn = replace(drawn, operator=MPI.SUM, combine=np.add)
            if drawn.size == "large":  # it may go in short pieces
                drawn = replace(drawn, size="any")
        if name == "native":  # see `algorithms` of the fuzz
            ends = ends_program(drawn)
            drawn = replace(drawn, brief=False, in_place=drawn.in_place and not ends)
        case.algorithm, case.drawn = name, drawn
        if (
            name == "native"
        ):  # its Gatherv between groups fails where types differ (Open
            case.sayings = plain_sayings(case)  # MPI 5.0.11), and we read none of them
        return case

    def named(self, record: Collective, name: str) -> str:
        """An algorithm, perhaps with an option, perhaps with a stage."""
        entry, at = registry.resolve(record.name, name)[0], self.rng.random()
        options = sorted({*OPTIONS} & entry.options.keys())
        option = self.choice(options or [""])
        values = PIECE_BYTES if option == "size" else OPTIONS.get(option, (0,))
        value, stage = self.choice(values), self.choice(STAGES)
        name += f"({option}={value})" if option and at < 0.5 else ""
        return name + f"+{stage}" * (entry.staged and at > 0.3)


def registered(record: Collective) -> list[str]:
    """The algorithms of a collective."""
    return [entry.name for entry in registry.algorithms(record.name)]


def ranks_of(place: Place) -> tuple[int, ...]:
    """The ranks of each group."""
    if place.kind == "several":
        return tuple(place.comm.sizes.values())
    here, there = len(place.group.here), len(place.group.there)
    return (here,) if place.group.is_one else (here, there)


def plain_sayings(case: Series) -> dict[str, Saying]:
    """Arrays in place of whatever is drawn."""
    mine = transfer(case.place.group, case.drawn, turn=0)
    sides = {"send": mine.send, "recv": mine.recv}
    return {name: plain(side.shape) for name, side in sides.items() if side}


def ends_program(drawn: Drawn) -> bool:
    """Whether mpi4py's own call may end the program."""
    return ENDS_REDUCE_IN_PLACE and drawn.op == "Reduce" and drawn.in_place


def call_of_mpi4py(case: Series) -> None:
    """Make mpi4py's own call with the data of a case, which must be right."""
    place, drawn = case.place, case.drawn
    kind = {"inside": MPI.Intracomm, "between": MPI.Intercomm}.get(place.kind)
    sizes = {len(place.group.here), len(place.group.there)}
    if kind is None or (kind is MPI.Intercomm and drawn.brief):
        return
    if drawn.op == "Reduce_scatter_block" and len(sizes) > 1:
        return  # mpi4py compares what is sent with the size of the other group
    if ends_program(drawn):
        return
    sayings, case.sayings = case.sayings, plain_sayings(case)
    args, buffers = case.arguments(transfer(place.group, drawn, turn=99))
    getattr(kind, drawn.op)(place.comm, *args)
    Going(f"mpi4py's {case}", None, buffers).end(0)
    case.sayings = sayings


def run(cases: list[Series], rng: np.random.Generator, alone: np.random.Generator):
    """Make all calls of some cases, by turns, and wait for them in any order."""
    print(*cases, sep="\n")  # which is shown of a test that hangs
    calls = []
    for case in cases:
        # the stage of the library is refused in the other forms
        forms = FORMS[:1] * 2 if str(case.algorithm).endswith("+library") else CALLS
        if case.algorithm in LIBRARYS and not HAS_SOUND_PERSISTENT:
            forms = tuple(form for form in forms if form != "persistent")
        calls += [(case, form) for form in forms]
    going: list[Going] = []
    for turn, k in enumerate(rng.permutation(len(calls))):
        case, form = calls[k]
        going.append(case.start(turn, form))
        while len(going) > UNDER_WAY or (going and alone.random() < 0.5):
            going.pop(int(alone.integers(len(going)))).end(int(alone.integers(4)))
    for one in going:
        one.end(0)


def run_all(cases: Cases, drawn: list[Series]) -> None:
    """Make the calls of all cases, some cases at a time."""
    print(f"ISTHMUS_TEST_SEED={SEED}")
    try:
        for k in range(0, len(drawn), TOGETHER):
            together = [*drawn[k : k + TOGETHER], cases.guest()]
            for case in together:
                call_of_mpi4py(case)
            run(together, cases.rng, cases.alone)
    except FaultError as fault:
        raise AssertionError(f"ISTHMUS_TEST_SEED={SEED}: {fault}") from fault


ON_MPI = [name for name, record in COLLECTIVES.items() if record.is_on_mpi]


@pytest.fixture
def operator():
    """One that is not commutative."""
    by = composition()
    yield by
    by.Free()


@pytest.mark.parametrize("of", ON_MPI)
def test_every_algorithm_in_every_form(comm, of, operator, monkeypatch):
    if comm.size == min(MAKERS):
        monkeypatch.setattr(compiling, "LONGEST_MESSAGE_BYTES", LONGEST_BYTES)
    record = COLLECTIVES[of]
    cases = Cases(comm, communicators(comm, record.groups), record, operator)
    run_all(cases, cases.of_all_algorithms())


def test_a_library_without_persistent_collectives(comm, operator, monkeypatch):
    """Every algorithm then has requests of ours; only "native" has none."""
    without_persistent_collectives(monkeypatch)
    on = [Maker(between(2))(comm), Maker(inside(2))(comm)]
    for of in ON_MPI:
        record = COLLECTIVES[of]
        found = [place for place in on if GROUPS[place.kind] == record.groups]
        if not found:
            continue
        cases = Cases(comm, found, record, operator)
        drawn = [x for x in cases.of_all_algorithms() if x.algorithm not in LIBRARYS]
        run_all(cases, drawn[:2])
        args, _ = drawn[0].arguments(transfer(found[0].group, drawn[0].drawn, 0))
        with pytest.raises(NotImplementedError):
            drawn[0].set_up(args, "native")
    for place in on:
        place.free()
