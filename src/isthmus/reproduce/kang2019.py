"""Settings 1 to 8 of Kang, Träff et al. 2019, simulated.

The paper gives the sizes it ran in words, and the gains it expects; where its text is
damaged, the sizes below are those from which the expected gains follow exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..collectives import schedule
from ..schedules import Model, Schedule

#: message sizes per node, in bytes: the axis of figures 4 to 6
SIZES = tuple(1 << k for k in range(16, 24))
#: the elements of the paper's messages are ints
UNIT = 4


@dataclass(frozen=True)
class Setting:
    """One of the paper's eight settings."""

    number: int
    text: str
    expected: float
    equal_groups: bool
    #: block sizes of the two groups, relative to the axis
    ka: float = 1.0
    kb: float = 1.0
    arithmetic: bool = False

    @property
    def irregular(self) -> bool:
        """Whether it is one of Allgatherv."""
        return self.number > 4

    @property
    def ours(self) -> str:
        """The algorithm of the paper that it measures."""
        return "balanced" if self.irregular else "segmented"


SETTINGS = (
    Setting(1, "p = q, equal blocks", 7.0, True),
    Setting(2, "p:q = 25:7, equal blocks", 4.84, False),
    Setting(3, "p:q = 25:7, k_A = 4 k_B", 4.21, False, kb=0.25),
    Setting(4, "p:q = 25:7, k_B = 4 k_A", 6.68, False, ka=0.25),
    Setting(5, "p = q, equal blocks", 7.0, True),
    Setting(6, "p = q, arithmetic sequence", 7.0, True, arithmetic=True),
    Setting(7, "p:q = 25:7, equal blocks", 4.84, False),
    Setting(8, "p:q = 25:7, arithmetic sequence", 4.84, False, arithmetic=True),
)


@dataclass(frozen=True)
class Cluster:
    """A number of nodes with a number of processes each."""

    nodes: int
    each: int

    @property
    def n(self) -> int:
        """The number of processes."""
        return self.nodes * self.each

    @property
    def name(self) -> str:
        """As the paper's titles say it."""
        return f"{self.nodes} × {self.each}"


CLUSTERS = Cluster(64, 1), Cluster(256, 1), Cluster(64, 32)


def groups(setting: Setting, n: int) -> tuple[int, int]:
    """The sizes of both groups."""
    p = n // 2 if setting.equal_groups else n * 25 // 32
    return p, n - p


def _counts(n: int, each: int, arithmetic: bool) -> list[int]:
    """Ints that each of n ranks contributes: equal, or 2 (i + 1) ceil(each / n)."""
    if not arithmetic:
        return [each] * n
    step = 2 * -(-each // n)
    return (step * np.arange(1, n + 1)).tolist()  # type: ignore[no-any-return]


def problem(setting: Setting, cluster: Cluster, per_node: int, name: str) -> Schedule:
    """An algorithm on a setting, with so many bytes per node on the axis."""
    p, q = groups(setting, cluster.n)
    each = per_node // cluster.each // UNIT
    ka, kb = int(each * setting.ka), int(each * setting.kb)
    if not setting.irregular:
        return schedule("inter_allgather", name, p=p, q=q, ka=ka, kb=kb)
    a = _counts(p, ka, setting.arithmetic)
    b = _counts(q, kb, setting.arithmetic)
    return schedule("inter_allgatherv", name, a=a, b=b)


@dataclass(frozen=True)
class Point:
    """The simulated time of one algorithm at one place of a figure."""

    setting: int
    cluster: str
    processes: int
    per_node: int
    algorithm: str
    seconds: float


def contenders(setting: Setting) -> tuple[str, ...]:
    """What a figure shows: the library's way, the paper's, and its forerunner."""
    library = ("root_gathering_sequential",)
    if setting.irregular:
        return (*library, "balanced+bruck")
    return (*library, "two_step+bruck", "segmented+bruck")


def jobs(
    clusters: tuple[Cluster, ...] = CLUSTERS, sizes: tuple[int, ...] = SIZES
) -> Iterator[tuple[Setting, Cluster, int, str]]:
    """Everything that the figures show, the slowest first."""
    for cluster in sorted(clusters, key=lambda c: -c.n):
        for setting in SETTINGS:
            for name in contenders(setting):
                for per_node in sizes:
                    yield setting, cluster, per_node, name


def point(
    model: Model, setting: Setting, cluster: Cluster, per_node: int, name: str
) -> Point:
    """Simulate one."""
    made = problem(setting, cluster, per_node, name)
    seconds = made.simulate(model).time
    return Point(setting.number, cluster.name, cluster.n, per_node, name, seconds)


def gain(points: list[Point], ours: Callable[[Point], bool]) -> float:
    """How many times faster than the library's way, at one place of a figure."""
    (library,) = (p for p in points if p.algorithm == "root_gathering_sequential")
    (mine,) = (p for p in points if ours(p))
    return library.seconds / mine.seconds
