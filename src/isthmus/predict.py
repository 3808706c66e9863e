"""What a collective would take on a machine: every algorithm, best first, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from . import choose, distributions
from .collectives import schedule
from .contracts import Contract
from .estimate import Machine
from .ir import Index, Pieces, Program, Recv, Round, Send, Span
from .registry import algorithms, find, resolve
from .schedules import Model, Schedule
from .tuning import Tuned

#: what MPI libraries do between two groups
LIBRARY = "root_gathering_sequential"
#: what may be simulated for one answer: ends of messages, over all algorithms
MOST = 20_000_000
#: the stage that only the MPI library knows
OPAQUE = "library"
#: collectives of one group in which one process has or gets everything
ROOTED = ("bcast", "reduce")
#: collectives of a root and another group, of all it has or gets, or of a block each
WHOLE = ("inter_bcast", "inter_reduce")
BLOCKS = ("inter_gather", "inter_gatherv", "inter_scatter", "inter_scatterv")
#: times closer than this are called equal
CLOSE = 0.01
#: so many of those are named
SHOWN = 4


@dataclass(frozen=True)
class Case:
    """A collective of one or two groups, and the bytes each process of one gives; those
    of the root, if only it has or gets them. The first of two groups is then the root
    alone, and the bytes are all of them, or those of each process of the other."""

    collective: str
    groups: tuple[int, ...]
    each: tuple[int, ...]
    #: of allgatherv inside one group; `each` is then the average
    distribution: str = "regular"

    @property
    def counts(self) -> list[int]:
        """The bytes of every process of the one group."""
        (p,), (k,) = self.groups, self.each
        return distributions.counts(self.distribution, p, p * k)

    @property
    def totals(self) -> tuple[int, ...]:
        """The bytes that each group gives."""
        if self.collective in ROOTED + WHOLE + BLOCKS:
            return self.each
        return tuple(n * k for n, k in zip(self.groups, self.each, strict=True))

    @property
    def most(self) -> int:
        """The bytes that some process must receive."""
        if self.collective in ROOTED:
            return self.each[0] if self.groups[0] > 1 else 0
        if self.collective in WHOLE + BLOCKS:
            return self.each[0] * (self.groups[1] if self.collective in BLOCKS else 1)
        if len(self.groups) == 1:
            return sum(self.counts) - min(self.counts)
        return max(self.totals)

    def doubled(self) -> Case:
        """The same with twice the bytes."""
        return replace(self, each=tuple(2 * k for k in self.each))

    def schedule(self, name: str) -> Schedule:
        """What all ranks do; an element is a byte."""
        return schedule(self.collective, name, **self._sizes())

    def _sizes(self) -> dict[str, Any]:
        if self.collective == "inter_allgather":
            values = (*self.groups, *self.each)
            return dict(zip(("p", "q", "ka", "kb"), values, strict=True))
        if self.collective in ROOTED:
            return {"p": self.groups[0], "m": self.each[0], "root": 0}
        if self.collective in WHOLE:
            return {"q": self.groups[1], "m": self.each[0]}
        if self.collective in BLOCKS and not self.collective.endswith("v"):
            return {"q": self.groups[1], "k": self.each[0]}
        if self.collective in BLOCKS:
            return {"counts": list(self.each) * self.groups[1]}
        if self.collective == "allgatherv":
            return {"counts": self.counts}
        lists = ([k] * n for n, k in zip(self.groups, self.each, strict=True))
        return dict(zip(("a", "b"), lists, strict=True))


@dataclass(frozen=True)
class Row:
    """One algorithm: its time, by its formula where it was not simulated."""

    name: str
    time: float
    rounds: int | None = None
    messages: int | None = None

    @property
    def formula(self) -> bool:
        """Whether the time is the closed form's."""
        return self.rounds is None


@dataclass(frozen=True)
class Answer:
    """The algorithms, best first; the limit; the time of the library's way."""

    case: Case
    rows: tuple[Row, ...]
    limit: float
    library: float | None
    #: what isthmus takes when nobody says, where it has a choice to make
    chosen: str | None
    why: str


def message(model: Model, n: int, ends: tuple[int, int], size: int) -> float:
    """The time of one message between two of n ranks."""
    source, target = ends

    def program(r: Index) -> Program:
        sent, received = Span("send", 0, size), Span("recv", 0, size)
        send = Send(target, (sent,), r == source)
        yield Round((Recv(source, (received,), r == target), send))

    nothing = Contract(lambda r: {}, lambda r: {})
    one = Schedule("message", "", nothing, program, (range(n),))
    return model.simulate(one).time


def _pairs(case: Case) -> set[tuple[int, int]]:
    """Ranks that are near each other and ranks that are far, of different groups."""
    n, p = sum(case.groups), case.groups[0]
    if n == 1:
        return set()
    return {(n - 1, 0), (1, 0) if len(case.groups) == 1 else (p, p - 1)}


def limit(case: Case, model: Model) -> float:
    """The least time in which one process can receive what it must receive.

    All of it as one message, on the faster of a near and a far connection. In the
    alpha-beta model this is alpha + M beta.
    """
    n = sum(case.groups)
    times = (message(model, n, ends, case.most) for ends in _pairs(case))
    return min(times, default=0.0) if case.most else 0.0


def line(case: Case, model: Model) -> tuple[float, float]:
    """The alpha and the beta that describe a message between far ranks best."""
    size, n = max(case.most, 2), sum(case.groups)
    short, long = (message(model, n, (n - 1, 0), k) for k in (1, size))
    beta = (long - short) / (size - 1)
    return short - beta, beta


def _names(case: Case) -> Iterator[str]:
    """All algorithms, with every stage of which the time can be known."""
    stages = [entry.name for entry in algorithms("allgatherv") if entry.name != OPAQUE]
    for entry in algorithms(case.collective):
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
    if case.collective in ("reduce", *WHOLE, *BLOCKS):
        return None
    tuned = model.machine if isinstance(model, Tuned) else None
    if len(case.groups) == 1:
        machine = tuned or Machine(*line(case, model), library=inf)
        small = machine.small
        if case.collective == "bcast":
            p, nbytes = case.groups[0], case.each[0]
            return choose.bcast(p, nbytes, lambda: machine, small).name
        counts = np.array(case.counts)
        return choose.allgatherv(counts, lambda: machine, True, small).name
    (p, q), (a, b), v = case.groups, case.totals, case.collective.endswith("v")
    machine = tuned or choose.BUILT_IN
    return choose.inter_allgatherv(p, q, a, b, max(case.each), v, machine)


def _stage_cost(name: str) -> Callable[..., float]:
    """The closed form of the stage in an algorithm's name, or of the default one."""
    tail = name.partition("+")[2]

    def cost(n: int, k: float, alpha: float, beta: float) -> float:
        stage = find("allgatherv", tail or choose.stage_for(n, int(n * k)))
        return stage.cost(n, k, alpha, beta)

    return cost


def formula(case: Case, model: Model, name: str) -> Row:
    """The time that the algorithm claims in the alpha-beta model nearest to this."""
    entry, _ = resolve(case.collective, name)
    machine = line(case, model)
    if len(case.groups) == 1 or case.collective in WHOLE + BLOCKS:
        return Row(name, entry.cost(sum(case.groups), *case.each, *machine))
    sizes = (*case.groups, *case.each, *machine)
    return Row(name, entry.cost(*sizes, _stage_cost(name)))


def _tuned(case: Case, model: Model, name: str) -> str:
    """The name with the machine's own start-up, if the algorithm asks for it."""
    if "(" in name or "+" in name:
        return name
    if "startup" not in resolve(case.collective, name)[0].options:
        return name
    alpha, beta = line(case, model)
    return f"{name}(startup={alpha / beta})" if beta > 0 else name


def simulated(case: Case, model: Model, name: str) -> Row:
    """The time that the simulation of all ranks takes."""
    found = case.schedule(_tuned(case, model, name)).simulate(model)
    return Row(name, found.time, found.rounds, int(found.messages.sum()))


def startups(case: Case, model: Model, row: Row) -> float:
    """The part of a time that does not grow with the bytes."""
    way = formula if row.formula else simulated
    return min(
        max(2 * row.time - way(case.doubled(), model, row.name).time, 0), row.time
    )


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
    return (
        f"{best.name} wins by its {decides}: {setup / best.time:.1%} of its time is "
        f"start-ups, the rest transfer, {moved / least:.2f} times the limit; "
        f"{other.name} takes {_times(also, setup)} the start-ups and "
        f"{_times(wasted, moved)} the transfer." + _others(rows)
    )


def _times(much: float, little: float) -> str:
    return f"{much / little:.3g} times" if little else "more than"


def rows(case: Case, model: Model, most: int = MOST) -> Iterator[Row]:
    """Every algorithm: simulated, lightest first, until that would be too much work."""
    for name, work in candidates(case, model, most).items():
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
    words = why(case, model, best, least)
    return Answer(case, tuple(best), least, library, default(case, model), words)


def predict(case: Case, model: Model, most: int = MOST) -> Answer:
    """Every algorithm's time on a machine, best first, and why the best wins."""
    return answer(case, model, rows(case, model, most))
