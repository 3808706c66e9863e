"""Programs of one rank: composing them, reading them; schedules of all ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from .ir import Comm, Library, Local, Program, Recv, Round, Send, Span, Spans

if TYPE_CHECKING:
    from .contracts import Contract


def then(*programs: Program) -> Program:
    """One program after the other."""
    return chain(*programs)


def beside(*programs: Program) -> Program:
    """Round k of all programs in one round."""
    for rounds in zip_longest(*programs, fillvalue=Round()):
        yield Round(
            tuple(c for r in rounds for c in r.comm),
            tuple(s for r in rounds for s in r.then),
        )


def shift(program: Program, base: int) -> Program:
    """The program with every peer's number raised by base."""

    def move(c: Comm) -> Comm:
        if isinstance(c, Send):
            return replace(c, to=c.to + base)
        if isinstance(c, Recv):
            return replace(c, frm=c.frm + base)
        return replace(c, base=c.base + base)

    for r in program:
        yield Round(tuple(map(move, r.comm)), r.then)


def place(program: Program, where: Callable[[Span], Spans]) -> Program:
    """The program with the spans of its messages laid somewhere else."""

    def moved(c: Comm) -> Comm:
        if isinstance(c, Library):
            raise ValueError("the stage 'library' gathers into one buffer only")
        return replace(c, data=tuple(s for span in c.data for s in where(span)))

    for r in program:
        yield Round(tuple(map(moved, r.comm)), r.then)


def _lane(x: Any, i: int | None) -> Any:
    """Lane i of an index; an index without lanes stands for all."""
    if isinstance(x, np.ndarray):
        x = x[i]
    return x.item() if isinstance(x, np.generic) else x


def _span(span: Span, i: int | None) -> Span:
    return Span(span.buf, _lane(span.start, i), _lane(span.size, i))


def _comm(c: Comm, i: int | None) -> Comm | None:
    if isinstance(c, Library):
        return c if c.whole.size else None
    if not _lane(c.when, i):
        return None
    data = tuple(s for s in (_span(s, i) for s in c.data) if s.size)
    if not data:
        return None
    if isinstance(c, Send):
        return Send(_lane(c.to, i), data)
    return Recv(_lane(c.frm, i), data)


def _local(s: Local, i: int | None) -> Local | None:
    if not _lane(s.when, i):
        return None
    step = type(s)(_span(s.src, i), _span(s.dst, i))
    return step if step.dst.size else None


def trim(program: Iterable[Round], lane: int | None = None) -> Iterator[Round]:
    """One rank's rounds in plain ints, without what is empty or masked out."""
    for r in program:
        comm = tuple(c for c in (_comm(c, lane) for c in r.comm) if c is not None)
        local = tuple(s for s in (_local(s, lane) for s in r.then) if s is not None)
        if comm or local:
            yield Round(comm, local)


def reads(r: Round) -> Iterator[Span]:
    """The spans a round's messages are taken from."""
    for c in r.comm:
        if isinstance(c, Send):
            yield from c.data
        elif isinstance(c, Library):
            yield c.whole


def writes(r: Round) -> Iterator[Span]:
    """The spans a round's messages are put into."""
    for c in r.comm:
        if isinstance(c, Recv):
            yield from c.data


def touches(r: Round) -> Iterator[Span]:
    """Every span a round reads or writes."""
    yield from reads(r)
    yield from writes(r)
    for s in r.then:
        yield from (s.src, s.dst)


def extent(rounds: Iterable[Round], buf: str) -> int:
    """How many elements of a buffer the rounds need."""
    spans = (s for r in rounds for s in touches(r) if s.buf == buf)
    return max((s.start + s.size for s in spans), default=0)


@dataclass(frozen=True)
class Schedule:
    """What every rank does in one collective, built on demand."""

    collective: str
    algorithm: str
    n: int
    contract: Contract
    program: Callable[[int], Program] = field(repr=False)
    lanes: Callable[[], Iterator[tuple[range, Program]]] = field(repr=False)

    def rank(self, r: int) -> list[Round]:
        """The rounds of rank r, built for it alone."""
        return list(trim(self.program(r)))

    def all_ranks(self) -> list[list[Round]]:
        """The rounds of every rank, built for all of them at once."""
        return [
            list(trim(rounds, lane))
            for ranks, program in self.lanes()
            for rounds in (list(program),)
            for lane in range(len(ranks))
        ]

    def verify(self) -> None:
        """Run all ranks on marked data; raise what is wrong, where, in which round."""
        from .verify import verify

        verify(self.all_ranks(), self.contract)
