"""Every registered algorithm, verified on many sizes without MPI."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context

import numpy as np

from .collectives import schedule
from .errors import ScheduleError
from .registry import Algorithm, algorithms, collectives
from .sweep_sizes import SIZES, Sizes
from .verify import verify

CHUNK = 64
PROCESSES = 8
#: options that cut blocks or rounds, which are too small here to be cut otherwise
CUTS = {"size": 3, "n": 3, "window": 2, "laps": 3}


@dataclass(frozen=True)
class Case:
    """An algorithm, with its stage after a "+", and the sizes to run it on."""

    collective: str
    algorithm: str
    sizes: Sizes


@dataclass(frozen=True)
class Tally:
    """What became of some cases, by collective and algorithm."""

    cases: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: sizes that a stage says it does not work for
    declined: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: dict[tuple[str, str], str] = field(default_factory=dict)

    def __add__(self, other: Tally) -> Tally:
        """Both; of two failures of an algorithm, the earlier."""
        return Tally(
            self.cases + other.cases,
            self.declined + other.declined,
            other.failures | self.failures,
        )


def _works(collective: str, entry: Algorithm, sizes: Sizes) -> bool:
    """Whether an algorithm without a stage is made for the sizes."""
    if collective.startswith("inter_"):
        return True
    return entry.needs(len(sizes["counts"]) if "counts" in sizes else sizes["p"])


def _placed(entry: Algorithm, found: list[Sizes]) -> Iterator[Sizes]:
    """The sizes; again with two placements where an algorithm looks at nodes."""
    for sizes in found:
        yield sizes
        if "nodes" in entry.options:
            ranks = range(len(sizes["counts"]))
            yield {**sizes, "nodes": [r // 3 for r in ranks]}
            yield {**sizes, "nodes": [r % 3 for r in ranks]}


def _names(entry: Algorithm) -> list[str]:
    """The algorithm, and once more for every option that cuts blocks."""
    cuts = (f"({name}={n})" for name, n in CUTS.items() if name in entry.options)
    return [entry.name + options for options in ("", *cuts)]


def cases(most: int, seed: int) -> Iterator[Case]:
    """All algorithms of all collectives, on groups of up to `most` ranks."""
    stages = [stage.name for stage in algorithms("allgatherv")]
    for collective in collectives():
        if collective not in SIZES:
            raise ValueError(f"no sizes are known to verify {collective!r} on")
        rng = np.random.default_rng(seed)
        for found in SIZES[collective](most, rng):
            for entry in algorithms(collective):
                for sizes in _placed(entry, found):
                    if _works(collective, entry, sizes):
                        for name in _names(entry):
                            yield Case(collective, name, sizes)
                for stage in stages if entry.staged else ():
                    yield Case(collective, f"{entry.name}+{stage}", found[0])


def _failure(case: Case) -> str | None:
    """What is wrong in a case; `ValueError` where a stage declines its sizes."""
    made = schedule(case.collective, case.algorithm, **case.sizes)
    programs = made.all_ranks()
    try:
        verify(programs, made.contract, made.nodes)
    except ScheduleError as error:
        return f"{type(error).__name__}: {error}"
    return None


def examine(chunk: list[Case]) -> Tally:
    """Verify some cases."""
    tally = Tally()
    for case in chunk:
        key = case.collective, case.algorithm
        try:
            wrong = _failure(case)
        except ValueError:
            if "+" not in case.algorithm:
                raise
            tally.declined[key] += 1
            continue
        tally.cases[key] += 1
        if wrong is not None:
            sizes = ", ".join(f"{name}={value}" for name, value in case.sizes.items())
            tally.failures.setdefault(key, f"{sizes}: {wrong}")
    return tally


def _chunks(found: Iterable[Case]) -> Iterator[list[Case]]:
    iterator = iter(found)
    while chunk := list(islice(iterator, CHUNK)):
        yield chunk


def sweep(found: Iterable[Case]) -> Iterator[Tally]:
    """Verify all cases in a few processes; the tally of each chunk as it is done."""
    chunks = list(_chunks(found))
    processes = min(PROCESSES, os.cpu_count() or 1, len(chunks))
    if processes < 2:
        yield from map(examine, chunks)
        return
    # Threads of this process must not be copied, so the helpers start afresh.
    with get_context("spawn").Pool(processes) as pool:
        yield from pool.imap(examine, chunks)
