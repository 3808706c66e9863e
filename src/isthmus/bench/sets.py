"""Named sets of cases: sets of papers, at sizes that fit a lab of 32 hosts, and sets of
users with a single node, or with several ranks behind a link."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..distributions import PAPER_DISTRIBUTIONS, counts
from ..reproduce import kang2019 as paper
from ..spelling import unknown
from ..units import DECIMAL_UNITS, show_bytes
from .job import BenchCase, BenchJob, case, case_of_operation
from .operations import is_vector, mpi_operations

LAB_PROCESSES = 32
#: bytes of a block
SET_BLOCK_BYTES = (100_000, 300_000, 1_000_000)
#: bytes of all blocks together
SET_TOTAL_BYTES = (2_000_000, 16_000_000)
#: bytes of a block or vector on one node
NODE_BLOCK_BYTES = (8, 4 << 10, 64 << 10, 1 << 20)


def _scaled(sizes: Sequence[int], scale: float, unit: int) -> list[int]:
    """Sizes times a factor, in whole units."""
    return [max(round(n * scale / unit), 1) * unit for n in sizes]


#: cases, each with the sizes of its groups
GroupedCases = list[tuple[tuple[int, ...], BenchCase]]


def _kang2019(scale: float) -> GroupedCases:
    """Settings 1 to 8 of Kang, Träff et al. 2019, one process on a node."""
    cluster = paper.ClusterShape(LAB_PROCESSES, 1)
    cases: GroupedCases = []
    # whole ints also in a quarter of a block, which settings 3 and 4 have
    for each in _scaled(SET_BLOCK_BYTES, scale, 4 * paper.BYTES_OF_AN_INT):
        for setting in paper.SETTINGS:
            elements = paper.blocks(setting, cluster, each)
            a, b = (tuple(paper.BYTES_OF_AN_INT * k for k in side) for side in elements)
            op = "allgatherv" if setting.irregular else "allgather"
            kind = f"setting {setting.number}"
            label = f"{kind}, {show_bytes(each, DECIMAL_UNITS)}"
            cases.append(((len(a), len(b)), BenchCase(label, op, a, b, kind, each)))
    return cases


def _traff2008(scale: float) -> GroupedCases:
    """The six distributions of Träff et al. 2008, inside one group of 16."""
    p = LAB_PROCESSES // 2
    cases: GroupedCases = []
    for total in _scaled(SET_TOTAL_BYTES, scale, p):
        for kind in PAPER_DISTRIBUTIONS:
            sizes = tuple(counts(kind, p, total))
            label = f"{kind}, {show_bytes(total, DECIMAL_UNITS)}"
            each = total // p
            cases.append(((p,), BenchCase(label, "allgatherv", sizes, (), kind, each)))
    return cases


def _silva1999(scale: float) -> GroupedCases:
    """Collectives between two groups of 16, all that Silva and Silva 1999 proposed and
    MPI took over. A vector is as long as the blocks of a group together.
    """
    groups = LAB_PROCESSES // 2, LAB_PROCESSES // 2
    cases: GroupedCases = []
    for each in _scaled(SET_BLOCK_BYTES[:1], scale, 1):
        for op in mpi_operations(2):
            size = groups[0] * each if is_vector(op) else each
            label = (
                op if op == "barrier" else f"{op}, {show_bytes(size, DECIMAL_UNITS)}"
            )
            sized = replace(case(op, groups, size), label=label, kind=op, each=each)
            cases.append((groups, sized))
    return cases


def _of_sizes(
    groups: tuple[int, int],
    sizes_by_operation: Mapping[str, Sequence[int]],
    scale: float,
) -> GroupedCases:
    """Cases of several operations, each with sizes of its own."""
    cases: GroupedCases = []
    for op, sizes in sizes_by_operation.items():
        for each in _scaled(sizes, scale, 1):
            cases.append((groups, case_of_operation(op, groups, each)))
    return cases


def _one_node(scale: float) -> GroupedCases:
    """All operations between two groups of 8: for a node of 16 cores."""
    sizes = dict.fromkeys(mpi_operations(2), NODE_BLOCK_BYTES)
    return _of_sizes((8, 8), sizes | {"barrier": NODE_BLOCK_BYTES[:1]}, scale)


def _four_a_host(scale: float) -> GroupedCases:
    """Short and long data between groups of 16: for 8 hosts with 4 ranks each."""
    vectors = dict.fromkeys(filter(is_vector, mpi_operations(2)), (4096, 983_040))
    blocks = {"allgather": (4096, 96_000), "alltoall": (4096, 192_000)}
    return _of_sizes((16, 16), vectors | blocks, scale)


SETS: dict[str, Callable[[float], GroupedCases]] = {
    "kang2019": _kang2019,
    "traff2008": _traff2008,
    "silva1999": _silva1999,
    "one_node": _one_node,
    "four_a_host": _four_a_host,
}
PAPER_SETS = ("kang2019", "traff2008", "silva1999")

#: the algorithms that are measured in a set, beside the MPI library's own calls
ALGORITHMS = {
    "kang2019": ("auto", "segmented", "balanced", "leader"),
    "traff2008": ("auto", "ring", "blocked_ring", "circulant"),
    "silva1999": ("auto",),
    "one_node": ("auto",),
    "four_a_host": ("auto",),
}


def algorithms(name: str) -> tuple[str, ...]:
    """The algorithms that are measured in a set."""
    if name not in SETS:
        raise ValueError(unknown("set", name, SETS))
    return ALGORITHMS[name]


def kinds(name: str) -> list[str]:
    """The kinds of cases of a set, in the order of its paper."""
    return list(dict.fromkeys(case.kind for _, case in SETS[name](1.0)))


def named(
    name: str, base_job: BenchJob, scale: float = 1.0, smallest: bool = False
) -> list[BenchJob]:
    """The jobs of a set, one for each pair of groups, with the contenders, the seconds
    and the options of `base_job`.

    Sizes are multiplied by `scale`; `smallest` leaves out all but the smallest.
    """
    if not scale > 0:
        raise ValueError(f"--scale {scale:g}: must be above 0")
    cases = SETS[name](scale)
    if smallest:
        least = min(case.each for _, case in cases)
        cases = [(groups, case) for groups, case in cases if case.each == least]
    by_groups: dict[tuple[int, ...], list[BenchCase]] = {}
    for groups, sized in cases:
        by_groups.setdefault(groups, []).append(sized)
    return [
        replace(base_job, groups=groups, cases=tuple(cases_of_groups))
        for groups, cases_of_groups in by_groups.items()
    ]
