"""The sizes at which an algorithm overtakes another, as `isthmus tune` measures sizes.

The cost of messages predicts most times well, but not where the MPI library's own call
is faster, and not to the byte where two algorithms cross. So `isthmus tune` measures
cases after the messages, and corrects the description of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..algorithms.parts.stages import stage_for
from ..choose import choose, estimate, fit
from ..choose.estimate import MessageCosts
from ..choose.tuning import Tuning
from ..predict.tuned import Tuned, tuned
from . import job as jobs
from .job import NATIVE, BenchCase, BenchJob, Contender
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


def sizes(p: int, machine: MessageCosts) -> list[int]:
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


def inside(p: int, machine: MessageCosts, seconds: float) -> Iterator[BenchJob]:
    """The jobs inside a group of p: equal blocks, then unequal ones."""
    for kind in ("regular", UNEQUAL_DISTRIBUTION):
        names = list(estimate.ours(np.full(p, MIN_BLOCK_BYTES), machine))
        if kind == UNEQUAL_DISTRIBUTION:
            names.remove("ring")  # it waits for the largest block in every round
        cases = (
            jobs.case("allgatherv", (p,), n, kind)
            for n in reversed(sizes(p, machine))
            if n * p < choose.MAX_INT
        )
        yield BenchJob(
            (p,), tuple(cases), jobs.contenders(names, False, False), seconds
        )


def between(p: int, machine: MessageCosts, seconds: float) -> BenchJob:
    """The job between two halves of p ranks: equal blocks."""
    groups = (p // 2, p - p // 2)
    names = ["direct", "balanced+ring", f"balanced+{_doubling(*groups)}"]
    cases = (jobs.case("allgather", groups, n) for n in reversed(sizes(p, machine)))
    return BenchJob(groups, tuple(cases), jobs.contenders(names, False, False), seconds)


def tuning_jobs(p: int, machine: MessageCosts, seconds: float) -> list[BenchJob]:
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


def _inside(outcomes: Sequence[Outcome], distribution: str) -> list[Outcome]:
    """The outcomes inside one group with a distribution, by increasing size."""
    chosen = [x for x in outcomes if not x.case.b and x.case.kind == distribution]
    return sorted(chosen, key=lambda outcome: outcome.case.each)


def _certain_gain(outcome: Outcome) -> float:
    """How many times faster than native the best algorithm of isthmus is, for certain.

    The low end of the interval counts, less the margin that "auto" asks for too.
    """
    ours = (x.contender for x in outcome.results if x.contender != NATIVE)
    return choose.MARGIN * max(outcome.ratio_interval(c).low for c in ours)


def refined(machine: MessageCosts, p: int, outcomes: Sequence[Outcome]) -> MessageCosts:
    """A machine with the measured crossover sizes, and with the time of the MPI
    library's own call as a multiple of the time of its messages."""
    equal = _inside(outcomes, "regular")
    unequal = _inside(outcomes, UNEQUAL_DISTRIBUTION)
    block_sizes = [x.case.each for x in equal]
    doubling_times, ring_times = (
        [x.seconds(Contender(name)) for x in equal] for name in (_doubling(p), "ring")
    )
    ring = fit.crossover(block_sizes, doubling_times, ring_times)
    # below the size from which isthmus is faster for certain, "auto" takes native
    gains = [_certain_gain(x) for x in unequal]
    small = p * fit.crossover(block_sizes, gains, [1.0] * len(gains))
    native_times = {x.case.each: x.seconds(NATIVE) for x in equal}
    factor = fit.library_factor(p, native_times, machine)
    return replace(machine, library=factor, small=small, ring=ring)


def conclude(tuning: Tuning, outcomes: Sequence[Outcome]) -> Tuning:
    """The tuning, corrected by outcomes on all its processes."""
    machine = refined(tuning.widest, tuning.origin.processes, outcomes)
    if tuning.between is not None:
        return replace(tuning, between=machine)
    return replace(tuning, inside=machine)


def predicted(case: BenchCase, name: str, machine: Tuned) -> float | None:
    """The simulated seconds of an algorithm.

    None for the MPI library's own call, because the call has no schedule, and for the
    node ring, because its time depends on the placement of the ranks.
    """
    if name == NATIVE.name or name == "node_ring":
        return None
    return jobs.planned(case, name, machine).simulate(machine).time


def rows(tuning: Tuning, outcomes: Sequence[Outcome]) -> list[MeasuredTime]:
    """Measured and predicted times, by kind of case and increasing size."""
    machine = tuned(tuning)
    times = [
        MeasuredTime(
            kind(x.case), x.case.each, name, seconds, predicted(x.case, name, machine)
        )
        for x in outcomes
        for name, seconds in _times(x).items()
    ]
    kinds = list(dict.fromkeys(time.kind for time in times))
    return sorted(times, key=lambda time: (kinds.index(time.kind), time.size))


def _auto(case: BenchCase, machine: MessageCosts) -> str:
    """The contender that "auto" would take in a case."""
    if not case.b:
        name = choose.allgatherv(
            np.array(case.a), lambda: machine, True, machine.small
        ).name
        return NATIVE.name if name == "library" else name
    p, q = len(case.a), len(case.b)
    a, b = case.a[0], case.b[0]
    name = choose.inter_allgatherv(p, q, p * a, q * b, max(a, b), False, machine)
    if name == "direct":
        return name
    stage = stage_for(p, sum(case.b), machine.ring)
    return f"balanced+{'ring' if stage == 'ring' else _doubling(p, q)}"


def auto_choices(tuning: Tuning, outcomes: Sequence[Outcome]) -> list[AutoChoice]:
    """The choices of "auto" by a tuning, and their losses."""
    choices = []
    for outcome in sorted(outcomes, key=lambda outcome: outcome.case.each):
        case, times = outcome.case, _times(outcome)
        auto = _auto(case, tuning.widest)
        if auto in times:
            loss = times[auto] / min(times.values())
            choices.append(AutoChoice(kind(case), case.each, auto, loss))
    kinds = list(dict.fromkeys(kind(outcome.case) for outcome in outcomes))
    return sorted(choices, key=lambda choice: kinds.index(choice.kind))
