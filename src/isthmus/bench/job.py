"""What is to be measured, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from .. import distributions
from ..collectives.collective import BETWEEN
from ..collectives.records import COLLECTIVES, made_by, schedule
from ..cost.limit import Crossing, crossing
from ..predict.tuned import Tuned, fitted
from ..redistribution.cases import REDISTRIBUTION_KINDS, layouts
from ..redistribution.schedule import schedule as redistribution
from ..schedules.schedule import Model, Schedule
from ..units import show_bytes
from .operations import REDISTRIBUTION, check, is_vector, may_be_uneven


@dataclass(frozen=True)
class Case:
    """One operation, and the bytes of the block of each rank of both groups.

    Inside one group `b` is empty. `kind` is what tells it from others of the same size,
    such as its distribution; `each` the size, in bytes for each rank on average.
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
        """What it is called in a table."""
        return self.algorithm + ", persistent" * self.persistent


NATIVE = Contender("native")
#: every rank copies as many bytes as it receives: on one host nobody can be faster
LIMIT = Contender("copy")


@dataclass(frozen=True)
class Job:
    """Cases for one or two groups of processes, and the contenders of each.

    `seconds` is what a case may take, roughly; `content` names what the buffers hold;
    `single` wants one call in each repetition, however short. Calls get another view of
    the same memory every time, or the `same_arrays`.
    """

    groups: tuple[int, ...]
    cases: tuple[Case, ...]
    contenders: tuple[Contender, ...]
    seconds: float = 1.0
    seed: int = 0
    content: str = "random"
    single: bool = False
    same_arrays: bool = False

    def contenders_of(self, case: Case) -> tuple[Contender, ...]:
        """Those that make sense for a case: a barrier copies nothing."""
        return tuple(c for c in self.contenders if c != LIMIT or case.op != "barrier")


def uneven(each: int, n: int) -> tuple[int, ...]:
    """Contributions that grow with the rank, `each` on average."""
    unit = 8 if each >= 64 else 1
    return tuple(round(2 * each * (i + 1) / (n + 1) / unit) * unit for i in range(n))


def of_groups(
    op: str, groups: tuple[int, ...], each: Sequence[int], distribution: str | None
) -> Case:
    """A case in which the blocks of each group have bytes of their own, on average."""
    if len(set(each)) == 1:
        return case(op, groups, each[0], distribution)
    if is_vector(op) or op == REDISTRIBUTION:
        raise ValueError(f"{op}: one size, as all vectors are as long")
    first, last = (case(op, groups, n, distribution) for n in each)
    label = f"{show_bytes(each[0])} and {last.label}"
    return replace(first, label=label, b=last.b)


def _counts(op: str, n: int, each: int, distribution: str | None) -> tuple[int, ...]:
    """The blocks of n ranks, so many bytes on average."""
    if distribution is not None:
        unit = 8 if each % 8 == 0 else 1
        elements = distributions.counts(distribution, n, n * each // unit)
        return tuple(unit * k for k in elements)
    return uneven(each, n) if may_be_uneven(op) else (each,) * n


def case(
    op: str, groups: tuple[int, ...], each: int, distribution: str | None = None
) -> Case:
    """A case in which the block of each rank has so many bytes, on average."""
    check(op, groups)
    if op == REDISTRIBUTION:
        return _redistribution(groups, each, distribution or REDISTRIBUTION_KINDS[0])
    if distribution is not None and not may_be_uneven(op):
        raise ValueError(f"{op} has equal contributions: no distribution")
    a, *b = (_counts(op, n, each, distribution) for n in groups)
    kind = distribution or ""
    label = f"{show_bytes(each)} {kind}".strip()
    return Case(label, op, a, b[0] if b else (), kind, each)


def _redistribution(groups: tuple[int, ...], each: int, kind: str) -> Case:
    """A matrix of doubles, of which each rank of the first group has so many bytes."""
    p, q = groups
    both = layouts(kind, p * each // 8, p, q)
    a, b = (
        tuple(8 * prod(x.local_shape(r)) for r in range(n))
        for x, n in zip(both, groups, strict=True)
    )
    return Case(f"{show_bytes(each)} {kind}", REDISTRIBUTION, a, b, kind, each)


def planned(case: Case, algorithm: str, model: Model) -> Schedule:
    """The schedule of a case, as it is for a machine; an element is a byte."""
    name, sizes = _sizes(case)
    full = fitted(name, algorithm, model) if isinstance(model, Tuned) else algorithm
    return schedule(name, full, **sizes)


def must_move(case: Case, hosts: Sequence[int]) -> Crossing:
    """The bytes that must enter and leave each host, where `hosts` says on which, from
    0 on, each rank is. Across two groups the root of a rooted operation is rank 0 of
    group A, and the others of A have no part in it."""
    if case.op == "redistribution":
        p, q = len(case.a), len(case.b)
        both = redistribution(*layouts(case.kind, p * case.each // 8, p, q))
        passed = crossing(both.contract.demand(), hosts)
        return Crossing(8 * passed.enters, 8 * passed.leaves, 8 * passed.total)
    name, sizes = _sizes(case)
    taking_part = list(hosts)
    record = COLLECTIVES[name]
    if record.is_rooted and record.groups == BETWEEN:
        del taking_part[1 : len(case.a)]
    hosts_of_all = crossing(record.promise(sizes).demand(), taking_part)
    idle = max(hosts) + 1 - len(hosts_of_all.enters)
    enters, leaves = (
        np.append(x, np.zeros(idle, np.int64))
        for x in (hosts_of_all.enters, hosts_of_all.leaves)
    )
    return Crossing(enters, leaves, hosts_of_all.total)


def _sizes(case: Case) -> tuple[str, dict[str, Any]]:
    """The collective of a case, by its full name, and its sizes; of bytes."""
    blocks = [list(counts) for counts in (case.a, case.b) if counts]
    record = made_by(case.op.removesuffix("_block"), len(blocks))
    of_bytes = record.of_bytes
    return record.name, _table(blocks) if of_bytes is None else of_bytes(*blocks)


def _table(blocks: Sequence[list[int]]) -> dict[str, Any]:
    """The sizes of an exchange in which each rank has one size for everyone, or of the
    sum of vectors in equal parts."""
    if len(blocks) == 1:
        return {"table": [[n] * len(blocks[0]) for n in blocks[0]]}
    a, b = blocks
    return {"ab": [[n] * len(b) for n in a], "ba": [[n] * len(a) for n in b]}


def contenders(
    names: Sequence[str], persistent: bool, copy: bool = True
) -> tuple[Contender, ...]:
    """The MPI library's own call, each algorithm, also persistent, and the limit."""
    others = [Contender(name) for name in names if name != "native"]
    if persistent:
        others += [Contender(c.algorithm, True) for c in others]
    return NATIVE, *others, *([LIMIT] if copy else [])
