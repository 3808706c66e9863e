"""What `isthmus tune` measures once messages are known, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..algorithms.parts.stages import stage_for
from ..choose import choose, estimate, fit
from ..choose.estimate import MessageCosts
from ..choose.tuning import Tuning
from ..predict.tuned import Tuned
from . import job as jobs
from .job import NATIVE, Case, Contender, Job
from .outcome import Outcome

#: bytes of each rank's block: from the first on by this factor, as long as a ring is
#: not expected to take longer than this
FIRST, FACTOR, LAST, SECONDS = 64, 4, 1 << 20, 0.4
#: one rank has half of all: where there is most to gain over the library
UNEQUAL = "spike"


@dataclass(frozen=True)
class Row:
    """One way to do a case: seconds as measured and as predicted, if they are."""

    kind: str
    size: int
    algorithm: str
    measured: float
    predicted: float | None


@dataclass(frozen=True)
class Taken:
    """What "auto" takes in a case, and what it loses."""

    kind: str
    size: int
    algorithm: str
    #: how many times as long as the fastest it takes
    loss: float


def sizes(p: int, machine: MessageCosts) -> list[int]:
    """The bytes of a rank's block that are worth a look."""
    found = [FIRST]
    while found[-1] < LAST:
        following = FACTOR * found[-1]
        if estimate.ring(np.full(p, following), machine) > SECONDS:
            break
        found.append(following)
    return found


def _doubling(*groups: int) -> str:
    """The way in few rounds that works for groups of these sizes."""
    return "bruck" if any(n & (n - 1) for n in groups) else "recursive_doubling"


def inside(p: int, machine: MessageCosts, seconds: float) -> Iterator[Job]:
    """Equal blocks, then unequal ones, of one group."""
    for kind in ("regular", UNEQUAL):
        names = list(estimate.ours(np.full(p, FIRST), machine))
        if kind == UNEQUAL:
            names.remove("ring")  # it waits for the largest block in every round
        cases = (
            jobs.case("allgatherv", (p,), n, kind)
            for n in reversed(sizes(p, machine))
            if n * p < choose.MAX_INT
        )
        yield Job((p,), tuple(cases), jobs.contenders(names, False, False), seconds)


def between(p: int, machine: MessageCosts, seconds: float) -> Job:
    """Equal blocks of two groups."""
    groups = (p // 2, p - p // 2)
    names = ["direct", "balanced+ring", f"balanced+{_doubling(*groups)}"]
    cases = (jobs.case("allgather", groups, n) for n in reversed(sizes(p, machine)))
    return Job(groups, tuple(cases), jobs.contenders(names, False, False), seconds)


def todo(p: int, machine: MessageCosts, seconds: float) -> list[Job]:
    """All that is to be measured on p ranks; longest first, so that a slow machine
    shows at once how long it will take."""
    return [*inside(p, machine, seconds), between(p, machine, seconds)]


def kind(case: Case) -> str:
    """What cases of different sizes have in common, in words."""
    if case.b:
        return f"allgather between {len(case.a)} and {len(case.b)}"
    return f"allgatherv inside {len(case.a)}, {case.kind}"


def _times(found: Outcome) -> dict[str, float]:
    """The seconds of each contender, by its name."""
    return {x.contender.name: x.seconds for x in found.results}


def _of(outcomes: Sequence[Outcome], distribution: str) -> list[Outcome]:
    """Those inside one group, sizes going up."""
    some = [x for x in outcomes if not x.case.b and x.case.kind == distribution]
    return sorted(some, key=lambda x: x.case.each)


def _sure(found: Outcome) -> float:
    """How many times faster than native one of ours is, beyond doubt and the margin
    that "auto" wants too."""
    ours = (x.contender for x in found.results if x.contender != NATIVE)
    return choose.MARGIN * max(found.ratio_interval(c)[0] for c in ours)


def refined(machine: MessageCosts, p: int, outcomes: Sequence[Outcome]) -> MessageCosts:
    """The same with the sizes at which the fastest way changes, and the library's
    factor."""
    equal, unequal = _of(outcomes, "regular"), _of(outcomes, UNEQUAL)
    sizes = [x.case.each for x in equal]
    rounds, neighbours = (
        [x.seconds(Contender(name)) for x in equal] for name in (_doubling(p), "ring")
    )
    ring = fit.crossover(sizes, rounds, neighbours)
    # where ours is not surely faster, the library's call it is
    gains = [_sure(x) for x in unequal]
    small = p * fit.crossover(sizes, gains, [1.0] * len(gains))
    calls = {x.case.each: x.seconds(NATIVE) for x in equal}
    factor = fit.library_factor(p, calls, machine)
    return replace(machine, library=factor, small=small, ring=ring)


def conclude(tuning: Tuning, outcomes: Sequence[Outcome]) -> Tuning:
    """The tuning that the outcomes of all processes lead to."""
    better = refined(tuning.widest, tuning.origin.processes, outcomes)
    if tuning.between is not None:
        return replace(tuning, between=better)
    return replace(tuning, inside=better)


def predicted(case: Case, name: str, tuned: Tuned) -> float | None:
    """What the simulation says; the MPI library's own call and what depends on where
    ranks lie are not simulated."""
    if name == NATIVE.name or name == "node_ring":
        return None
    return jobs.planned(case, name, tuned).simulate(tuned).time


def rows(tuning: Tuning, outcomes: Sequence[Outcome]) -> list[Row]:
    """Measured and predicted times, sizes going up."""
    tuned = Tuned(tuning)
    found = [
        Row(kind(x.case), x.case.each, name, seconds, predicted(x.case, name, tuned))
        for x in outcomes
        for name, seconds in _times(x).items()
    ]
    order = list(dict.fromkeys(row.kind for row in found))
    return sorted(found, key=lambda row: (order.index(row.kind), row.size))


def _auto(case: Case, machine: MessageCosts) -> str:
    """What "auto" takes, under the name it was measured by."""
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


def taken(tuning: Tuning, outcomes: Sequence[Outcome]) -> list[Taken]:
    """What "auto" will take by this tuning, and what it loses."""
    found = []
    for x in sorted(outcomes, key=lambda x: x.case.each):
        times, auto = _times(x), _auto(x.case, Tuned(tuning).machine)
        if auto in times:
            loss = times[auto] / min(times.values())
            found.append(Taken(kind(x.case), x.case.each, auto, loss))
    order = list(dict.fromkeys(kind(x.case) for x in outcomes))
    return sorted(found, key=lambda one: order.index(one.kind))
