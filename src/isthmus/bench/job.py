"""What is to be measured, and what came out: plain values, also as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from .. import distributions
from .units import show_bytes

OPERATIONS = "allgather", "allgatherv"


@dataclass(frozen=True)
class Case:
    """One operation, and the bytes that each rank of both groups contributes.

    Inside one group `b` is empty.
    """

    label: str
    op: str
    a: tuple[int, ...]
    b: tuple[int, ...] = ()


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

    `seconds` is what a case may take, roughly; `content` names what the buffers hold.
    """

    groups: tuple[int, ...]
    cases: tuple[Case, ...]
    contenders: tuple[Contender, ...]
    seconds: float = 1.0
    seed: int = 0
    content: str = "random"


@dataclass(frozen=True)
class Result:
    """The time of a contender: one call, in each repetition, on the slowest rank."""

    contender: Contender
    calls: int
    times: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """The median over the repetitions."""
        return median(self.times)


@dataclass(frozen=True)
class Outcome:
    """The results of all contenders in one case; every byte was right."""

    case: Case
    results: tuple[Result, ...]

    def seconds(self, contender: Contender) -> float:
        """The time of a contender."""
        return next(r.seconds for r in self.results if r.contender == contender)

    def ratio(self, contender: Contender) -> float:
        """How many times faster than the MPI library's own call."""
        return self.seconds(NATIVE) / self.seconds(contender)


def uneven(each: int, n: int) -> tuple[int, ...]:
    """Contributions that grow with the rank, `each` on average."""
    unit = 8 if each >= 64 else 1
    return tuple(round(2 * each * (i + 1) / (n + 1) / unit) * unit for i in range(n))


def _counts(op: str, n: int, each: int, distribution: str | None) -> tuple[int, ...]:
    """What n ranks contribute, so many bytes on average."""
    if distribution is not None:
        unit = 8 if each % 8 == 0 else 1
        elements = distributions.counts(distribution, n, n * each // unit)
        return tuple(unit * k for k in elements)
    return uneven(each, n) if op == "allgatherv" else (each,) * n


def case(
    op: str, groups: tuple[int, ...], each: int, distribution: str | None = None
) -> Case:
    """A case in which each rank contributes so many bytes, on average."""
    if op not in OPERATIONS:
        raise ValueError(f"no operation {op!r}; known: {', '.join(OPERATIONS)}")
    if distribution is not None and op == "allgather":
        raise ValueError("allgather has equal contributions: no distribution")
    label = show_bytes(each) + f" {distribution}" * (distribution is not None)
    return Case(label, op, *(_counts(op, n, each, distribution) for n in groups))


def to_json(value: Job | Outcome) -> str:
    """One line of JSON."""
    return json.dumps(asdict(value))


def _case(data: dict[str, Any]) -> Case:
    return Case(data["label"], data["op"], tuple(data["a"]), tuple(data["b"]))


def read_job(text: str) -> Job:
    """The job that was written."""
    data = json.loads(text)
    data["groups"] = tuple(data["groups"])
    data["cases"] = tuple(map(_case, data["cases"]))
    data["contenders"] = tuple(Contender(**c) for c in data["contenders"])
    return Job(**data)


def read_outcome(data: dict[str, Any]) -> Outcome:
    """The outcome that was written."""
    results = tuple(
        Result(Contender(**r["contender"]), r["calls"], tuple(r["times"]))
        for r in data["results"]
    )
    return Outcome(_case(data["case"]), results)


def contenders(names: Sequence[str], persistent: bool) -> tuple[Contender, ...]:
    """The MPI library's own call, each algorithm, also persistent, and the limit."""
    others = [Contender(name) for name in names if name != "native"]
    if persistent:
        others += [Contender(c.algorithm, True) for c in others]
    return NATIVE, *others, LIMIT
