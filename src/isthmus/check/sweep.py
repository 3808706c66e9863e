"""Every registered algorithm, verified on many sizes without MPI."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from ..collectives.collective import Collective, Sizes
from ..collectives.records import COLLECTIVES, schedule
from ..schedules.registry import Algorithm, algorithms, collectives
from ..verify.errors import ScheduleError
from ..verify.verify import verify
from ..workers import pool
from .placements import Nodes, placements, random_placement

CASES_PER_CHUNK = 64
#: processes of a sweep by default, on a machine with as many processors
DEFAULT_MAX_PROCESSES = 8
#: options that cut blocks or rounds: the sizes of a sweep are too small for a cut
#: by default
CUTTING_OPTIONS = {
    "size": 3,
    "n": 3,
    "window": 2,
    "parts": 3,
    "radix": 3,
    "aggregation": 2,
}
#: options of algorithms that share memory, for several chunks, several lanes, and lanes
#: long enough for rings; a size is multiplied by the number of ranks
NODE_MEMORY_OPTIONS: tuple[dict[str, float], ...] = (
    {},
    {"size": 2},
    {"lanes": 2},
    {"size": 3, "lanes": 3},
    {"startup": 1.0},
    {"startup": 0.1},
    {"size": 3, "startup": 0.1},
    {"lanes": 2, "n": 3},
)
#: ranks of all groups up to which every placement is tried with all these options
MAX_RANKS_WITH_ALL_OPTIONS = 6
#: of groups that are too large for all placements
RANDOM_PLACEMENTS = 8


@dataclass(frozen=True)
class SweepCase:
    """An algorithm, with its stage after a "+", and the sizes to verify."""

    collective: str
    algorithm: str
    sizes: Sizes


@dataclass(frozen=True)
class Tally:
    """The results of cases, by collective and algorithm."""

    cases: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: cases of sizes that a stage refuses
    declined: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: dict[tuple[str, str], str] = field(default_factory=dict)

    def __add__(self, other: Tally) -> Tally:
        """The results of both; of two failures of an algorithm, the earlier."""
        return Tally(
            self.cases + other.cases,
            self.declined + other.declined,
            other.failures | self.failures,
        )


def _works_for(entry: Algorithm, ranks: tuple[int, ...]) -> bool:
    """Whether an algorithm without a stage is for groups of these sizes."""
    return len(ranks) > 1 or entry.needs(*ranks)


def _with_placements(
    collective: str, entry: Algorithm, sizes_list: list[Sizes]
) -> Iterator[Sizes]:
    """The sizes; again with two placements where an algorithm looks at nodes."""
    for sizes in sizes_list:
        yield sizes
        if "nodes" in entry.options:
            ranks = range(sum(COLLECTIVES[collective].ranks(sizes)))
            yield {**sizes, "nodes": [r // 3 for r in ranks]}
            yield {**sizes, "nodes": [r % 3 for r in ranks]}


def _names(entry: Algorithm) -> list[str]:
    """The algorithm, and again with every option that cuts blocks."""
    cuts = (
        f"({name}={n})" for name, n in CUTTING_OPTIONS.items() if name in entry.options
    )
    return [entry.name + options for options in ("", *cuts)]


def with_options(entry: Algorithm, n: int) -> list[str]:
    """An algorithm that shares memory, with all its options, for n ranks."""
    names = []
    for options in (x for x in NODE_MEMORY_OPTIONS if x.keys() <= entry.options.keys()):
        values = {k: x * n if k == "size" else x for k, x in options.items()}
        text = ",".join(f"{k}={x}" for k, x in values.items())
        names.append(f"{entry.name}({text})" if text else entry.name)
    return names


def cases(max_ranks: int, seed: int, max_placed_ranks: int = 2) -> Iterator[SweepCase]:
    """All algorithms of all collectives, on groups of up to `max_ranks` ranks.

    Those that share memory are on all placements of groups of up to `max_placed_ranks`
    ranks, and on a few of larger groups, because the number of placements grows faster
    than exponentially.
    """
    for collective in collectives():
        if collective not in COLLECTIVES:
            raise ValueError(f"no sizes are known to verify {collective!r} on")
        yield from _flat(collective, max_ranks, seed)
        yield from on_nodes(collective, max_ranks, seed, max_placed_ranks)


def on_nodes(
    collective: str, max_ranks: int, seed: int, max_placed_ranks: int
) -> Iterator[SweepCase]:
    """The cases of algorithms that share memory.

    Few ranks are tried with all options, more ranks with a random one; sizes take
    turns.
    """
    rng, record = np.random.default_rng(seed), COLLECTIVES[collective]
    entries = [entry for entry in algorithms(collective) if entry.node_memory]
    largest = max(max_ranks, max_placed_ranks)
    all_sizes = list(record.sweep(largest, rng)) if entries else []
    placed_sizes = _placements_of_sizes(record, all_sizes, max_placed_ranks, rng)
    for sizes_list, node_placements in placed_sizes:
        ranks = record.ranks(sizes_list[0])
        n = sum(ranks)
        for t, nodes in enumerate(node_placements):
            for entry in (x for x in entries if _works_for(x, ranks)):
                names = with_options(entry, n)
                if n > min(max_placed_ranks + 1, MAX_RANKS_WITH_ALL_OPTIONS):
                    names = [names[rng.integers(len(names))]]
                for k, name in enumerate(names):
                    sizes = {**sizes_list[(t + k) % len(sizes_list)], "nodes": nodes}
                    yield SweepCase(collective, name, sizes)


def _placements_of_sizes(
    record: Collective,
    all_sizes: list[list[Sizes]],
    max_ranks: int,
    rng: np.random.Generator,
) -> Iterator[tuple[list[Sizes], Iterable[Nodes]]]:
    """Sizes and their placements; of larger groups, random ones."""
    ranks = [record.ranks(sizes_list[0]) for sizes_list in all_sizes]
    is_small = [max(n) <= max_ranks or sum(n) <= max_ranks + 1 for n in ranks]
    large = rng.permutation(np.flatnonzero(np.logical_not(is_small)))
    sampled = large[:RANDOM_PLACEMENTS].tolist()
    for i, (sizes_list, groups) in enumerate(zip(all_sizes, ranks, strict=True)):
        if is_small[i]:
            yield sizes_list, placements(groups, max_ranks + 1, rng)
        elif i in sampled:
            yield sizes_list, [random_placement(groups, rng)]


def placements_in(cases: Iterable[SweepCase]) -> int:
    """The number of placements in cases; equal ones of different groups count apart."""
    return len(
        {
            (COLLECTIVES[case.collective].ranks(case.sizes), tuple(case.sizes["nodes"]))
            for case in cases
            if "nodes" in case.sizes
        }
    )


def _flat(collective: str, max_ranks: int, seed: int) -> Iterator[SweepCase]:
    """The cases of algorithms that do not share memory."""
    entries = [entry for entry in algorithms(collective) if not entry.node_memory]
    stages = [stage.name for stage in algorithms("allgatherv") if not stage.node_memory]
    rng = np.random.default_rng(seed)
    for sizes_list in COLLECTIVES[collective].sweep(max_ranks, rng):
        ranks = COLLECTIVES[collective].ranks(sizes_list[0])
        for entry in entries:
            for sizes in _with_placements(collective, entry, sizes_list):
                if _works_for(entry, ranks):
                    for name in _names(entry):
                        yield SweepCase(collective, name, sizes)
            for stage in stages if entry.staged else ():
                yield SweepCase(collective, f"{entry.name}+{stage}", sizes_list[0])


def _failure(case: SweepCase) -> str | None:
    """The failure of a case, or None; `ValueError` where a stage declines the sizes."""
    algorithm_schedule = schedule(case.collective, case.algorithm, **case.sizes)
    programs = algorithm_schedule.all_ranks()
    try:
        verify(programs, algorithm_schedule.contract, algorithm_schedule.nodes)
    except ScheduleError as error:
        return f"{type(error).__name__}: {error}"
    return None


def examine(chunk: list[SweepCase]) -> Tally:
    """The results of a chunk of cases, verified."""
    tally = Tally()
    for case in chunk:
        key = case.collective, case.algorithm
        try:
            failure = _failure(case)
        except ValueError:
            if "+" not in case.algorithm:
                raise
            tally.declined[key] += 1
            continue
        tally.cases[key] += 1
        if failure is not None:
            sizes = ", ".join(f"{name}={value}" for name, value in case.sizes.items())
            tally.failures.setdefault(key, f"{sizes}: {failure}")
    return tally


def _chunks(cases: Iterable[SweepCase]) -> Iterator[list[SweepCase]]:
    iterator = iter(cases)
    while chunk := list(islice(iterator, CASES_PER_CHUNK)):
        yield chunk


def sweep(cases: Iterable[SweepCase], jobs: int = 0) -> Iterator[Tally]:
    """The results of each chunk of cases, verified in several processes."""
    chunks = list(_chunks(cases))
    processes = min(
        jobs or min(DEFAULT_MAX_PROCESSES, os.cpu_count() or 1), len(chunks)
    )
    if processes < 2:
        yield from map(examine, chunks)
        return
    with pool(processes) as workers:
        yield from workers.imap(examine, chunks)
