"""Moody, Ahn, de Supinski 2011, figures 3 to 5: the points that are simulated.

The paper prints no times, no keys, no numbers of groups and no numbers of bins: what is
chosen here is said in the report.
"""

from __future__ import annotations

import math
import re
import resource
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..cost.machine import AlphaBeta, Machine
from ..cost.machines import load
from ..groups import vm, vm_lanes
from ..groups.bins import BIN_COUNT
from ..groups.chain import from_size
from ..groups.dialogue import WORD_BYTES
from ..groups.hash_split import hash_split
from ..groups.jenkins import bin_of
from ..groups.split import entry_of, find, place
from ..groups.split_entry import SplitEntry, in_lanes

SIZES = tuple(1 << k for k in range(4, 17, 2))
SMALL, BIG, MILLION = SIZES[0], SIZES[-1], 1 << 20
#: numbers of processes whose dialogues run one by one, to weigh what they hold
WEIGHED = 16, 64, 256, 1024, 4096
#: up to so many, where everyone has a table of all
TABLES = 1024
#: groups where there are few; where there are many it is half the processes
FEW = 8
DAWN, SIERRA = "dawn-like", "sierra-like"
#: processes on Sierra, which had 21 600 cores
SIERRA_SIZES = tuple(n for n in SIZES if n <= 21600)
#: characters of a colour
LENGTHS = 5, 80
#: start-up times, as multiples of what is assumed
STARTUPS = 0.5, 2.0
#: bins of the paper's own example, its figure 2
FEW_BINS = 4
CHENG = tuple(f"cheng{m}" for m in (128, 512, 2048, 8192))
SERIAL = "allgather_group", "allgather_mpi"
#: with random keys of 32 bits; and with keys below N in words of which no bits are left
#: out, as the paper does not say what it sorted
RADIX = "radix", "radix_full"
SORTS = *SERIAL, "gather_scatter", *CHENG, "bitonic", *RADIX
SPLITS = "bitonic", "hash", "hash64"


@dataclass(frozen=True)
class Job:
    """One algorithm at one place of a figure; groups 0 is reordering alone."""

    algorithm: str
    n: int
    groups: int = 0
    length: int = 0
    reorder: bool = True
    #: bits of the keys
    bits: int = 32
    #: the start-up time, as a multiple of the machine's
    startup: float = 1.0
    #: bins of a hash split
    bins: int = BIN_COUNT
    machine: str = DAWN

    @property
    def figure(self) -> int:
        """The figure of the paper."""
        return 3 if not self.groups else 5 if self.reorder else 4


def figure_jobs(
    sizes: tuple[int, ...] = SIZES, sierra: tuple[int, ...] = SIERRA_SIZES
) -> Iterator[Job]:
    """Everything that figures 3 to 5 show, the slowest first."""
    for n in reversed(sierra):
        for name in SORTS:
            yield Job(name, n, machine=SIERRA)
    for n in reversed(sizes):
        for name in reversed(SORTS):
            yield Job(name, n)
        yield Job("radix", n, bits=(n - 1).bit_length())
        for groups in dict.fromkeys((n // 2, FEW)):
            for length in LENGTHS:
                for name in SPLITS:
                    for reorder in (False, True):
                        yield Job(name, n, groups, length, reorder)


def varied_jobs(sizes: tuple[int, ...] = (SMALL, BIG)) -> Iterator[Job]:
    """The same with other start-up times, and hash splits with fewer bins."""
    for job in figure_jobs(sizes, ()):
        yield from (replace(job, startup=startup) for startup in STARTUPS)
    n = sizes[-1]
    for groups in dict.fromkeys((n // 2, FEW)):
        yield Job("hash", n, groups, LENGTHS[0], False, bins=FEW_BINS)


def million_jobs() -> Iterator[Job]:
    """What the paper's abstract speaks of."""
    yield Job("radix", MILLION)
    yield Job("bitonic", MILLION)
    for groups in (FEW, MILLION // 2):
        yield Job("bitonic", MILLION, groups, LENGTHS[1], False)
        yield Job("hash", MILLION, groups, LENGTHS[1], False)


def memory_jobs(sizes: tuple[int, ...] = WEIGHED) -> Iterator[Job]:
    """What is weighed, the slowest first."""
    for n in reversed(sizes):
        sorts = *SERIAL, "gather_scatter", CHENG[0], "bitonic", "radix"
        for name in sorts if n <= TABLES else sorts[2:]:
            yield Job(name, n)
        for groups in dict.fromkeys((FEW, n // 2)):
            for name in SPLITS:
                yield Job(name, n, groups, LENGTHS[0], False)


def entries(job: Job) -> list[SplitEntry]:
    """Colours that are dealt out at random, and random keys of the job's bits; whole
    words hold keys below n."""
    rng = np.random.default_rng(job.n + job.groups)
    most = job.n if job.algorithm == "radix_full" else 1 << job.bits
    keys = rng.integers(0, most, job.n).tolist()
    if not job.groups:
        return [entry_of(None, key, False, True) for key in keys]
    names = [np.base_repr(g, 36).rjust(job.length, "-") for g in range(job.groups)]
    colors = rng.integers(0, job.groups, job.n).tolist()
    return [
        entry_of(names[color], key, True, job.reorder)
        for color, key in zip(colors, keys, strict=True)
    ]


#: seconds that a process needs to compare and move an entry of a table: an assumption,
#: 85 cycles of 850 MHz, with qsort's call of a function for every comparison
ENTRY = 1e-7
#: bytes of an entry of a table of bins
BIN = 3 * WORD_BYTES


@dataclass(frozen=True, kw_only=True)
class Point(Job):
    """A job and what came of it: counts, the time of messages, and of local work."""

    rounds: int
    messages: int
    bytes: int
    #: bytes that the process sends that sends most
    busiest: int
    network: float
    #: entries of tables that the busiest process compares and moves
    entries: float
    #: seconds of a core to simulate it, and bytes if it had a process of its own
    took: float
    resident: int = 0

    @property
    def work(self) -> float:
        """The time of local work."""
        return ENTRY * self.entries

    @property
    def seconds(self) -> float:
        """The whole time under the model."""
        return self.network + self.work


def machine(name: str = DAWN, startup: float = 1.0) -> Machine:
    """A machine that is assumed, or one with other start-up times."""
    model = load(name)
    return AlphaBeta(startup * model.alpha, model.beta)


def compared(job: Job, busiest: int) -> float:
    """How many entries the process that has most to do compares and moves.

    A serial sort does it n log n times, a merge once for every entry. In the others
    an entry of a table is looked at once for every time it is sent, and Hash64 sorts
    chains of up to 64 entries if groups are that small.
    """
    n, name = job.n, job.algorithm
    cheng = re.fullmatch(r"cheng(\d+)", name)
    if name in SERIAL:
        return n * math.log2(n)
    if name == "hash64" and n <= 64 * job.groups:
        return busiest / BIN + min(n, 64) * math.log2(min(n, 64))
    if name == "gather_scatter":
        return 2 * n
    if cheng:
        held = min(int(cheng[1]), n)
        return held * (2 + math.log2(max(1, n / held)))
    if name == "bitonic":
        k = (n - 1).bit_length()
        return k * (k + 1) / 2
    return busiest / BIN


def together(jobs: Iterable[Job]) -> list[tuple[Job, ...]]:
    """Those that differ in their start-up times only, which are one run."""
    found: dict[Job, list[Job]] = {}
    for job in jobs:
        found.setdefault(replace(job, startup=1.0), []).append(job)
    return [tuple(some) for some in found.values()]


def point(job: Job) -> Point:
    """Run one in lanes, and put a time on it."""
    (found,) = points((job,))
    return found


def points(jobs: tuple[Job, ...]) -> list[Point]:
    """Run some in lanes that differ in their start-up times only."""
    job, began = jobs[0], time.process_time()
    models, n = [machine(x.machine, x.startup) for x in jobs], job.n
    link, entry = from_size(np.arange(n), n), in_lanes(entries(job))
    talk = place(link, entry, find(job.algorithm))
    if job.bins != BIN_COUNT:
        choose = partial(bin_of, bins=job.bins)
        talk = hash_split(link, entry, hash_function=choose, bins=job.bins)
    alphas = np.array([[model.alpha] for model in models])
    done = vm_lanes.run(talk, n, alpha=alphas, beta=models[0].beta)
    busiest = int(done.bytes.max())
    counts: dict[str, Any] = {
        "rounds": int(done.rounds.max()),
        "messages": int(done.messages.sum()),
        "bytes": int(done.bytes.sum()),
        "busiest": busiest,
        "entries": compared(job, busiest),
        "took": (time.process_time() - began) / len(jobs),
    }
    times = zip(jobs, done.time.max(axis=-1).tolist(), strict=True)
    return [Point(**vars(x), **counts, network=seconds) for x, seconds in times]


def measured(job: Job) -> Point:
    """The same in a process that does nothing else, with the memory that it took."""
    found = point(job)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1 if sys.platform == "darwin" else 1024
    return replace(found, resident=unit * most)


@dataclass(frozen=True)
class Memory:
    """The most bytes that a process held, in a run of the dialogues."""

    algorithm: str
    n: int
    groups: int
    peak: int


def memory(job: Job) -> Memory:
    """Run the dialogues, and weigh both ends and some others."""
    n, found = job.n, find(job.algorithm)
    done = vm.run(
        [place(from_size(i, n), entry, found) for i, entry in enumerate(entries(job))],
        memory={0, 1, n // 3, n // 2, n - 1},
    )
    return Memory(job.algorithm, n, job.groups, done.peak)
