"""Named sets: what papers measured, at a size that fits a lab of 32 hosts; and what
users have, one node, or several ranks behind one link."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..distributions import SIX, counts
from ..reproduce import kang2019 as paper
from ..spelling import unknown
from ..units import DECIMAL, show_bytes
from .job import Case, Job, case
from .operations import REDISTRIBUTION, is_vector, measured

PROCESSES = 32
#: bytes of a block, and of all blocks together
BLOCKS = (100_000, 300_000, 1_000_000)
TOTALS = (2_000_000, 16_000_000)
NODE_SIZES = (8, 4 << 10, 64 << 10, 1 << 20)


def _scaled(sizes: Sequence[int], scale: float, unit: int) -> list[int]:
    """Sizes times a factor, in whole units."""
    return [max(round(n * scale / unit), 1) * unit for n in sizes]


Cases = list[tuple[tuple[int, ...], Case]]


def _kang2019(scale: float) -> Cases:
    """Settings 1 to 8 of Kang, Träff et al. 2019, one process on a node."""
    cluster = paper.Cluster(PROCESSES, 1)
    found: Cases = []
    # A quarter of a block is a whole number of ints.
    for each in _scaled(BLOCKS, scale, 4 * paper.UNIT):
        for setting in paper.SETTINGS:
            elements = paper.blocks(setting, cluster, each)
            a, b = (tuple(paper.UNIT * k for k in side) for side in elements)
            op = "allgatherv" if setting.irregular else "allgather"
            kind = f"setting {setting.number}"
            label = f"{kind}, {show_bytes(each, DECIMAL)}"
            found.append(((len(a), len(b)), Case(label, op, a, b, kind, each)))
    return found


def _traff2008(scale: float) -> Cases:
    """The six distributions of Träff et al. 2008, inside one group of 16."""
    p = PROCESSES // 2
    found: Cases = []
    for total in _scaled(TOTALS, scale, p):
        for kind in SIX:
            sizes = tuple(counts(kind, p, total))
            label = f"{kind}, {show_bytes(total, DECIMAL)}"
            each = total // p
            found.append(((p,), Case(label, "allgatherv", sizes, (), kind, each)))
    return found


def _of_mpi() -> list[str]:
    """MPI's own operations between two groups."""
    return [op for op in measured(2) if op != REDISTRIBUTION]


def _silva1999(scale: float) -> Cases:
    """Collectives between two groups of 16, all that Silva and Silva 1999 proposed.

    Those that came into MPI; a vector is as long as the blocks of a group together.
    """
    groups = PROCESSES // 2, PROCESSES // 2
    found: Cases = []
    for each in _scaled(BLOCKS[:1], scale, 1):
        for op in _of_mpi():
            size = groups[0] * each if is_vector(op) else each
            made = case(op, groups, size)
            label = op if op == "barrier" else f"{op}, {show_bytes(size, DECIMAL)}"
            found.append((groups, replace(made, label=label, kind=op, each=each)))
    return found


def _all(
    groups: tuple[int, int], sizes: Mapping[str, Sequence[int]], scale: float
) -> Cases:
    """Some operations, each with its sizes."""
    found: Cases = []
    for op, some in sizes.items():
        for each in _scaled(some, scale, 1):
            made = case(op, groups, each)
            label = op if op == "barrier" else f"{op}, {made.label}"
            found.append((groups, replace(made, label=label, kind=op)))
    return found


def _one_node(scale: float) -> Cases:
    """All operations between two groups of 8: for a node of 16 cores."""
    sizes = dict.fromkeys(_of_mpi(), NODE_SIZES) | {"barrier": NODE_SIZES[:1]}
    return _all((8, 8), sizes, scale)


def _four_a_host(scale: float) -> Cases:
    """Short and long data between groups of 16: for 8 hosts with 4 ranks each."""
    vectors = dict.fromkeys(filter(is_vector, _of_mpi()), (4096, 983_040))
    blocks = {"allgather": (4096, 96_000), "alltoall": (4096, 192_000)}
    return _all((16, 16), vectors | blocks, scale)


SETS: dict[str, Callable[[float], Cases]] = {
    "kang2019": _kang2019,
    "traff2008": _traff2008,
    "silva1999": _silva1999,
    "one_node": _one_node,
    "four_a_host": _four_a_host,
}
#: those of papers
PAPERS = ("kang2019", "traff2008", "silva1999")

#: what is measured beside the MPI library's own calls
ALGORITHMS = {
    "kang2019": ("auto", "segmented", "balanced", "leader"),
    "traff2008": ("auto", "blocked_ring", "circulant"),
    "silva1999": ("auto",),
    "one_node": ("auto",),
    "four_a_host": ("auto",),
}


def algorithms(name: str) -> tuple[str, ...]:
    """What is measured in a set, beside the MPI library's own calls."""
    if name not in SETS:
        raise ValueError(unknown("set", name, SETS))
    return ALGORITHMS[name]


def kinds(name: str) -> list[str]:
    """What is in a set, in the order of its paper."""
    return list(dict.fromkeys(case.kind for _, case in SETS[name](1.0)))


def named(name: str, how: Job, scale: float = 1.0, smallest: bool = False) -> list[Job]:
    """The jobs of a set, one for each pair of groups, else like `how`; its smallest
    sizes, or all."""
    if not scale > 0:
        raise ValueError(f"--scale {scale:g}: must be above 0")
    cases = SETS[name](scale)
    if smallest:
        least = min(case.each for _, case in cases)
        cases = [(groups, case) for groups, case in cases if case.each == least]
    by_groups: dict[tuple[int, ...], list[Case]] = {}
    for groups, one in cases:
        by_groups.setdefault(groups, []).append(one)
    return [
        replace(how, groups=groups, cases=tuple(some))
        for groups, some in by_groups.items()
    ]
