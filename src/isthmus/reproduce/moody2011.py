"""Moody, Ahn, de Supinski 2011, figures 3 to 5: the simulated points.

The paper prints no times, no keys, no numbers of groups and no numbers of bins: the
report says what is assumed in their place.
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

from ..cost.machine import Machine
from ..cost.machines import load
from ..groups import vm, vm_batch
from ..groups.bins import BIN_COUNT
from ..groups.chain import from_size
from ..groups.dialogue import WORD_BYTES
from ..groups.hash_split import hash_split
from ..groups.jenkins import bin_of
from ..groups.split import entry_of, find, place
from ..groups.split_entry import SplitEntry, batched

PROCESS_COUNTS = tuple(1 << k for k in range(4, 17, 2))
MIN_PROCESSES, MAX_PROCESSES, MILLION = PROCESS_COUNTS[0], PROCESS_COUNTS[-1], 1 << 20
#: numbers of processes whose dialogues run one by one, to weigh what they hold
WEIGHED_PROCESSES = 16, 64, 256, 1024, 4096
#: processes up to which sorts are weighed that hold a table of all processes
MAX_TABLE_PROCESSES = 1024
#: groups of splits into few groups; splits into many have half as many as processes
FEW_GROUPS = 8
DAWN, SIERRA = "dawn-like", "sierra-like"
#: processes on Sierra, which had 21 600 cores
SIERRA_PROCESS_COUNTS = tuple(n for n in PROCESS_COUNTS if n <= 21600)
#: characters of a colour
COLOR_LENGTHS = 5, 80
#: start-up times, as multiples of the assumed time
STARTUP_FACTORS = 0.5, 2.0
#: bins of the paper's own example, its figure 2
FEW_BINS = 4
CHENG_SORTS = tuple(f"cheng{m}" for m in (128, 512, 2048, 8192))
SERIAL_SORTS = "allgather_group", "allgather_mpi"
#: with random keys of 32 bits, and with keys below N in whole words, since the paper
#: does not say which keys were sorted
RADIX_SORTS = "radix", "radix_full"
SORTS = *SERIAL_SORTS, "gather_scatter", *CHENG_SORTS, "bitonic", *RADIX_SORTS
SPLITS = "bitonic", "hash", "hash64"


@dataclass(frozen=True)
class SplitJob:
    """An algorithm at a place of a figure; groups 0 is reordering alone."""

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
    sizes: tuple[int, ...] = PROCESS_COUNTS,
    sierra: tuple[int, ...] = SIERRA_PROCESS_COUNTS,
) -> Iterator[SplitJob]:
    """All points of figures 3 to 5, the slowest first."""
    for n in reversed(sierra):
        for name in SORTS:
            yield SplitJob(name, n, machine=SIERRA)
    for n in reversed(sizes):
        for name in reversed(SORTS):
            yield SplitJob(name, n)
        yield SplitJob("radix", n, bits=(n - 1).bit_length())
        for groups in dict.fromkeys((n // 2, FEW_GROUPS)):
            for length in COLOR_LENGTHS:
                for name in SPLITS:
                    for reorder in (False, True):
                        yield SplitJob(
                            name, n, groups=groups, length=length, reorder=reorder
                        )


def varied_jobs(
    sizes: tuple[int, ...] = (MIN_PROCESSES, MAX_PROCESSES),
) -> Iterator[SplitJob]:
    """Points at the smallest and largest sizes, with other start-up times or fewer
    bins."""
    for job in figure_jobs(sizes, ()):
        yield from (replace(job, startup=startup) for startup in STARTUP_FACTORS)
    n = sizes[-1]
    for groups in dict.fromkeys((n // 2, FEW_GROUPS)):
        yield SplitJob(
            "hash",
            n,
            groups=groups,
            length=COLOR_LENGTHS[0],
            reorder=False,
            bins=FEW_BINS,
        )


def million_jobs() -> Iterator[SplitJob]:
    """Splits of a million processes, as in the paper's abstract."""
    yield SplitJob("radix", MILLION)
    yield SplitJob("bitonic", MILLION)
    for groups in (FEW_GROUPS, MILLION // 2):
        for name in ("bitonic", "hash"):
            yield SplitJob(
                name, MILLION, groups=groups, length=COLOR_LENGTHS[1], reorder=False
            )


def memory_jobs(sizes: tuple[int, ...] = WEIGHED_PROCESSES) -> Iterator[SplitJob]:
    """Splits whose memory is weighed, the slowest first."""
    for n in reversed(sizes):
        sorts = *SERIAL_SORTS, "gather_scatter", CHENG_SORTS[0], "bitonic", "radix"
        for name in sorts if n <= MAX_TABLE_PROCESSES else sorts[2:]:
            yield SplitJob(name, n)
        for groups in dict.fromkeys((FEW_GROUPS, n // 2)):
            for name in SPLITS:
                yield SplitJob(
                    name, n, groups=groups, length=COLOR_LENGTHS[0], reorder=False
                )


def entries(job: SplitJob) -> list[SplitEntry]:
    """Colours dealt out at random, and random keys of the job's bits; whole words hold
    keys below n."""
    rng = np.random.default_rng(job.n + job.groups)
    key_limit = job.n if job.algorithm == "radix_full" else 1 << job.bits
    keys = rng.integers(0, key_limit, job.n).tolist()
    if not job.groups:
        return [entry_of(None, key, False, True) for key in keys]
    names = [np.base_repr(g, 36).rjust(job.length, "-") for g in range(job.groups)]
    colors = rng.integers(0, job.groups, job.n).tolist()
    return [
        entry_of(names[color], key, True, job.reorder)
        for color, key in zip(colors, keys, strict=True)
    ]


#: seconds that a process needs to compare and move an entry of a table: an assumption,
#: 85 cycles of 850 MHz, with qsort's call of a function for every comparison; and as
#: many cycles of the 2.8 GHz of Sierra
SECONDS_PER_ENTRY = {DAWN: 1e-7, SIERRA: 3e-8}
#: bytes of an entry of a table of bins
BIN_BYTES = 3 * WORD_BYTES


@dataclass(frozen=True, kw_only=True)
class SplitPoint(SplitJob):
    """A job and its result: counts, the time of messages, and of local work."""

    rounds: int
    messages: int
    bytes: int
    #: bytes sent by the process that sends most
    busiest: int
    network: float
    #: entries of tables that the busiest process compares and moves
    entries: float
    #: seconds of a core for the simulation, and bytes of a process with no other work
    took: float
    resident: int = 0

    @property
    def work(self) -> float:
        """The time of local work."""
        return SECONDS_PER_ENTRY[self.machine] * self.entries

    @property
    def seconds(self) -> float:
        """The whole time under the model."""
        return self.network + self.work


def machine(name: str = DAWN, startup: float = 1.0) -> Machine:
    """The assumed machine, or a copy with another start-up time between nodes."""
    model = load(name)
    *inner, outermost = model.levels
    outermost = replace(outermost, alpha=startup * outermost.alpha)
    return replace(model, levels=(*inner, outermost))


def node_ports(model: Machine, n: int) -> vm_batch.NodePorts | None:
    """The nodes of n processes in order, if the processes of a node share its port."""
    if model.flat:
        return None
    level = model.levels[0]
    return vm_batch.NodePorts(model.units(n)[0], level.alpha, level.beta)


def compared_entries(job: SplitJob, busiest: int) -> float:
    """Entries that the busiest process compares and moves.

    A serial sort takes n log n, a merge one for every entry. In all others an entry of
    a table is looked at once for every time it is sent, and Hash64 sorts chains of up
    to 64 entries if groups are that small.
    """
    n, name = job.n, job.algorithm
    cheng = re.fullmatch(r"cheng(\d+)", name)
    if name in SERIAL_SORTS:
        return n * math.log2(n)
    if name == "hash64" and n <= 64 * job.groups:
        return busiest / BIN_BYTES + min(n, 64) * math.log2(min(n, 64))
    if name == "gather_scatter":
        return 2 * n
    if cheng:
        held = min(int(cheng[1]), n)
        return held * (2 + math.log2(max(1, n / held)))
    if name == "bitonic":
        k = (n - 1).bit_length()
        return k * (k + 1) / 2
    return busiest / BIN_BYTES


def jobs_by_run(jobs: Iterable[SplitJob]) -> list[tuple[SplitJob, ...]]:
    """Jobs in groups that differ in start-up times only, since a run as a batch takes
    several start-up times at once."""
    jobs_of_run: dict[SplitJob, list[SplitJob]] = {}
    for job in jobs:
        jobs_of_run.setdefault(replace(job, startup=1.0), []).append(job)
    return [tuple(run_jobs) for run_jobs in jobs_of_run.values()]


def point(job: SplitJob) -> SplitPoint:
    """The point of a job, run as a batch."""
    (split_point,) = points((job,))
    return split_point


def points(jobs: tuple[SplitJob, ...]) -> list[SplitPoint]:
    """The points of jobs that differ in start-up times only, from one run."""
    job, start_seconds = jobs[0], time.process_time()
    models, n = [machine(x.machine, x.startup) for x in jobs], job.n
    link, entry = from_size(np.arange(n), n), batched(entries(job))
    dialogues = place(link, entry, find(job.algorithm))
    if job.bins != BIN_COUNT:
        choose = partial(bin_of, bins=job.bins)
        dialogues = hash_split(link, entry, hash_function=choose, bins=job.bins)
    alphas = np.array([[model.alpha] for model in models])
    nodes = node_ports(models[0], n)
    result = vm_batch.run(dialogues, n, alpha=alphas, beta=models[0].beta, nodes=nodes)
    busiest = int(result.bytes.max())
    counts: dict[str, Any] = {
        "rounds": int(result.rounds.max()),
        "messages": int(result.messages.sum()),
        "bytes": int(result.bytes.sum()),
        "busiest": busiest,
        "entries": compared_entries(job, busiest),
        "took": (time.process_time() - start_seconds) / len(jobs),
    }
    times = zip(jobs, result.time.max(axis=-1).tolist(), strict=True)
    return [SplitPoint(**vars(x), **counts, network=seconds) for x, seconds in times]


def measured(job: SplitJob) -> SplitPoint:
    """The point of a job, with the peak memory of its process.

    The process must do nothing else, because the peak is over the whole life of a
    process.
    """
    split_point = point(job)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1 if sys.platform == "darwin" else 1024
    return replace(split_point, resident=unit * peak)


@dataclass(frozen=True)
class PeakMemory:
    """The most bytes that a process held, in a run of the dialogues."""

    algorithm: str
    n: int
    groups: int
    peak: int


def memory(job: SplitJob) -> PeakMemory:
    """The peak memory of a job.

    Only the first and last process and some between are weighed, since weighing every
    state of all is slow.
    """
    n, algorithm = job.n, find(job.algorithm)
    result = vm.run(
        [
            place(from_size(i, n), entry, algorithm)
            for i, entry in enumerate(entries(job))
        ],
        memory={0, 1, n // 3, n // 2, n - 1},
    )
    return PeakMemory(job.algorithm, n, job.groups, result.peak)
