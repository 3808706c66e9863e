"""Träff et al. 2008, "A simple, pipelined all-gather algorithm for large irregular
problems" (EuroPVM/MPI, slides): the linear and the blocked ring, simulated.

The slides give process counts and block sizes, but no start-up times and bandwidths:
both are assumptions, in the machine files named below.
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
from ..distributions import PAPER_DISTRIBUTIONS, counts
from ..schedules.schedule import Model, Schedule

#: the ways of an allgather, as figures and tables name them
LINEAR_RING = "linear ring"
FIXED_BLOCKS = "blocked ring, fixed B"
BEST_BLOCKS = "blocked ring, best B"
CIRCULANT_WAY = "circulant"
CIRCULANT_BOUND = "circulant, bound"
#: the way for ranks that are dealt out to the nodes in turn, and those beside it
NODE_RING = "node ring, best B"
DEALT_WAYS = LINEAR_RING, BEST_BLOCKS, NODE_RING
#: with more processes, a circulant round has too many messages to simulate
MAX_CIRCULANT_PROCESSES = 2048


@dataclass(frozen=True)
class System:
    """A machine of the slides: its processes, its fixed block size, our total sizes.

    All processes of a node send and receive through a single port of the node.
    """

    name: str
    p: int
    model: Machine
    size: int
    totals: tuple[int, ...]
    processes_per_node: int = 1
    #: the machine file that the model is from
    file: str = ""

    @property
    def machine(self) -> Model:
        """The model with its nodes: alpha and beta are of all levels, ports are not."""
        if self.processes_per_node == 1:
            return self.model
        levels = (
            Level(n, self.model.alpha, self.model.beta)
            for n in (self.processes_per_node, None)
        )
        return Machine(tuple(levels))

    @property
    def startup(self) -> float:
        """The bytes that pass in the time of a start-up."""
        return self.model.alpha / self.model.beta

    def limit(self, m: int) -> float:
        """The time in which a process can receive all blocks."""
        return self.model.beta * m


def _system(
    name: str,
    p: int,
    machine: str,
    size: int,
    bits: Sequence[int],
    processes_per_node: int = 1,
) -> System:
    """A system with totals of 2^k bytes for each process."""
    model = load(machine)
    return System(
        name, p, model, size, tuple(p << k for k in bits), processes_per_node, machine
    )


# Totals are multiples of p, so that the regular distribution is quite regular.
SX8 = _system("SX-8", 30, "nec-sx8", 1 << 20, range(11, 24, 2))
LINUX = _system("Linux cluster", 96, "ddr-infiniband", 32 << 10, range(7, 20, 2))
BLUEGENE = _system("Blue Gene/P", 4096, "bluegene-p", 64 << 10, range(8, 15, 3))
SICORTEX = _system("SiCortex", 5784, "sicortex", 1 << 20, range(8, 15, 3))
SYSTEMS = SX8, LINUX, BLUEGENE, SICORTEX
#: systems with the processes of a node behind one port
SX8_NODES = _system("SX-8, 30 × 8", 240, "nec-sx8", 1 << 20, (12, 16, 20), 8)
LINUX_PAIRS = _system(
    "Linux, 16 × 2", 32, "ddr-infiniband", 32 << 10, (7, 11, 15, 19), 2
)
LINUX_NODES = _system("Linux, 24 × 4", 96, "ddr-infiniband", 32 << 10, [19], 4)
#: the slides' second cluster, without any runs in the slides
GIGABIT = _system(
    "Linux, gigabit, 24 × 4", 96, "gigabit-ethernet", 32 << 10, (7, 11, 15, 19), 4
)
NODE_SYSTEMS = SX8_NODES, LINUX_PAIRS, LINUX_NODES, GIGABIT
#: systems whose ranks are also dealt out in turn: a few seconds to simulate
DEALT_SYSTEMS = LINUX_PAIRS, LINUX_NODES
#: a machine of today, for a goal of our own
SYSTEM_OF_TODAY = System(
    "2 µs, 12 GB/s", 1024, AlphaBeta(2e-6, 1 / 12e9), 32 << 10, (1 << 24,)
)
#: the total size for the effect of B and of p, and for the load balance
STUDIED_BYTES = 96 << 17
#: the total size for the effect of B on 16 × 2 processes: as much for each process
STUDIED_BYTES_OF_PAIRS = 32 << 17
#: the Linux cluster with other numbers of processes, for the plot over p
LINUX_OVER_P = tuple(
    replace(LINUX, name=f"Linux, {p} of 96", p=p, totals=(STUDIED_BYTES,))
    for p in (6, 12, 24, 48)
)
#: distributions that show the load balance: a mild and an extreme one
BALANCE_DISTRIBUTIONS = "linear", "spike"


def parts(p: int, m: int, startup: float) -> int:
    """The number of parts for which the bound of a circulant schedule is least."""
    return max(1, round(sqrt((log2(p) - 1) * m / startup)))


@dataclass(frozen=True)
class GatherJob:
    """A point to simulate; `size` is that of a piece, or the number of parts."""

    system: System
    distribution: str
    m: int
    way: str
    size: int = 0
    #: whether ranks are dealt out to the nodes in turn
    dealt: bool = False

    @property
    def nodes(self) -> list[int]:
        """The node of every rank; an empty list unless ranks are dealt out."""
        p, processes_per_node = self.system.p, self.system.processes_per_node
        return [r % (p // processes_per_node) for r in range(p)] if self.dealt else []

    @property
    def counts(self) -> list[int]:
        """The bytes that each process contributes."""
        return counts(self.distribution, self.system.p, self.m)


@dataclass(frozen=True)
class GatherPoint:
    """The simulated time of a way, in seconds and as a multiple of beta m."""

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
    block_bytes = np.array(counts(distribution, system.p, m))
    sizes: dict[str, Callable[[], int]] = {
        LINEAR_RING: lambda: 0,
        FIXED_BLOCKS: lambda: system.size,
        BEST_BLOCKS: lambda: best(block_bytes, 1, system.startup),
        NODE_RING: lambda: best(block_bytes, 1, system.startup),
        CIRCULANT_WAY: lambda: best_n(block_bytes, system.startup),
    }
    size = sizes.get(way, lambda: parts(system.p, m, system.startup))
    return GatherJob(system, distribution, m, way, size())


def problem(job: GatherJob) -> Schedule:
    """The schedule of a job, for all processes."""
    names = {LINEAR_RING: "ring", CIRCULANT_WAY: f"circulant(n={job.size})"}
    if job.way == NODE_RING:
        names[NODE_RING] = f"node_ring(size={job.size})"
    name = names.get(job.way, f"blocked_ring(size={job.size})")
    return schedule("allgatherv", name, counts=job.counts, nodes=job.nodes)


def bound(job: GatherJob) -> tuple[int, float]:
    """Rounds and time that a circulant schedule of any distribution does not exceed,
    since a message carries at most one part of every block, and parts are rounded
    up."""
    p, n, model = job.system.p, job.size, job.system.model
    rounds = n - 1 + log2(p)
    return rounds, rounds * (model.alpha + model.beta * (job.m / n + p))


def dealt_name(system: System) -> str:
    """The name of a system whose ranks are dealt out to the nodes in turn."""
    return f"{system.name}, dealt out"


def point(job: GatherJob) -> GatherPoint:
    """The point of a job: simulated, or its bound."""
    if job.way == CIRCULANT_BOUND:
        rounds, seconds = bound(job)
    else:
        gather = problem(job)
        model = job.system.machine
        timeline = gather.simulate(placed(model, gather) if job.dealt else model)
        rounds, seconds = timeline.rounds, timeline.time
    system, multiple = job.system, seconds / job.system.limit(job.m)
    name = dealt_name(system) if job.dealt else system.name
    return GatherPoint(
        system=name,
        processes=system.p,
        distribution=job.distribution,
        m=job.m,
        way=job.way,
        size=job.size,
        rounds=rounds,
        seconds=seconds,
        multiple=multiple,
    )


def work(job: GatherJob) -> float:
    """The relative time to simulate a point.

    A round of a ring takes nearly the same time for any number of processes; a round of
    a circulant schedule has messages of pieces from each.
    """
    p = job.system.p
    if job.way == CIRCULANT_BOUND:
        return 0.0
    if job.way == CIRCULANT_WAY:
        return (job.size + log2(p)) * (1 + p / 25)
    pieces = sum(-(-k // job.size) for k in job.counts) if job.size else 0
    return max(pieces, p) * (1 + p / 1500)


def ways(system: System) -> tuple[str, ...]:
    """The ways in a figure of a system."""
    return (
        LINEAR_RING,
        FIXED_BLOCKS,
        BEST_BLOCKS,
        CIRCULANT_BOUND if system.p > MAX_CIRCULANT_PROCESSES else CIRCULANT_WAY,
    )


def time_jobs() -> Iterator[GatherJob]:
    """Time against total size on every system, the slowest first."""
    for system in sorted(
        (*SYSTEMS, *NODE_SYSTEMS, *LINUX_OVER_P, SYSTEM_OF_TODAY),
        key=lambda s: -s.p,
    ):
        for m in reversed(system.totals):
            for distribution in PAPER_DISTRIBUTIONS:
                for way in reversed(ways(system)):
                    yield chosen(system, distribution, m, way)


def dealt_jobs() -> Iterator[GatherJob]:
    """The rings on ranks whose neighbours are on other nodes, and the ring that goes
    from node to node."""
    for system in DEALT_SYSTEMS:
        for m in system.totals:
            for distribution in PAPER_DISTRIBUTIONS:
                for way in DEALT_WAYS:
                    yield replace(chosen(system, distribution, m, way), dealt=True)


def studied() -> dict[System, int]:
    """The systems on which the effect of B is shown, and the total sizes."""
    return {LINUX: STUDIED_BYTES, LINUX_PAIRS: STUDIED_BYTES_OF_PAIRS}


def rules(system: System, distribution: str) -> dict[str, int | None]:
    """The block sizes that the rules choose, and the best."""
    block_bytes = np.array(counts(distribution, system.p, studied()[system]))
    return {
        # The threshold of rule 1 is a start-up; empty blocks have no size by the rule.
        "rule 1": smallest(block_bytes, int(system.startup), 0.0)
        if block_bytes.min()
        else None,
        "rule 2": system.size,
        "rule 3": square_root(block_bytes, 1, system.startup),
        "best": best(block_bytes, 1, system.startup),
    }


def size_jobs() -> Iterator[GatherJob]:
    """Time against block size, and at the sizes that rules choose."""
    for system, m in studied().items():
        for distribution in PAPER_DISTRIBUTIONS:
            largest = max(counts(distribution, system.p, m))
            for k in range(10, 25):
                if 1 << k < 2 * largest:
                    yield GatherJob(system, distribution, m, "any", 1 << k)
            for rule, size in rules(system, distribution).items():
                if size is not None:
                    yield GatherJob(system, distribution, m, rule, size)


def balance(distribution: str, way: str) -> Timeline:
    """The timeline of a way on the Linux cluster."""
    job = chosen(LINUX, distribution, STUDIED_BYTES, way)
    return problem(job).simulate(LINUX.model, record=True)


def same_messages(a: Schedule, b: Schedule) -> bool:
    """Whether two schedules send equal messages, round by round."""
    for own_step, other_step in zip_longest(steps(a), steps(b)):
        if own_step is None or other_step is None:
            return False
        pairs = zip(
            (
                own_step.messages.source,
                own_step.messages.target,
                own_step.messages.size,
            ),
            (
                other_step.messages.source,
                other_step.messages.target,
                other_step.messages.size,
            ),
            strict=True,
        )
        if not all(np.array_equal(own, counterpart) for own, counterpart in pairs):
            return False
    return True


def is_the_ring(system: System, m: int) -> bool:
    """Whether the blocked ring is the linear ring for equal blocks."""
    jobs = (chosen(system, "regular", m, way) for way in (LINEAR_RING, BEST_BLOCKS))
    return same_messages(*map(problem, jobs))
