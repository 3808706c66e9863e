"""Moody, Ahn, de Supinski 2011, figures 3 to 5: what is simulated.

The paper prints no times, no keys, no numbers of groups and no numbers of bins: what is
chosen here is said in the report.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..groups.bins import BINS
from ..groups.place import Entry
from ..groups.split import entry_of

SIZES = tuple(1 << k for k in range(4, 17, 2))
SMALL, BIG, MILLION = SIZES[0], SIZES[-1], 1 << 20
#: numbers of processes whose dialogues run one by one, to weigh what they hold
WEIGHED = 16, 64, 256, 1024, 4096
#: up to so many, where everyone has a table of all
TABLES = 1024
#: groups where there are few; where there are many it is half the processes
FEW = 8
#: characters of a colour
LENGTHS = 5, 80
#: start-up times, as multiples of what is assumed
STARTUPS = 0.5, 2.0
#: bins of the paper's own example, its figure 2
FEW_BINS = 4
CHENG = tuple(f"cheng{m}" for m in (128, 512, 2048, 8192))
SERIAL = "allgather_group", "allgather_mpi"
SORTS = *SERIAL, "gather_scatter", *CHENG, "bitonic", "radix"
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
    bins: int = BINS

    @property
    def figure(self) -> int:
        """The figure of the paper."""
        return 3 if not self.groups else 5 if self.reorder else 4


def figure_jobs(sizes: tuple[int, ...] = SIZES) -> Iterator[Job]:
    """Everything that figures 3 to 5 show, the slowest first."""
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
    for job in figure_jobs(sizes):
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


def entries(job: Job) -> list[Entry]:
    """Colours that are dealt out at random, and random keys of the job's bits."""
    rng = np.random.default_rng(job.n + job.groups)
    keys = rng.integers(0, 1 << job.bits, job.n).tolist()
    if not job.groups:
        return [entry_of(None, key, False, True) for key in keys]
    names = [np.base_repr(g, 36).rjust(job.length, "-") for g in range(job.groups)]
    colors = rng.integers(0, job.groups, job.n).tolist()
    return [
        entry_of(names[color], key, True, job.reorder)
        for color, key in zip(colors, keys, strict=True)
    ]
