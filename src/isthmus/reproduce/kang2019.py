"""Settings 1 to 8 of Kang, Träff et al. 2019, simulated.

The paper gives its sizes in words, and the gains it expects; where the text is damaged,
the sizes below are those from which the expected gains follow exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..collectives.records import schedule
from ..cost.limit import copying, limits as limits_of_machine
from ..cost.machine import AlphaBeta, Machine
from ..cost.machines import load
from ..schedules.registry import algorithms
from ..schedules.schedule import Schedule

#: message sizes per node, in bytes: the axis of figures 4 to 6
BYTES_PER_NODE = tuple(1 << k for k in range(16, 24))
#: the elements of the paper's messages are ints
BYTES_OF_AN_INT = 4


@dataclass(frozen=True)
class Setting:
    """A setting of the paper: groups, block sizes, and the gain the paper expects."""

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
        """Whether the setting is one of Allgatherv."""
        return self.number > 4

    @property
    def paper_algorithm(self) -> str:
        """The algorithm of the paper that the setting measures."""
        return "balanced" if self.irregular else "segmented"


SETTINGS = (
    Setting(1, "p = q, equal blocks", 7.0, equal_groups=True),
    Setting(2, "p:q = 25:7, equal blocks", 4.84, equal_groups=False),
    Setting(3, "p:q = 25:7, k_A = 4 k_B", 4.21, equal_groups=False, kb=0.25),
    Setting(4, "p:q = 25:7, k_B = 4 k_A", 6.68, equal_groups=False, ka=0.25),
    Setting(5, "p = q, equal blocks", 7.0, equal_groups=True),
    Setting(6, "p = q, arithmetic sequence", 7.0, equal_groups=True, arithmetic=True),
    Setting(7, "p:q = 25:7, equal blocks", 4.84, equal_groups=False),
    Setting(
        8, "p:q = 25:7, arithmetic sequence", 4.84, equal_groups=False, arithmetic=True
    ),
)


#: settings of Allgatherv whose blocks are those of a setting of Allgather; the second
#: is simulated for both where only blocks matter: by the node-aware algorithm, and in
#: the paper's model with t_s = 0
SIMULATED_AS = {5: 1, 7: 2}


@dataclass(frozen=True)
class ClusterShape:
    """A number of nodes with a number of processes each."""

    nodes: int
    processes_per_node: int

    @property
    def n(self) -> int:
        """The number of processes."""
        return self.nodes * self.processes_per_node

    @property
    def placement(self) -> list[int]:
        """The node of each process."""
        return [r // self.processes_per_node for r in range(self.n)]

    @property
    def name(self) -> str:
        """The shape as in the titles of the paper."""
        return f"{self.nodes} × {self.processes_per_node}"


CLUSTERS = ClusterShape(64, 1), ClusterShape(256, 1), ClusterShape(64, 32)


def groups(setting: Setting, n: int) -> tuple[int, int]:
    """The sizes of both groups."""
    p = n // 2 if setting.equal_groups else n * 25 // 32
    return p, n - p


def _counts(n: int, largest_count: int, is_arithmetic: bool) -> list[int]:
    """Ints that each of n ranks contributes: equal, or an arithmetic sequence.

    The sequence is of whole ints up to `largest_count`, since the paper's axis is the
    maximum message.
    """
    if not is_arithmetic:
        return [largest_count] * n
    counts: list[int] = (largest_count * np.arange(1, n + 1) // n).tolist()
    return counts


def blocks(
    setting: Setting, cluster: ClusterShape, per_node: int
) -> tuple[list[int], list[int]]:
    """The ints that each rank of both groups contributes."""
    p, q = groups(setting, cluster.n)
    ints_per_rank = per_node // cluster.processes_per_node // BYTES_OF_AN_INT
    return (
        _counts(p, int(ints_per_rank * setting.ka), setting.arithmetic),
        _counts(q, int(ints_per_rank * setting.kb), setting.arithmetic),
    )


def problem(
    setting: Setting, cluster: ClusterShape, per_node: int, name: str
) -> Schedule:
    """The schedule of an algorithm on a setting, at a place of the axis."""
    a, b = blocks(setting, cluster, per_node)
    nodes: Sequence[int] = ()
    if name == NODE_AWARE:
        far = machine(cluster).levels[-1]
        name = f"{name}(startup={far.alpha / (BYTES_OF_AN_INT * far.beta)})"
        nodes = cluster.placement
    if setting.irregular:
        return schedule("inter_allgatherv", name, a=a, b=b, nodes=nodes)
    p, q = len(a), len(b)
    ka, kb = a[0], b[0]
    return schedule("inter_allgather", name, nodes=nodes, p=p, q=q, ka=ka, kb=kb)


@dataclass(frozen=True)
class ExchangePoint:
    """The simulated time of an algorithm at a place of a figure."""

    setting: int
    cluster: str
    processes: int
    per_node: int
    algorithm: str
    seconds: float


LIBRARY_ALGORITHM = "root_gathering_sequential"
NODE_AWARE = "node_aware"
#: the library's algorithm with either gather
LIBRARY_ALGORITHMS = (LIBRARY_ALGORITHM, "root_gathering_ring")
#: algorithms that take minutes to simulate among 2048 processes
SLOW_ALGORITHMS = ("moving_entry",)


def contenders(setting: Setting, cluster: ClusterShape) -> tuple[str, ...]:
    """The algorithms of a figure: the library's, the paper's, and its forerunner; where
    processes share nodes, also the node-aware one.

    Groups collect by a ring, as MPICH does for as many bytes as these.
    """
    node_aware = (NODE_AWARE,) if cluster.processes_per_node > 1 else ()
    if setting.irregular:
        return LIBRARY_ALGORITHM, "balanced+ring", *node_aware
    return LIBRARY_ALGORITHM, "two_step+ring", "segmented+ring", *node_aware


def sizes(cluster: ClusterShape) -> tuple[int, ...]:
    """The simulated places of the axis: fewer of the large cluster, since its
    simulations are the slowest."""
    return (
        BYTES_PER_NODE
        if cluster.n < 1000
        else BYTES_PER_NODE[0:1] + BYTES_PER_NODE[3::2]
    )


@dataclass(frozen=True)
class ExchangeJob:
    """A point of a figure, to simulate."""

    setting: Setting
    cluster: ClusterShape
    per_node: int
    algorithm: str


def figure_jobs() -> Iterator[ExchangeJob]:
    """All points of figures 4 to 6, the slowest first, so that no slow one is left for
    a single process at the end."""
    for cluster in sorted(CLUSTERS, key=lambda c: -c.n):
        for setting in SETTINGS:
            for name in reversed(contenders(setting, cluster)):
                if name == NODE_AWARE and setting.number in SIMULATED_AS:
                    continue
                for per_node in reversed(sizes(cluster)):
                    yield ExchangeJob(setting, cluster, per_node, name)


def with_equal_settings(
    results: Sequence[ExchangePoint | Multiple],
) -> Iterator[ExchangePoint | Multiple]:
    """The results, and copies for the settings of `SIMULATED_AS`, whose blocks are
    equal to those of a simulated setting."""
    yield from results
    for setting, simulated_setting in SIMULATED_AS.items():
        for result in results:
            has_equal_value = (
                isinstance(result, Multiple) or result.algorithm == NODE_AWARE
            )
            if has_equal_value and result.setting == simulated_setting:
                yield replace(result, setting=setting)


def machine(cluster: ClusterShape) -> Machine:
    """The paper's machine: nodes of the Cori-like file, with the cluster's shape."""
    model = load("cori-like", unit=BYTES_OF_AN_INT)
    node, rest = model.levels
    return replace(model, levels=(replace(node, size=cluster.processes_per_node), rest))


@dataclass(frozen=True)
class NodeLimit:
    """The times of the node-aware and of the best flat algorithm beside a limit.

    The limit holds for algorithms whose ranks copy out of the memory of their node.
    """

    setting: int
    cluster: str
    per_node: int
    #: seconds for the bytes that must enter or leave a node's port
    port: float
    #: seconds for the bytes that the processes of a node copy
    memory: float
    #: the time of the node-aware algorithm, and of the best flat one
    node_aware: float
    flat: float

    @property
    def least(self) -> float:
        """The limit: the longer of port and memory."""
        return max(self.port, self.memory)


def limits(points: Sequence[ExchangePoint]) -> Iterator[NodeLimit]:
    """The limits of every setting, where processes share nodes."""
    shared = [c for c in CLUSTERS if c.processes_per_node > 1]
    for setting in SETTINGS:
        for cluster in shared:
            for per_node in sizes(cluster):
                times = {
                    p.algorithm: p.seconds
                    for p in points
                    if (p.setting, p.cluster, p.per_node)
                    == (setting.number, cluster.name, per_node)
                }
                flat_seconds = min(t for name, t in times.items() if name != NODE_AWARE)
                port_seconds, memory_seconds = _limit(setting, cluster, per_node)
                yield NodeLimit(
                    setting.number,
                    cluster.name,
                    per_node,
                    port=port_seconds,
                    memory=memory_seconds,
                    node_aware=times[NODE_AWARE],
                    flat=flat_seconds,
                )


def _limit(
    setting: Setting, cluster: ClusterShape, per_node: int
) -> tuple[float, float]:
    """Seconds of the port and of the memory of the busiest node."""
    model = machine(cluster)
    contract = problem(setting, cluster, per_node, NODE_AWARE).contract
    _, of_node = limits_of_machine(contract, cluster.n, model)
    return of_node.seconds, copying(contract.demand(), cluster.n, model)


def point(job: ExchangeJob) -> ExchangePoint:
    """The point of a job, simulated on the paper's machine."""
    c = job.cluster
    exchange = problem(job.setting, c, job.per_node, job.algorithm)
    seconds = exchange.simulate(machine(c)).time
    return ExchangePoint(
        job.setting.number, c.name, c.n, job.per_node, job.algorithm, seconds
    )


def _transfer(job: ExchangeJob) -> float:
    """The simulated transfer time alone, in the paper's model, in bytes."""
    model = AlphaBeta(0.0, 1.0, unit=BYTES_OF_AN_INT)
    exchange = problem(job.setting, job.cluster, job.per_node, job.algorithm)
    return exchange.simulate(model).time


@dataclass(frozen=True)
class Multiple:
    """The transfer time of an algorithm as a multiple of the lower bound M."""

    setting: int
    algorithm: str
    multiple: float


def table_jobs() -> Iterator[ExchangeJob]:
    """Every algorithm for which the paper's model has a time, on every setting, on the
    largest cluster."""
    flat = (
        a
        for a in algorithms("inter_allgather")
        if not a.node_memory and a.name not in SLOW_ALGORITHMS
    )
    for name in [a.name + "+ring" * a.staged for a in flat]:
        for setting in SETTINGS:
            if setting.number not in SIMULATED_AS:
                yield ExchangeJob(setting, CLUSTERS[-1], BYTES_PER_NODE[-1], name)


def ring_jobs() -> Iterator[ExchangeJob]:
    """Root gathering up a tree and round a ring, on as many nodes as in section 5."""
    for name in LIBRARY_ALGORITHMS:
        for setting in SETTINGS:
            yield ExchangeJob(setting, CLUSTERS[1], BYTES_PER_NODE[-1], name)


def multiple(job: ExchangeJob) -> Multiple:
    """The distance of an algorithm from the lower bound, as a multiple."""
    a, b = blocks(job.setting, job.cluster, job.per_node)
    bound = BYTES_OF_AN_INT * max(sum(a), sum(b))
    return Multiple(job.setting.number, job.algorithm, _transfer(job) / bound)


@dataclass(frozen=True)
class Gain:
    """The speed of an algorithm relative to the library's, by transfer time alone."""

    setting: int
    cluster: str
    expected: float
    simulated: float


def transfer_gain(
    setting: Setting, cluster: ClusterShape, per_node: int = BYTES_PER_NODE[-1]
) -> Gain:
    """The gain in the paper's model with t_s = 0, at a size of the axis."""
    names = LIBRARY_ALGORITHM, f"{setting.paper_algorithm}+ring"
    multiples = [
        multiple(ExchangeJob(setting, cluster, per_node, name)) for name in names
    ]
    return gain(setting, cluster, multiples)


def gain(
    setting: Setting, cluster: ClusterShape, multiples: Sequence[Multiple]
) -> Gain:
    """The gain of a setting, from multiples of the lower bound."""
    multiple_of = {
        x.algorithm: x.multiple for x in multiples if x.setting == setting.number
    }
    simulated = (
        multiple_of[LIBRARY_ALGORITHM] / multiple_of[f"{setting.paper_algorithm}+ring"]
    )
    return Gain(
        setting.number, cluster.name, expected=setting.expected, simulated=simulated
    )
