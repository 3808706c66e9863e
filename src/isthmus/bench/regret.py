"""The regret of "auto": how many times longer its calls take than the best candidate's.

A choice by a model or by a few trials may be wrong, and a user who calls "auto" cannot
see that. So all candidates are measured, in turns with calls by "auto" on one
communicator, for every operation and for sizes from a few bytes to some megabytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from ..schedules.names import WHERE
from ..spelling import unknown
from .bootstrap import Interval
from .job import AUTO, NATIVE, BenchCase, BenchJob, case_of_operation
from .operations import mpi_operations
from .outcome import Line

#: the bytes of a block or vector: from 8 B to 4 MiB in equal ratios, as powers of two
REGRET_BYTES = tuple(1 << k for k in (3, 5, 6, 8, 10, 12, 13, 15, 17, 19, 20, 22))
#: seconds of a case, and launches: all cases of one library take two minutes or so
REGRET_SECONDS, REGRET_LAUNCHES = 0.3, 1


@dataclass(frozen=True)
class Regret:
    """The times of "auto" and of the fastest contender in a case.

    The ratio is never below 1, since "auto" is a contender too.
    """

    case: BenchCase
    #: the algorithm that "auto" took
    taken: str
    auto_seconds: float
    best: str
    best_seconds: float
    ratio: float
    interval: Interval


def regret_job(
    groups: tuple[int, ...],
    names: Sequence[str],
    sizes: Sequence[int],
    base_job: BenchJob,
) -> BenchJob:
    """The job of all sizes of each operation; a Barrier has the first size only."""
    known = mpi_operations(len(groups))
    cases = []
    for op in names:
        if op not in known:
            raise ValueError(unknown("operation", op, known, WHERE[len(groups)]))
        for each in sizes[:1] if op == "barrier" else sizes:
            cases.append(case_of_operation(op, groups, each))
    return replace(
        base_job,
        groups=groups,
        cases=tuple(cases),
        contenders=(NATIVE, AUTO),
        all_candidates=True,
    )


def regrets(lines: Sequence[Line]) -> list[Regret]:
    """The regret of each case, from the lines of all its contenders."""
    by_case: dict[BenchCase, dict[str, Line]] = {}
    for line in lines:
        by_case.setdefault(line.case, {})[line.contender] = line
    return [_of_case(contenders) for contenders in by_case.values()]


def _of_case(contenders: dict[str, Line]) -> Regret:
    auto = contenders[AUTO.name]
    best = next(line for line in contenders.values() if line.regret == 1)
    return Regret(
        auto.case,
        auto.taken,
        auto.seconds,
        best.contender,
        best.seconds,
        auto.regret,
        auto.regret_interval,
    )


def mean(ratios: Sequence[Regret]) -> float:
    """The mean over all cases."""
    return fmean(regret.ratio for regret in ratios)


def worst(ratios: Sequence[Regret], most: int) -> list[Regret]:
    """The cases with the largest regret, `most` at most, the worst first."""
    return sorted(ratios, key=lambda regret: -regret.ratio)[:most]
