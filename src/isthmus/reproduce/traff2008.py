"""Träff et al. 2008, "A simple, pipelined all-gather algorithm for large irregular
problems" (EuroPVM/MPI, slides): the linear and the blocked ring, simulated.

The slides give process counts and block sizes, but no start-up times and bandwidths:
those are assumptions, in the machine files named below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import sqrt

import numpy as np

from ..algorithms.allgatherv_circulant import best_n
from ..algorithms.parts.patterns import log2
from ..algorithms.parts.piece_size import best, smallest, square_root
from ..collectives.records import schedule
from ..cost.machine import AlphaBeta, Level, Machine
from ..cost.machines import load
from ..cost.messages import steps
from ..cost.placement import placed
from ..cost.timeline import Timeline
from ..distributions import SIX, counts
from ..schedules.schedule import Model, Schedule

#: the ways to do it, as the figures and tables name them
RING, FIXED, BEST, CIRCULANT, BOUND = (
    "linear ring",
    "blocked ring, fixed B",
    "blocked ring, best B",
    "circulant",
    "circulant, bound",
)
#: where ranks are dealt out to the nodes in turn
NODE_RING = "node ring, best B"
#: from so many processes on all messages of a circulant round are too many to simulate
MAX_CIRCULANT_PROCESSES = 2048


@dataclass(frozen=True)
class System:
    """A machine of the slides: its processes, its fixed block size, our total sizes.

    `each` processes make a node, and what leaves or enters it takes its one port.
    """

    name: str
    p: int
    model: Machine
    size: int
    totals: tuple[int, ...]
    each: int = 1
    #: the machine file that the model is from
    file: str = ""

    @property
    def machine(self) -> Model:
        """The model with its nodes; only ports differ, alpha and beta are the same."""
        if self.each == 1:
            return self.model
        levels = (
            Level(n, self.model.alpha, self.model.beta) for n in (self.each, None)
        )
        return Machine(tuple(levels))

    @property
    def startup(self) -> float:
        """The bytes that pass in the time of a start-up."""
        return self.model.alpha / self.model.beta

    def limit(self, m: int) -> float:
        """The time in which a process can receive everything."""
        return self.model.beta * m


def _system(
    name: str, p: int, machine: str, size: int, bits: Sequence[int], each: int = 1
) -> System:
    """A system with totals of 2^k bytes for each process."""
    model = load(machine)
    return System(name, p, model, size, tuple(p << k for k in bits), each, machine)


# Totals are multiples of p, so that the regular distribution is quite regular.
SX8 = _system("SX-8", 30, "nec-sx8", 1 << 20, range(11, 24, 2))
LINUX = _system("Linux cluster", 96, "ddr-infiniband", 32 << 10, range(7, 20, 2))
BLUEGENE = _system("Blue Gene/P", 4096, "bluegene-p", 64 << 10, range(8, 15, 3))
SYSTEMS = SX8, LINUX, BLUEGENE
#: at one size only, as a table: a ring of so many takes seconds to simulate
SICORTEX = _system("SiCortex", 5784, "sicortex", 1 << 20, [14])
#: the same with the processes of a node behind one port
SX8_NODES = _system("SX-8, 30 × 8", 240, "nec-sx8", 1 << 20, (12, 16, 20), 8)
LINUX_PAIRS = _system(
    "Linux, 16 × 2", 32, "ddr-infiniband", 32 << 10, (7, 11, 15, 19), 2
)
LINUX_NODES = _system("Linux, 24 × 4", 96, "ddr-infiniband", 32 << 10, [19], 4)
#: the slides' other cluster, of whose runs they show none
GIGABIT = _system("Linux, gigabit, 24 × 4", 96, "gigabit-ethernet", 32 << 10, [19], 4)
NODE_SYSTEMS = SX8_NODES, LINUX_PAIRS, LINUX_NODES, GIGABIT
#: those whose ranks are also dealt out in turn: a few seconds to simulate
DEALT_SYSTEMS = LINUX_PAIRS, LINUX_NODES
#: a machine of today, for a goal of our own
TODAY = System("2 µs, 12 GB/s", 1024, AlphaBeta(2e-6, 1 / 12e9), 32 << 10, (1 << 24,))
#: the total size at which the effect of B, of p and the load balance are looked at
STUDIED_BYTES = 96 << 17
#: the Linux cluster with other numbers of processes, for the plot over p
OVER_P = tuple(
    replace(LINUX, name=f"Linux, {p} of 96", p=p, totals=(STUDIED_BYTES,))
    for p in (6, 12, 24, 48)
)
#: distributions that show the load balance: one that is mild, one that is not
BALANCE_DISTRIBUTIONS = "linear", "spike"


def parts(p: int, m: int, startup: float) -> int:
    """The number of parts for which the bound of a circulant schedule is least."""
    return max(1, round(sqrt((log2(p) - 1) * m / startup)))


@dataclass(frozen=True)
class GatherJob:
    """One point to simulate; `size` is that of a piece, or the number of parts."""

    system: System
    distribution: str
    m: int
    way: str
    size: int = 0
    #: whether ranks are dealt out to the nodes in turn
    dealt: bool = False

    @property
    def nodes(self) -> list[int]:
        """The node of every rank, where that matters."""
        p, each = self.system.p, self.system.each
        return [r % (p // each) for r in range(p)] if self.dealt else []

    @property
    def counts(self) -> list[int]:
        """What every process contributes."""
        return counts(self.distribution, self.system.p, self.m)


@dataclass(frozen=True)
class GatherPoint:
    """The simulated time of one way, in seconds and as a multiple of beta m."""

    system: str
    processes: int
    distribution: str
    m: int
    way: str
    size: int
    rounds: int
    seconds: float
    multiple: float


def chosen(system: System, distribution: str, m: int, way: str) -> GatherJob:
    """A job with the size that its way calls for."""
    each = np.array(counts(distribution, system.p, m))
    sizes: dict[str, Callable[[], int]] = {
        RING: lambda: 0,
        FIXED: lambda: system.size,
        BEST: lambda: best(each, 1, system.startup),
        NODE_RING: lambda: best(each, 1, system.startup),
        CIRCULANT: lambda: best_n(each, system.startup),
    }
    size = sizes.get(way, lambda: parts(system.p, m, system.startup))
    return GatherJob(system, distribution, m, way, size())


def problem(job: GatherJob) -> Schedule:
    """What all processes do."""
    names = {RING: "ring", CIRCULANT: f"circulant(n={job.size})"}
    if job.way == NODE_RING:
        names[NODE_RING] = f"node_ring(size={job.size})"
    name = names.get(job.way, f"blocked_ring(size={job.size})")
    return schedule("allgatherv", name, counts=job.counts, nodes=job.nodes)


def bound(job: GatherJob) -> tuple[int, float]:
    """Rounds and time that a circulant schedule of any distribution does not exceed.

    Of every block a message carries one part at the most, and parts are rounded up.
    """
    p, n, model = job.system.p, job.size, job.system.model
    rounds = n - 1 + log2(p)
    return rounds, rounds * (model.alpha + model.beta * (job.m / n + p))


def point(job: GatherJob) -> GatherPoint:
    """Simulate one, or give its bound."""
    if job.way == BOUND:
        rounds, seconds = bound(job)
    else:
        made = problem(job)
        model = job.system.machine
        line = made.simulate(placed(model, made) if job.dealt else model)
        rounds, seconds = line.rounds, line.time
    s, multiple = job.system, seconds / job.system.limit(job.m)
    name = s.name + ", dealt out" * job.dealt
    where = name, s.p, job.distribution, job.m
    return GatherPoint(*where, job.way, job.size, rounds, seconds, multiple)


def work(job: GatherJob) -> float:
    """About how long it takes to simulate a point, beside others: a round of a ring
    takes nearly the same for any number of processes, one of a circulant schedule has
    messages of pieces from each."""
    p = job.system.p
    if job.way == BOUND:
        return 0.0
    if job.way == CIRCULANT:
        return (job.size + log2(p)) * (1 + p / 25)
    pieces = sum(-(-k // job.size) for k in job.counts) if job.size else 0
    return max(pieces, p) * (1 + p / 1500)


def ways(system: System) -> tuple[str, ...]:
    """What a figure of a system shows."""
    return RING, FIXED, BEST, BOUND if system.p > MAX_CIRCULANT_PROCESSES else CIRCULANT


def time_jobs() -> Iterator[GatherJob]:
    """Time against total size on every system, the slowest first."""
    for system in sorted(
        (*SYSTEMS, SICORTEX, *NODE_SYSTEMS, *OVER_P, TODAY), key=lambda s: -s.p
    ):
        for m in reversed(system.totals):
            for distribution in SIX:
                for way in reversed(ways(system)):
                    yield chosen(system, distribution, m, way)


def dealt_jobs() -> Iterator[GatherJob]:
    """The rings where neighbours of a rank are on other nodes, and the ring that goes
    from node to node."""
    for system in DEALT_SYSTEMS:
        for distribution in SIX:
            for way in (RING, BEST, NODE_RING):
                found = chosen(system, distribution, system.totals[-1], way)
                yield replace(found, dealt=True)


def rules(distribution: str) -> dict[str, int | None]:
    """The block sizes that the rules choose, and the best, on the Linux cluster."""
    each = np.array(counts(distribution, LINUX.p, STUDIED_BYTES))
    return {
        # its threshold is a start-up; it says nothing where a block is empty
        "rule 1": smallest(each, int(LINUX.startup), 0.0) if each.min() else None,
        "rule 2": LINUX.size,
        "rule 3": square_root(each, 1, LINUX.startup),
        "best": best(each, 1, LINUX.startup),
    }


def size_jobs() -> Iterator[GatherJob]:
    """Time against block size, and at the sizes that rules choose."""
    for distribution in SIX:
        largest = max(counts(distribution, LINUX.p, STUDIED_BYTES))
        for k in range(10, 25):
            if 1 << k < 2 * largest:
                yield GatherJob(LINUX, distribution, STUDIED_BYTES, "any", 1 << k)
        for rule, size in rules(distribution).items():
            if size is not None:
                yield GatherJob(LINUX, distribution, STUDIED_BYTES, rule, size)


def balance(distribution: str, way: str) -> Timeline:
    """Who communicates when, on the Linux cluster."""
    job = chosen(LINUX, distribution, STUDIED_BYTES, way)
    return problem(job).simulate(LINUX.model, record=True)


def same_messages(a: Schedule, b: Schedule) -> bool:
    """Whether two schedules send the same messages, round by round."""
    for x, y in zip_longest(steps(a), steps(b)):
        if x is None or y is None:
            return False
        pairs = zip(
            (x.messages.source, x.messages.target, x.messages.size),
            (y.messages.source, y.messages.target, y.messages.size),
            strict=True,
        )
        if not all(np.array_equal(one, other) for one, other in pairs):
            return False
    return True


def is_the_ring(system: System, m: int) -> bool:
    """Whether the blocked ring is the linear ring for equal blocks."""
    jobs = (chosen(system, "regular", m, way) for way in (RING, BEST))
    return same_messages(*map(problem, jobs))
