"""The patterns of Silva and Silva 1999 as schedules, and their measurements: which
operations are timed, between two groups and inside one of the same eight processes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..collectives.records import schedule
from ..cost.machine import AlphaBeta
from ..schedules.schedule import Schedule

PAPER_PROCESSES = 8
#: bytes of the vector, or of the blocks of a group together: the axis of figures 4, 5
VECTOR_BYTES = tuple(1 << k for k in (13, 15, 17, 19, 21))
#: the paper's switch, 100 Mbit/s; the start-up time is assumed
PAPER_SWITCH = AlphaBeta(100e-6, 80e-9)
#: microseconds of each process in the paper's table 1, and the mean inside one group
TABLE1_MICROSECONDS = (
    1445076,
    1435866,
    1439482,
    1416597,
    1471134,
    1439796,
    1443290,
    1391354,
)
TABLE1_INSIDE_MICROSECONDS = 1803691


@dataclass(frozen=True)
class Way:
    """An operation inside one group or between two, by the MPI library's own call
    ("native"), by an algorithm, or by the choice of "auto"."""

    operation: str
    groups: tuple[int, ...]
    algorithm: str

    @property
    def label(self) -> str:
        """The name of the way in tables."""
        preposition = "between" if len(self.groups) == 2 else "inside"
        return f"{preposition}, {ALGORITHM_NAMES[self.algorithm]}"


@dataclass(frozen=True)
class ProcessTimes:
    """The time of each process for a way and size, in seconds; `taken` is the
    algorithm."""

    operation: str
    label: str
    nbytes: int
    taken: str
    seconds: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean over all processes, as in the paper's figures."""
        return sum(self.seconds) / len(self.seconds)


ALGORITHM_NAMES = {"native": "the library", "leader": "Silva's", "auto": "isthmus"}
#: the sizes of the groups: a root alone in its group, or two halves
GROUP_SIZES = {"reduce": (1, 7), "reduce_scatter": (4, 4), "allgather": (4, 4)}


def ways(operation: str) -> list[Way]:
    """By the library inside a group; by the library, Silva's and isthmus between
    two."""
    between = GROUP_SIZES[operation]
    inside = Way(operation, (PAPER_PROCESSES,), "native")
    return [inside, *(Way(operation, between, name) for name in ALGORITHM_NAMES)]


def jobs() -> list[tuple[Way, int]]:
    """All ways with their sizes, for figure 4, table 1 and figure 5."""
    sizes = {
        "reduce": VECTOR_BYTES,
        "reduce_scatter": VECTOR_BYTES[-1:],
        "allgather": VECTOR_BYTES,
    }
    return [
        (way, nbytes)
        for operation, byte_counts in sizes.items()
        for way in ways(operation)
        for nbytes in byte_counts
    ]


@dataclass(frozen=True)
class Pattern:
    """A figure of the paper: a schedule, the place of each rank in its group, and the
    passive members of a group."""

    name: str
    title: str
    schedule: Schedule
    #: for each rank its group and its number in the group
    seats: tuple[tuple[int, int], ...]
    passive: tuple[tuple[int, int], ...] = ()


def _rooted(name: str, op: str, root: int, members: int, leaves: int) -> Pattern:
    seats = ((0, root), *((1, i) for i in range(leaves)))
    passive = tuple((0, i) for i in range(members) if i != root)
    title = f"{op.capitalize()}, {members + leaves} processes"
    exchange = schedule(f"inter_{op}", "leader", q=leaves, m=1)
    return Pattern(name, title, exchange, seats, passive)


def patterns() -> Iterator[Pattern]:
    """Figures 1 to 3.

    The paper tells the number of processes, the root and the passive ones; the division
    of 26 processes into groups is read off the drawing.
    """
    yield _rooted("figure1", "reduce", 1, 3, 9)
    yield _rooted("figure2", "bcast", 4, 10, 16)
    exchange = schedule("inter_reduce_scatter", "leader", a=[1] * 4, b=[1] * 4)
    seats = tuple((g, i) for g in (0, 1) for i in range(4))
    yield Pattern("figure3", "Reduce_scatter, 8 processes", exchange, seats)


#: of the size of table 1, inside a group of eight and between two groups of four
SIMULATED_LABELS = ("inside, MPICH 1's, simulated", "between, Silva's, simulated")


def simulated(nbytes: int = VECTOR_BYTES[-1]) -> tuple[ProcessTimes, ProcessTimes]:
    """Table 1 on the paper's switch, in the alpha-beta model: MPICH's algorithm inside
    one group, and Silva's between two."""
    blocks = [nbytes // 4] * 4
    inside = schedule("reduce_scatter", "leader", counts=[nbytes // 8] * 8)
    between = schedule("inter_reduce_scatter", "leader", a=blocks, b=blocks)
    first, second = (
        ProcessTimes(
            "reduce_scatter",
            label,
            nbytes,
            "leader",
            tuple(exchange.simulate(PAPER_SWITCH).finish.tolist()),
        )
        for label, exchange in zip(SIMULATED_LABELS, (inside, between), strict=True)
    )
    return first, second
