"""Every registered algorithm, verified on many sizes without MPI."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from math import lcm
from multiprocessing import get_context
from typing import Any

import numpy as np

from .collectives import schedule
from .machine import ScheduleError
from .registry import Algorithm, algorithms, collectives
from .verify import verify

CHUNK = 64
PROCESSES = 8
Sizes = dict[str, Any]
Counts = Callable[[np.random.Generator, int], list[int]]


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


def _equal(rng: np.random.Generator, n: int) -> list[int]:
    return [4] * n


def _mixed(rng: np.random.Generator, n: int) -> list[int]:
    """Small counts, about a third of them zero."""
    counts: list[int] = np.maximum(rng.integers(-3, 7, n), 0).tolist()
    return counts


def _giant(rng: np.random.Generator, n: int) -> list[int]:
    """One count that outweighs all others."""
    counts = _mixed(rng, n)
    counts[int(rng.integers(n))] = 60
    return counts


def _empty(rng: np.random.Generator, n: int) -> list[int]:
    return [0] * n


KINDS: tuple[Counts, ...] = (_mixed, _equal, _giant, _empty)
PAIRS: tuple[tuple[Counts, Counts], ...] = (
    (_mixed, _mixed),
    (_equal, _giant),
    (_giant, _mixed),
    (_mixed, _empty),
    (_empty, _empty),
)
EVEN = ((4, 4), (5, 0))
#: options that cut blocks or rounds, which are too small here to be cut otherwise
CUTS = {"size": 3, "n": 3, "window": 2}


# Of the sizes for one p and q the first is the one that named stages are tried on.


def _inter_allgather(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for p in range(1, most + 1):
        for q in range(1, most + 1):
            yield [{"p": p, "q": q, "ka": ka, "kb": kb} for ka, kb in EVEN]


def _inter_allgatherv(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for p in range(1, most + 1):
        for q in range(1, most + 1):
            yield [{"a": a(rng, p), "b": b(rng, q)} for a, b in PAIRS]


def _counts(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for p in range(1, most + 1):
        yield [{"counts": kind(rng, p)} for kind in KINDS]


def _rooted(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for p in range(1, most + 1):
        roots = sorted({0, p // 2, p - 1})
        yield [{"p": p, "m": m, "root": root} for root in roots for m in (7, 24, 0)]


def _inter_whole(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for q in range(1, most + 1):
        yield [{"q": q, "m": m} for m in (24, 7, 0)]


def _inter_blocks(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for q in range(1, most + 1):
        yield [{"q": q, "k": k} for k in (4, 1, 0)]


def _groups(most: int) -> Iterator[dict[str, int]]:
    for p in range(1, most + 1):
        for q in range(1, most + 1):
            yield {"p": p, "q": q}


def _inter_allreduce(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for groups in _groups(most):
        yield [{**groups, "m": m} for m in (24, 7, 0)]


def _cut(rng: np.random.Generator, total: int, n: int) -> list[int]:
    """Counts of that total, one of them with half of it."""
    counts = np.bincount(rng.integers(n, size=total // 2), minlength=n)
    counts[rng.integers(n)] += total - total // 2
    found: list[int] = counts.tolist()
    return found


def _inter_reduce_scatter(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for groups in _groups(most):
        p, q = groups.values()
        lists = [kind(rng, p) for kind in KINDS]
        yield [{"a": a, "b": _cut(rng, sum(a), q)} for a in lists]


def _inter_common(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for groups in _groups(most):
        p, q = groups.values()
        least = lcm(p, q)
        yield [{**groups, "ka": n // p, "kb": n // q} for n in (least, 5 * least, 0)]


def _inter_alltoallv(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for groups in _groups(most):
        p, q = groups.values()
        yield [
            {
                "ab": [a(rng, q) for _ in range(p)],
                "ba": [b(rng, p) for _ in range(q)],
            }
            for a, b in PAIRS
        ]


def _inter_barrier(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    yield from ([groups] for groups in _groups(most))


SIZES: dict[str, Callable[[int, np.random.Generator], Iterator[list[Sizes]]]] = {
    "inter_allgather": _inter_allgather,
    "inter_allgatherv": _inter_allgatherv,
    "allgatherv": _counts,
    "bcast": _rooted,
    "reduce": _rooted,
    "inter_bcast": _inter_whole,
    "inter_reduce": _inter_whole,
    "inter_gather": _inter_blocks,
    "inter_gatherv": _counts,
    "inter_scatter": _inter_blocks,
    "inter_scatterv": _counts,
    "inter_allreduce": _inter_allreduce,
    "inter_reduce_scatter": _inter_reduce_scatter,
    "inter_reduce_scatter_block": _inter_common,
    "inter_alltoall": _inter_allgather,
    "inter_alltoallv": _inter_alltoallv,
    "inter_barrier": _inter_barrier,
    "reduce_scatter": _counts,
}


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
        verify(programs, made.contract)
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
