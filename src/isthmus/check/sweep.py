"""Every registered algorithm, verified on many sizes without MPI."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from ..collectives.collective import Sizes
from ..collectives.records import COLLECTIVES, schedule
from ..schedules.registry import Algorithm, algorithms, collectives
from ..verify.errors import ScheduleError
from ..verify.verify import verify
from ..workers import pool
from .placements import Nodes, anywhere, placements

CHUNK = 64
#: processes, at the most, by default
PROCESSES = 8
#: options that cut blocks or rounds, which are too small here to be cut otherwise
CUTS = {"size": 3, "n": 3, "window": 2, "parts": 3, "radix": 3, "aggregation": 2}
#: options of algorithms that share memory, for several chunks, several lanes, and lanes
#: that are long enough for rings; a size is for each rank
SHARED: tuple[dict[str, float], ...] = (
    {},
    {"size": 2},
    {"lanes": 2},
    {"size": 3, "lanes": 3},
    {"startup": 1.0},
    {"startup": 0.1},
    {"size": 3, "startup": 0.1},
    {"lanes": 2, "n": 3},
)
#: ranks in all, at most, that are tried with all of these on every placement
FEW = 6
#: so many random placements of groups that are too large for all of them
LARGER = 8


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


def _works(entry: Algorithm, ranks: tuple[int, ...]) -> bool:
    """Whether an algorithm without a stage is made for groups of so many ranks."""
    return len(ranks) > 1 or entry.needs(*ranks)


def _placed(collective: str, entry: Algorithm, found: list[Sizes]) -> Iterator[Sizes]:
    """The sizes; again with two placements where an algorithm looks at nodes."""
    for sizes in found:
        yield sizes
        if "nodes" in entry.options:
            ranks = range(sum(COLLECTIVES[collective].ranks(sizes)))
            yield {**sizes, "nodes": [r // 3 for r in ranks]}
            yield {**sizes, "nodes": [r % 3 for r in ranks]}


def _names(entry: Algorithm) -> list[str]:
    """The algorithm, and once more for every option that cuts blocks."""
    cuts = (f"({name}={n})" for name, n in CUTS.items() if name in entry.options)
    return [entry.name + options for options in ("", *cuts)]


def with_options(entry: Algorithm, n: int) -> list[str]:
    """An algorithm that shares memory, with all options that it has, for n ranks."""
    found = []
    for options in (x for x in SHARED if x.keys() <= entry.options.keys()):
        values = {k: x * n if k == "size" else x for k, x in options.items()}
        text = ",".join(f"{k}={x}" for k, x in values.items())
        found.append(f"{entry.name}({text})" if text else entry.name)
    return found


def cases(most: int, seed: int, placed: int = 2) -> Iterator[Case]:
    """All algorithms of all collectives, on groups of up to `most` ranks; those that
    share memory on all placements of groups of up to `placed` ranks, and on a few of
    larger ones."""
    for collective in collectives():
        if collective not in COLLECTIVES:
            raise ValueError(f"no sizes are known to verify {collective!r} on")
        yield from _flat(collective, most, seed)
        yield from on_nodes(collective, most, seed, placed)


def on_nodes(collective: str, most: int, seed: int, placed: int) -> Iterator[Case]:
    """Algorithms that share memory: with all options where there are few ranks, else
    with one; sizes take turns."""
    rng = np.random.default_rng(seed)
    entries = [entry for entry in algorithms(collective) if entry.node_memory]
    every = (
        list(COLLECTIVES[collective].sweep(max(most, placed), rng)) if entries else []
    )
    for found, where in _where(collective, every, placed, rng):
        ranks = COLLECTIVES[collective].ranks(found[0])
        n = sum(ranks)
        for t, nodes in enumerate(where):
            for entry in (x for x in entries if _works(x, ranks)):
                names = with_options(entry, n)
                if n > min(placed + 1, FEW):
                    names = [names[rng.integers(len(names))]]
                for k, name in enumerate(names):
                    sizes = {**found[(t + k) % len(found)], "nodes": nodes}
                    yield Case(collective, name, sizes)


def _where(
    collective: str, every: list[list[Sizes]], placed: int, rng: np.random.Generator
) -> Iterator[tuple[list[Sizes], Iterable[Nodes]]]:
    """Sizes, and the placements to try them on; of larger groups, some at random."""
    ranks = [COLLECTIVES[collective].ranks(found[0]) for found in every]
    small = [max(n) <= placed or sum(n) <= placed + 1 for n in ranks]
    larger = rng.permutation(np.flatnonzero(np.logical_not(small)))[:LARGER].tolist()
    for i, (found, n) in enumerate(zip(every, ranks, strict=True)):
        if small[i]:
            yield found, placements(n, placed + 1, rng)
        elif i in larger:
            yield found, [anywhere(n, rng)]


def placements_in(found: Iterable[Case]) -> int:
    """How many placements of how many ranks there are in some cases."""
    return len(
        {
            (COLLECTIVES[case.collective].ranks(case.sizes), tuple(case.sizes["nodes"]))
            for case in found
            if "nodes" in case.sizes
        }
    )


def _flat(collective: str, most: int, seed: int) -> Iterator[Case]:
    """Algorithms that do not share memory."""
    entries = [entry for entry in algorithms(collective) if not entry.node_memory]
    stages = [stage.name for stage in algorithms("allgatherv") if not stage.node_memory]
    rng = np.random.default_rng(seed)
    for found in COLLECTIVES[collective].sweep(most, rng):
        ranks = COLLECTIVES[collective].ranks(found[0])
        for entry in entries:
            for sizes in _placed(collective, entry, found):
                if _works(entry, ranks):
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


def sweep(found: Iterable[Case], jobs: int = 0) -> Iterator[Tally]:
    """Verify all cases in so many processes, or a few; the tally of each chunk as it is
    done."""
    chunks = list(_chunks(found))
    processes = min(jobs or min(PROCESSES, os.cpu_count() or 1), len(chunks))
    if processes < 2:
        yield from map(examine, chunks)
        return
    with pool(processes) as workers:
        yield from workers.imap(examine, chunks)
