"""What a collective would take on a machine: every algorithm, best first, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf

from ..choose.choice import choice
from ..choose.choose import BUILT_IN
from ..choose.estimate import MessageCosts
from ..schedules.ir import Pieces
from ..schedules.registry import algorithms
from ..schedules.schedule import Model, Schedule
from .case import Case
from .times import Row, formula, limit, line, simulated, startups
from .tuned import Tuned

#: what MPI libraries do between two groups
LIBRARY = "root_gathering_sequential"
#: what may be simulated for one answer: ends of messages, over all algorithms
MOST = 20_000_000
#: the stage that only the MPI library knows
OPAQUE = "library"
#: times closer than this are called equal
CLOSE = 0.01
#: what passes what must enter or leave it, by the level of the machine
UNITS = {-1: "process", 0: "node", 1: "group of nodes"}
#: so many of those are named
SHOWN = 4


@dataclass(frozen=True)
class Answer:
    """The algorithms, best first; the limit; the time of the library's way."""

    case: Case
    rows: tuple[Row, ...]
    limit: float
    #: the bytes that some process, or node, must pass in that time, and which
    limit_bytes: int
    limit_of: str
    library: float | None
    #: what isthmus takes when nobody says, where it has a choice to make
    chosen: str | None
    why: str


def _names(case: Case) -> Iterator[str]:
    """All algorithms, with every stage of which the time can be known; those that share
    memory only if the case says who is on which node."""
    stages = [
        entry.name
        for entry in algorithms("allgatherv")
        if entry.name != OPAQUE and not entry.node_memory
    ]
    for entry in algorithms(case.collective):
        if entry.node_memory and not case.per_node:
            continue
        if entry.staged:
            yield from (f"{entry.name}+{stage}" for stage in stages)
        elif entry.name != OPAQUE:
            yield entry.name


def _weigh(made: Schedule, rank: int, most: int) -> int:
    """The ends of messages of a rank, or their pieces if they have many, counted not
    far beyond `most`."""
    found = 0
    for r in made.program(rank):
        many = (getattr(c, "data", None) for c in r.comm)
        found += sum(len(x) if isinstance(x, Pieces) else 1 for x in many)
        if found > most:
            break
    return found


def weight(case: Case, name: str, most: int) -> int:
    """The work to simulate it: what the first rank of a group does, for all of it."""
    made, firsts = case.schedule(name), (0, case.groups[0])
    ranks = zip(firsts, case.groups, strict=False)
    return sum(n * _weigh(made, first, most // n) for first, n in ranks)


def candidates(case: Case, model: Model, most: int = MOST) -> dict[str, int]:
    """The algorithms that work for these groups, lightest first, and their weights."""
    found = {}
    chosen = default(case, model)
    for name in (*_names(case), *([chosen] if chosen not in (None, OPAQUE) else [])):
        # a stage may work for groups of some sizes only
        with suppress(ValueError):
            found[name] = weight(case, name, most)
    return dict(sorted(found.items(), key=lambda item: item[1]))


def default(case: Case, model: Model) -> str | None:
    """What isthmus takes when nobody says; inside a group, if the library's own call is
    not faster."""
    if case.per_node > 1:
        return None
    machine = model.machine if isinstance(model, Tuned) else None
    if machine is None and len(case.groups) == 1:
        machine = MessageCosts(*line(case, model), library=inf)
    taken = choice(case.record, case.sizes, machine or BUILT_IN)
    return None if taken is None else taken.name


def _others(rows: Sequence[Row]) -> str:
    """Those that are as good as the best."""
    close = [r.name for r in rows[1:] if r.time <= (1 + CLOSE) * rows[0].time]
    if not close:
        return ""
    shown = ", ".join(close[:SHOWN]) + f" and {len(close) - SHOWN} more" * (
        len(close) > SHOWN
    )
    return f" Within {CLOSE:.0%} of it: {shown}."


def why(case: Case, model: Model, rows: Sequence[Row], least: float) -> str:
    """What the best algorithm does better than the library's way, or than the worst."""
    best = rows[0]
    other = next((r for r in rows if r.name == LIBRARY), rows[-1])
    if not best.time:
        return "Nothing moves, and that takes no time."
    if best.name == other.name:
        return f"{best.name} is already the best." + _others(rows)
    setup, also = (startups(case, model, r) for r in (best, other))
    moved, wasted = best.time - setup, other.time - also
    decides = "start-ups" if also - setup > wasted - moved else "transfer"
    far = f", {moved / least:.2f} times the limit" if least else ""
    return (
        f"{best.name} wins by its {decides}: {setup / best.time:.1%} of its time is "
        f"start-ups, the rest transfer{far}; "
        f"{other.name} takes {_times(also, setup)} the start-ups and "
        f"{_times(wasted, moved)} the transfer." + _others(rows)
    )


def _times(much: float, little: float) -> str:
    return f"{much / little:.3g} times" if little else "more than"


def rows(
    case: Case,
    model: Model,
    most: int = MOST,
    weights: Mapping[str, int] | None = None,
) -> Iterator[Row]:
    """Every algorithm: simulated, lightest first, until that would be too much work.

    `weights`: the candidates, for callers that know them: to weigh them is a fifth of
    all the work.
    """
    if weights is None:
        weights = candidates(case, model, most)
    for name, work in weights.items():
        most -= work
        if most >= 0:
            yield simulated(case, model, name)
        elif case.distribution == "regular":
            yield formula(case, model, name)


def answer(case: Case, model: Model, found: Iterable[Row]) -> Answer:
    """The algorithms in order, against the limit and the library's way."""
    # of equals, the fewer messages
    best = sorted(found, key=lambda r: (r.time, r.messages or 0))
    library = next((r.time for r in best if r.name == LIBRARY), None)
    least = limit(case, model)
    words = why(case, model, best, least.seconds)
    who = (
        "process"
        if least.level < 0
        else "node"
        if not least.level
        else "group of nodes"
    )
    bound = least.seconds, least.size, who
    return Answer(case, tuple(best), *bound, library, default(case, model), words)


def predict(case: Case, model: Model, most: int = MOST) -> Answer:
    """Every algorithm's time on a machine, best first, and why the best wins."""
    return answer(case, model, rows(case, model, most))
