"""Cases, contenders and jobs of a measurement, as plain values.

A job travels to the ranks as a pickle and into the file of results as JSON, so its
classes hold no array and no communicator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from .. import distributions
from ..collectives.collective import BETWEEN
from ..collectives.records import COLLECTIVES, record_of, schedule
from ..cost.limit import Crossing, crossing
from ..cost.machine import Machine
from ..redistribution.cases import REDISTRIBUTION_KINDS, layouts
from ..redistribution.schedule import schedule as redistribution
from ..schedules.registry import algorithms, with_startup
from ..schedules.schedule import Model, Schedule
from ..units import show_bytes
from .operations import REDISTRIBUTION, check, is_vector, may_be_uneven


@dataclass(frozen=True)
class BenchCase:
    """An operation, and the bytes of the block of each rank of both groups.

    Inside one group `b` is empty. `kind` separates cases of equal size, for instance by
    distribution. `each` is the size: bytes of a rank's block on average.
    """

    label: str
    op: str
    a: tuple[int, ...]
    b: tuple[int, ...] = ()
    kind: str = ""
    each: int = 0


@dataclass(frozen=True)
class Contender:
    """One way to do an operation: "native", or an algorithm of isthmus."""

    algorithm: str
    persistent: bool = False

    @property
    def name(self) -> str:
        """The name of the contender in a table."""
        return self.algorithm + ", persistent" * self.persistent


NATIVE = Contender("native")
#: the library's own call on a communicator of isthmus, as "auto" makes the call
NATIVE_BY_NAME = Contender("native by name")
AUTO = Contender("auto")
#: every rank copies as many bytes as it receives: on one host no algorithm is faster
COPY = Contender("copy")


@dataclass(frozen=True)
class BenchJob:
    """Cases for one or two groups of processes, and the contenders of each.

    `seconds` is the time for a case, roughly. `content` names the data in the buffers,
    "random" or "field". With `single` a repetition is one call, however short. Each
    call gets a new view of its memory, or with `same_arrays` the objects of the call
    before. With `all_candidates` each algorithm of a case's operation is a contender,
    until it is seen to be much slower than the fastest.
    """

    groups: tuple[int, ...]
    cases: tuple[BenchCase, ...]
    contenders: tuple[Contender, ...]
    seconds: float = 1.0
    seed: int = 0
    content: str = "random"
    single: bool = False
    same_arrays: bool = False
    all_candidates: bool = False

    def contenders_of(self, case: BenchCase) -> tuple[Contender, ...]:
        """The contenders of a case: of a barrier no copy, since no data arrive."""
        named = (c for c in self.contenders if c != COPY or case.op != "barrier")
        return (*named, *(candidates(case) if self.all_candidates else ()))


def candidates(case: BenchCase) -> tuple[Contender, ...]:
    """What "auto" may take in a case: the MPI library's own call, and the algorithms of
    isthmus, without those of MPI libraries."""
    sizes = [len(counts) for counts in (case.a, case.b) if counts]
    ours = (
        Contender(entry.name)
        for entry in algorithms(record_of(case.op, len(sizes)).name)
        if entry.needs(sum(sizes)) and ".baselines." not in entry.program.__module__
    )
    return NATIVE_BY_NAME, *ours


def uneven(each: int, n: int) -> tuple[int, ...]:
    """Blocks of n ranks that grow with the rank, `each` bytes on average."""
    unit = 8 if each >= 64 else 1
    return tuple(round(2 * each * (i + 1) / (n + 1) / unit) * unit for i in range(n))


def of_groups(
    op: str, groups: tuple[int, ...], each: Sequence[int], distribution: str | None
) -> BenchCase:
    """A case with a block size for each group, in bytes on average."""
    if len(set(each)) == 1:
        return case(op, groups, each[0], distribution)
    if is_vector(op) or op == REDISTRIBUTION:
        raise ValueError(f"{op}: one size, as all vectors are equally long")
    first, last = (case(op, groups, n, distribution) for n in each)
    label = f"{show_bytes(each[0])} and {last.label}"
    return replace(first, label=label, b=last.b)


def _counts(op: str, n: int, each: int, distribution: str | None) -> tuple[int, ...]:
    """The bytes of the blocks of n ranks, `each` on average."""
    if distribution is not None:
        unit = 8 if each % 8 == 0 else 1
        elements = distributions.counts(distribution, n, n * each // unit)
        return tuple(unit * k for k in elements)
    return uneven(each, n) if may_be_uneven(op) else (each,) * n


def case(
    op: str, groups: tuple[int, ...], each: int, distribution: str | None = None
) -> BenchCase:
    """A case in which the block of a rank has `each` bytes on average."""
    check(op, groups)
    if op == REDISTRIBUTION:
        return _redistribution(groups, each, distribution or REDISTRIBUTION_KINDS[0])
    if distribution is not None and not may_be_uneven(op):
        raise ValueError(f"{op} has equal contributions: no distribution")
    a, *b = (_counts(op, n, each, distribution) for n in groups)
    kind = distribution or ""
    label = f"{show_bytes(each)} {kind}".strip()
    return BenchCase(label, op, a, b[0] if b else (), kind, each)


def case_of_operation(op: str, groups: tuple[int, ...], each: int) -> BenchCase:
    """A case whose label names the operation too, and whose kind is the operation."""
    sized = case(op, groups, each)
    label = op if op == "barrier" else f"{op}, {sized.label}"
    return replace(sized, label=label, kind=op)


def _redistribution(groups: tuple[int, ...], each: int, kind: str) -> BenchCase:
    """A case of a matrix of doubles; a rank of the first group has `each` bytes."""
    p, q = groups
    source_and_target = layouts(kind, p * each // 8, p, q)
    a, b = (
        tuple(8 * prod(layout.local_shape(r)) for r in range(n))
        for layout, n in zip(source_and_target, groups, strict=True)
    )
    return BenchCase(f"{show_bytes(each)} {kind}", REDISTRIBUTION, a, b, kind, each)


def planned(case: BenchCase, algorithm: str, model: Model) -> Schedule:
    """The schedule of a case, with bytes as elements.

    On a tuned machine the algorithm reckons with the measured start-up, as a call does.
    """
    name, sizes = _sizes(case)
    if isinstance(model, Machine) and model.library is not None:
        algorithm = with_startup(name, algorithm, model.startup_bytes)
    return schedule(name, algorithm, **sizes)


def must_move(case: BenchCase, hosts: Sequence[int]) -> Crossing:
    """The bytes that must enter and leave each host.

    `hosts` has the host of each rank, from 0 on. Across two groups the root of a rooted
    operation is rank 0 of group A; all other ranks of A take no part.
    """
    if case.op == "redistribution":
        p, q = len(case.a), len(case.b)
        exchange = redistribution(*layouts(case.kind, p * case.each // 8, p, q))
        elements = crossing(exchange.contract.demand(), hosts)
        return Crossing(8 * elements.enters, 8 * elements.leaves, 8 * elements.total)
    name, sizes = _sizes(case)
    taking_part = list(hosts)
    record = COLLECTIVES[name]
    if record.is_rooted and record.groups == BETWEEN:
        del taking_part[1 : len(case.a)]
    moved = crossing(record.promise(sizes).demand(), taking_part)
    idle_hosts = max(hosts) + 1 - len(moved.enters)
    enters, leaves = (
        np.append(nbytes, np.zeros(idle_hosts, np.int64))
        for nbytes in (moved.enters, moved.leaves)
    )
    return Crossing(enters, leaves, moved.total)


def _sizes(case: BenchCase) -> tuple[str, dict[str, Any]]:
    """The full name of a case's collective, and its sizes in bytes."""
    blocks = [list(counts) for counts in (case.a, case.b) if counts]
    record = record_of(case.op.removesuffix("_block"), len(blocks))
    of_bytes = record.of_bytes
    sizes = _block_tables(blocks) if of_bytes is None else of_bytes(*blocks)
    return record.name, sizes


def _block_tables(blocks: Sequence[list[int]]) -> dict[str, Any]:
    """The sizes of an Alltoall or a Reduce_scatter, whose records want a size for each
    pair of ranks: here a rank has equal blocks for all receivers."""
    if len(blocks) == 1:
        return {"table": [[n] * len(blocks[0]) for n in blocks[0]]}
    a, b = blocks
    return {"ab": [[n] * len(b) for n in a], "ba": [[n] * len(a) for n in b]}


def contenders(
    names: Sequence[str], persistent: bool, copy: bool = True
) -> tuple[Contender, ...]:
    """The MPI library's own call, each algorithm, also persistent, and the copy."""
    ours = [Contender(name) for name in names if name != "native"]
    if persistent:
        ours += [Contender(c.algorithm, True) for c in ours]
    return NATIVE, *ours, *([COPY] if copy else [])
