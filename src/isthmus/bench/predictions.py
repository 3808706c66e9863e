"""Measured times of algorithms beside those that a tuning predicts.

`isthmus tune` measures messages and takes all else from a model, so it shows how well
the model predicts: in allgathers inside one group, of equal blocks and with one that
has half of all bytes, and between two groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..algorithms.parts.stages import stage_for
from ..choose import estimate
from ..choose.choice import LIBRARY_NAME, MAX_INT, choice
from ..choose.tuning import Tuning
from ..collectives.records import COLLECTIVES
from ..cost.machine import Machine
from . import job as jobs
from .job import NATIVE, BenchCase, BenchJob
from .outcome import Outcome

#: bytes of each rank's block, each size BLOCK_FACTOR times the one before, up to a size
#: for which a ring is expected to take longer than MAX_RING_SECONDS
MIN_BLOCK_BYTES, BLOCK_FACTOR, MAX_BLOCK_BYTES, MAX_RING_SECONDS = 64, 4, 1 << 20, 0.4
#: one rank has half of all bytes: where there is most to gain over the library
UNEQUAL_DISTRIBUTION = "spike"


@dataclass(frozen=True)
class MeasuredTime:
    """The measured seconds of an algorithm in a case, beside the predicted seconds.

    `predicted` is None where the model has no prediction.
    """

    kind: str
    size: int
    algorithm: str
    measured: float
    predicted: float | None


@dataclass(frozen=True)
class AutoChoice:
    """The choice of "auto" in a case, and the loss by that choice."""

    kind: str
    size: int
    algorithm: str
    #: the time of the algorithm divided by the time of the fastest one
    loss: float


def sizes(p: int, machine: Machine) -> list[int]:
    """The bytes of a rank's block to be measured in a group of p."""
    block_sizes = [MIN_BLOCK_BYTES]
    while block_sizes[-1] < MAX_BLOCK_BYTES:
        larger = BLOCK_FACTOR * block_sizes[-1]
        if estimate.ring(np.full(p, larger), machine) > MAX_RING_SECONDS:
            break
        block_sizes.append(larger)
    return block_sizes


def _doubling(*groups: int) -> str:
    """The algorithm of logarithmically many rounds for groups of these sizes."""
    return "bruck" if any(n & (n - 1) for n in groups) else "recursive_doubling"


def inside(p: int, machine: Machine, seconds: float) -> Iterator[BenchJob]:
    """The jobs inside a group of p: equal blocks, then unequal ones."""
    for kind in ("regular", UNEQUAL_DISTRIBUTION):
        names = list(estimate.ours(np.full(p, MIN_BLOCK_BYTES), machine))
        if kind == UNEQUAL_DISTRIBUTION:
            names.remove("ring")  # it waits for the largest block in every round
        cases = (
            jobs.case("allgatherv", (p,), n, kind)
            for n in reversed(sizes(p, machine))
            if n * p < MAX_INT
        )
        yield BenchJob(
            (p,), tuple(cases), jobs.contenders(names, False, False), seconds
        )


def between(p: int, machine: Machine, seconds: float) -> BenchJob:
    """The job between two halves of p ranks: equal blocks."""
    groups = (p // 2, p - p // 2)
    names = ["direct", "balanced+ring", f"balanced+{_doubling(*groups)}"]
    cases = (jobs.case("allgather", groups, n) for n in reversed(sizes(p, machine)))
    return BenchJob(groups, tuple(cases), jobs.contenders(names, False, False), seconds)


def tuning_jobs(p: int, machine: Machine, seconds: float) -> list[BenchJob]:
    """All jobs on p ranks, each case `seconds` long.

    The largest blocks come first, so that a slow machine shows at once how long the
    tuning will take.
    """
    return [*inside(p, machine, seconds), between(p, machine, seconds)]


def kind(case: BenchCase) -> str:
    """The collective, the groups and the distribution of a case, in words."""
    if case.b:
        return f"allgather between {len(case.a)} and {len(case.b)}"
    return f"allgatherv inside {len(case.a)}, {case.kind}"


def _times(outcome: Outcome) -> dict[str, float]:
    """The seconds of each contender, by its name."""
    return {result.contender.name: result.seconds for result in outcome.results}


def predicted(case: BenchCase, name: str, machine: Machine) -> float | None:
    """The simulated seconds of an algorithm.

    None for the MPI library's own call, because the call has no schedule, and for the
    node ring, because its time depends on the placement of the ranks.
    """
    if name == NATIVE.name or name == "node_ring":
        return None
    return jobs.planned(case, name, machine).simulate(machine).time


def rows(tuning: Tuning, outcomes: Sequence[Outcome]) -> list[MeasuredTime]:
    """Measured and predicted times, by kind of case and increasing size."""
    times = [
        MeasuredTime(
            kind(x.case),
            x.case.each,
            name,
            seconds,
            predicted(x.case, name, tuning.machine),
        )
        for x in outcomes
        for name, seconds in _times(x).items()
    ]
    kinds = list(dict.fromkeys(time.kind for time in times))
    return sorted(times, key=lambda time: (kinds.index(time.kind), time.size))


def _auto(case: BenchCase, machine: Machine) -> str:
    """The contender that "auto" would take in a case."""
    if not case.b:
        name = choice(COLLECTIVES["allgatherv"], {"counts": case.a}, machine).name
        return NATIVE.name if name == LIBRARY_NAME else name
    p, q = len(case.a), len(case.b)
    sizes = {"a": case.a, "b": case.b}
    name = choice(COLLECTIVES["inter_allgather"], sizes, machine).name
    if name == "direct":
        return name
    stage = stage_for(p, sum(case.b), estimate.ring_bytes(machine))
    return f"balanced+{'ring' if stage == 'ring' else _doubling(p, q)}"


def auto_choices(tuning: Tuning, outcomes: Sequence[Outcome]) -> list[AutoChoice]:
    """The choices of "auto" by a tuning, and their losses."""
    choices = []
    for outcome in sorted(outcomes, key=lambda outcome: outcome.case.each):
        case, times = outcome.case, _times(outcome)
        auto = _auto(case, tuning.machine)
        if auto in times:
            loss = times[auto] / min(times.values())
            choices.append(AutoChoice(kind(case), case.each, auto, loss))
    kinds = list(dict.fromkeys(kind(outcome.case) for outcome in outcomes))
    return sorted(choices, key=lambda choice: kinds.index(choice.kind))
