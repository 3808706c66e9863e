"""Moody, Ahn, de Supinski 2011: counts and times of a job, and what it holds."""

from __future__ import annotations

import math
import re
import resource
import sys
import time
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..cost.alphabeta import AlphaBeta
from ..cost.machines import load
from ..groups import vm, vm_lanes
from ..groups.bins import BINS
from ..groups.chain import whole
from ..groups.dialogue import WORD
from ..groups.hashed import hashed
from ..groups.hashing import bin_of
from ..groups.place import in_lanes
from ..groups.radix import DIGIT
from ..groups.split import find, place
from .moody2011 import SERIAL, Job, entries

#: seconds that a process needs to compare and move an entry of a table: an assumption,
#: 85 cycles of 850 MHz, with qsort's call of a function for every comparison
ENTRY = 1e-7
#: bytes of an entry of a table of bins, and of one with both ends of a bin
BIN, ENDS = 3 * WORD, 4 * WORD


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


def machine(startup: float = 1.0) -> AlphaBeta:
    """The machine that is assumed, or one with other start-up times."""
    model = load("dawn-like")
    assert isinstance(model, AlphaBeta)
    return replace(model, alpha=startup * model.alpha)


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


def point(job: Job) -> Point:
    """Run one in lanes, and put a time on it."""
    began, model, n = time.process_time(), machine(job.startup), job.n
    link, entry = whole(np.arange(n), n), in_lanes(entries(job))
    talk = place(link, entry, find(job.algorithm))
    if job.bins != BINS:
        choose = partial(bin_of, bins=job.bins)
        talk = hashed(link, entry, choose=choose, bins=job.bins)
    done = vm_lanes.run(talk, n, alpha=model.alpha, beta=model.beta)
    busiest = int(done.bytes.max())
    return Point(
        **vars(job),
        rounds=int(done.rounds.max()),
        messages=int(done.messages.sum()),
        bytes=int(done.bytes.sum()),
        busiest=busiest,
        network=float(done.time.max()),
        entries=compared(job, busiest),
        took=time.process_time() - began,
    )


def measured(job: Job) -> Point:
    """The same in a process that does nothing else, with the memory that it took."""
    found = point(job)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1 if sys.platform == "darwin" else 1024
    return replace(found, resident=unit * most)


def patient_radix(n: int) -> Point:
    """A radix sort that never stops early and sends empty bins too: counted, not run.

    For every digit a split and a rejoin, of ⌈log n⌉ rounds with two full tables each.
    """
    job = Job("radix", n)
    k, model = (n - 1).bit_length(), machine(job.startup)
    times = k * -(-job.bits // DIGIT)
    sizes = [WORD + entry * (1 << DIGIT) for entry in (BIN, ENDS)]
    sent = 2 * times * sum(sizes)
    return Point(
        **vars(job),
        rounds=2 * times,
        messages=4 * times * n,
        bytes=sent * n,
        busiest=sent,
        network=2 * times * sum(model.alpha + model.beta * size for size in sizes),
        entries=compared(job, sent),
        took=0.0,
    )


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
        [place(whole(i, n), entry, found) for i, entry in enumerate(entries(job))],
        memory={0, 1, n // 3, n // 2, n - 1},
    )
    return Memory(job.algorithm, n, job.groups, done.peak)
