"""The times of every algorithm of a collective on a machine, best first, with a
reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ..algorithms.parts.stages import stage_for
from ..choose.choice import LIBRARY_NAME, choice
from ..cost.limit import Limit, limit as limit_of_contract
from ..cost.machine import Machine
from ..schedules.ir import Pieces
from ..schedules.registry import algorithms, find, resolve, unclaimed, with_startup
from ..schedules.schedule import Schedule
from .case import Case

#: the algorithm of MPI libraries between two groups
LIBRARY_ALGORITHM = "root_gathering_sequential"
#: sends and receives of all algorithms together that are simulated for an answer
DEFAULT_MAX_ENDS = 20_000_000
#: times that differ by a smaller part are called equal
EQUAL_TIME_PART = 0.01
#: of the algorithms with equal times
MAX_NAMED_ALGORITHMS = 4


@dataclass(frozen=True)
class Row:
    """The time of an algorithm, simulated or by its closed form."""

    name: str
    time: float
    rounds: int | None = None
    messages: int | None = None

    @property
    def formula(self) -> bool:
        """Whether the time is from the closed form."""
        return self.rounds is None


@dataclass(frozen=True)
class Answer:
    """The algorithms, best first; the limit; the time of the library's algorithm."""

    case: Case
    rows: tuple[Row, ...]
    limit: float
    #: the bytes that must pass a process or node within the limit, and which of the two
    limit_bytes: int
    limit_of: str
    library: float | None
    #: the algorithm that isthmus chooses; None where there is no choice
    chosen: str | None
    why: str


def _names(case: Case) -> Iterator[str]:
    """All algorithms, with all stages whose time can be known; algorithms that share
    memory only in cases with nodes."""
    stages = [
        entry.name
        for entry in algorithms("allgatherv")
        if entry.name != LIBRARY_NAME and not entry.node_memory
    ]
    for entry in algorithms(case.collective):
        if entry.node_memory and not case.per_node:
            continue
        if entry.staged:
            yield from (f"{entry.name}+{stage}" for stage in stages)
        elif entry.name != LIBRARY_NAME:
            yield entry.name


def _ends_of_rank(schedule: Schedule, rank: int, max_ends: int) -> int:
    """The sends and receives of a rank; a message of many pieces counts by its pieces.

    Counting stops soon after `max_ends`, so that weighing a large case is quick.
    """
    ends = 0
    for round_ in schedule.program(rank):
        payloads = (getattr(c, "data", None) for c in round_.comm)
        ends += sum(len(x) if isinstance(x, Pieces) else 1 for x in payloads)
        if ends > max_ends:
            break
    return ends


def weight(case: Case, name: str, max_ends: int) -> int:
    """The work to simulate an algorithm; the first rank of a group stands for all ranks
    of the group."""
    schedule, first_ranks = case.schedule(name), (0, case.groups[0])
    ranks = zip(first_ranks, case.groups, strict=False)
    return sum(
        n * _ends_of_rank(schedule, first_rank, max_ends // n)
        for first_rank, n in ranks
    )


def candidates(
    case: Case, model: Machine, max_ends: int = DEFAULT_MAX_ENDS
) -> dict[str, int]:
    """The algorithms that work for the groups, lightest first, and their weights."""
    weights, chosen = {}, default(case, model)
    own = [chosen] if chosen not in (None, LIBRARY_NAME) else []
    for name in (*_names(case), *own):
        # A stage may be for certain sizes of groups only.
        with suppress(ValueError):
            weights[name] = weight(case, name, max_ends)
    return dict(sorted(weights.items(), key=lambda item: item[1]))


def default(case: Case, model: Machine) -> str | None:
    """The algorithm that isthmus chooses; None on nodes of several processes, where a
    communicator tries candidates.

    The MPI library's own call is a candidate on a measured machine only.
    """
    if case.per_node > 1:
        return None
    return choice(case.record, case.sizes, model.reached(sum(case.groups))).name


def _equal_algorithms(rows: Sequence[Row]) -> str:
    """A sentence with the algorithms as fast as the best, or nothing."""
    names = [r.name for r in rows[1:] if r.time <= (1 + EQUAL_TIME_PART) * rows[0].time]
    if not names:
        return ""
    named_words = ", ".join(names[:MAX_NAMED_ALGORITHMS])
    if len(names) > MAX_NAMED_ALGORITHMS:
        named_words += f" and {len(names) - MAX_NAMED_ALGORITHMS} more"
    return f" Within {EQUAL_TIME_PART:.0%} of it: {named_words}."


def why(case: Case, model: Machine, rows: Sequence[Row], limit_seconds: float) -> str:
    """The reason why the best algorithm beats the library's, or the worst."""
    best = rows[0]
    reference = next((r for r in rows if r.name == LIBRARY_ALGORITHM), rows[-1])
    if not best.time:
        return "Nothing moves, and that takes no time."
    if best.name == reference.name:
        return f"{best.name} is already the best." + _equal_algorithms(rows)
    setup, reference_setup = (startups(case, model, r) for r in (best, reference))
    transfer, reference_transfer = best.time - setup, reference.time - reference_setup
    cause = (
        "start-ups"
        if reference_setup - setup > reference_transfer - transfer
        else "transfer"
    )
    limit_words = (
        f", {transfer / limit_seconds:.2f} times the limit" if limit_seconds else ""
    )
    return (
        f"{best.name} wins by its {cause}: {setup / best.time:.1%} of its time is "
        f"start-ups, the rest transfer{limit_words}; "
        f"{reference.name} takes {_ratio_words(reference_setup, setup)} the start-ups "
        f"and {_ratio_words(reference_transfer, transfer)} the transfer."
        + _equal_algorithms(rows)
    )


def _ratio_words(larger: float, smaller: float) -> str:
    """The words for a ratio of times, also where the smaller is zero."""
    return f"{larger / smaller:.3g} times" if smaller else "more than"


def rows(
    case: Case,
    model: Machine,
    max_ends: int = DEFAULT_MAX_ENDS,
    weights: Mapping[str, int] | None = None,
) -> Iterator[Row]:
    """The rows of all algorithms: simulated, lightest first, up to `max_ends`; for the
    rest by formulas, where there is one.

    Callers that know the candidates pass them as `weights`, since weighing is a fifth
    of all the work.
    """
    if weights is None:
        weights = candidates(case, model, max_ends)
    for name, work in weights.items():
        max_ends -= work
        if max_ends >= 0:
            yield simulated(case, model, name)
        elif case.distribution == "regular" and has_formula(case, name):
            yield formula(case, model, name)


def answer(case: Case, model: Machine, unsorted_rows: Iterable[Row]) -> Answer:
    """The algorithms in order, beside the limit and the library's algorithm."""
    # Of equal times, the algorithm with fewer messages comes first.
    sorted_rows = sorted(unsorted_rows, key=lambda r: (r.time, r.messages or 0))
    library = next((r.time for r in sorted_rows if r.name == LIBRARY_ALGORITHM), None)
    case_limit = limit(case, model)
    words = why(case, model, sorted_rows, case_limit.seconds)
    level_name = (
        "process"
        if case_limit.level < 0
        else "node"
        if not case_limit.level
        else "group of nodes"
    )
    bound = case_limit.seconds, case_limit.size, level_name
    return Answer(
        case, tuple(sorted_rows), *bound, library, default(case, model), words
    )


def predict(case: Case, model: Machine, max_ends: int = DEFAULT_MAX_ENDS) -> Answer:
    """The times of every algorithm on a machine, best first, and why the best wins."""
    return answer(case, model, rows(case, model, max_ends))


# -- the time of an algorithm, and the limit


def limit(case: Case, model: Machine) -> Limit:
    """The limit of a case."""
    return limit_of_contract(case.contract, sum(case.groups), model)


def _stage_cost(name: str) -> Callable[..., float]:
    """The closed form of the stage in an algorithm's name, or of the default stage."""
    tail = name.partition("+")[2]

    def cost(n: int, k: float, alpha: float, beta: float) -> float:
        stage = find("allgatherv", tail or stage_for(n, int(n * k)))
        return stage.cost(n, k, alpha, beta)

    return cost


def has_formula(case: Case, name: str) -> bool:
    """Whether the time of an algorithm is known without a simulation."""
    return resolve(case.collective, name)[0].cost is not unclaimed


def formula(case: Case, model: Machine, name: str) -> Row:
    """The row by the closed form, as if all messages went to the farthest ranks."""
    entry, _ = resolve(case.collective, name)
    far = model.reached(sum(case.groups))
    machine = far.alpha, far.beta
    if case.collective.startswith("inter_allgather"):
        return Row(name, entry.cost(*case.claimed, *machine, _stage_cost(name)))
    return Row(name, entry.cost(*case.claimed, *machine))


def simulated(case: Case, model: Machine, name: str) -> Row:
    """The row by simulation of all ranks."""
    startup_bytes = model.reached(sum(case.groups)).startup_bytes
    algorithm = with_startup(case.collective, name, startup_bytes)
    timeline = case.schedule(algorithm).simulate(model)
    return Row(name, timeline.time, timeline.rounds, int(timeline.messages.sum()))


def startups(case: Case, model: Machine, row: Row) -> float:
    """The part of a time that does not grow with the bytes.

    Twice the time less the time of twice the bytes leaves the start-ups, if a time is
    start-ups and a multiple of the bytes.
    """
    row_of = formula if row.formula else simulated
    return min(
        max(2 * row.time - row_of(case.doubled(), model, row.name).time, 0), row.time
    )
