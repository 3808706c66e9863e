"""Programs of a rank: composing several into one, reading rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, repeat, zip_longest
from typing import Any

import numpy as np

from .ir import (
    Comm,
    Copy,
    Data,
    Index,
    Library,
    Local,
    Mask,
    Pieces,
    Program,
    Recv,
    Reduce,
    Round,
    Send,
    Span,
    Spans,
    Steps,
    is_signal,
)


def then(*programs: Program) -> Program:
    """The rounds of all programs in sequence."""
    return chain(*programs)


def merge_rounds(*programs: Program) -> Program:
    """Programs in parallel: round k of all in a common round."""
    for rounds in zip_longest(*programs, fillvalue=Round()):
        yield Round(
            tuple(c for r in rounds for c in r.comm),
            tuple(s for r in rounds for s in r.then),
            any(r.meet for r in rounds),
        )


def fused(*programs: Program) -> Program:
    """Programs in parallel, with a single message to each peer in a round.

    Messages are joined in rounds where all programs have equal peers.
    """
    for rounds in zip_longest(*programs, fillvalue=Round()):
        columns = list(zip_longest(*(r.comm for r in rounds)))
        comm = [c for r in rounds for c in r.comm]
        if all(map(_have_one_peer, columns)):
            comm = [_joined(column) for column in columns]
        steps = tuple(s for r in rounds for s in r.then)
        yield Round(tuple(comm), steps, any(r.meet for r in rounds))


def _have_one_peer(column: tuple[Comm | None, ...]) -> bool:
    """Whether messages are all sends or all receives, with a common peer."""
    first = column[0]
    if isinstance(first, Send):
        return all(isinstance(c, Send) and _are_equal(c.to, first.to) for c in column)
    if isinstance(first, Recv):
        return all(isinstance(c, Recv) and _are_equal(c.frm, first.frm) for c in column)
    return False


def _are_equal(x: Index, y: Index) -> bool:
    return bool(np.array_equal(x, y))


def _joined(column: tuple[Any, ...]) -> Comm:
    """A message with the data of several; a masked message adds empty spans."""
    data = tuple(Span(s.buf, s.start, s.size * c.when) for c in column for s in c.data)
    return replace(column[0], data=data, when=True)  # type: ignore[no-any-return]


def apart(*programs: Program) -> Program:
    """Programs in parallel, with disjoint parts of "tmp".

    Programs must not share scratch, since within a round no element is written twice.
    """
    if len(programs) == 1:
        return programs[0]
    scratch_end, laid_out = 0, []
    for program in programs:
        rounds = list(
            lay(program, {"tmp": ("tmp", scratch_end)}) if scratch_end else program
        )
        scratch_end = max(scratch_end, buffer_size(rounds, "tmp"))
        laid_out.append(iter(rounds))
    return merge_rounds(*laid_out)


def pad(program: Program, n: int) -> Program:
    """The program with empty rounds at the end, n rounds in all."""
    for r in program:
        yield r
        n -= 1
    yield from (Round() for _ in range(n))


def delayed(program: Iterable[Round], n: int) -> Program:
    """The program after n empty rounds."""
    return chain(repeat(Round(), n), program)


def shift(program: Program, base: int) -> Program:
    """The program with every peer's number raised by base."""

    def move(c: Comm) -> Comm:
        if isinstance(c, Send):
            return Send(c.to + base, c.data, c.when)
        if isinstance(c, Recv):
            return Recv(c.frm + base, c.data, c.when)
        return replace(c, base=c.base + base)

    for r in program:
        yield Round(tuple(map(move, r.comm)), r.then, r.meet)


def renumber(program: Program, number: Callable[[Index], Index]) -> Program:
    """The program with every peer's number changed by a function."""

    def move(c: Comm) -> Comm:
        if isinstance(c, Library):
            raise ValueError("the stage 'library' keeps the ranks of its group")
        if isinstance(c, Send):
            return Send(number(c.to), c.data, c.when)
        return Recv(number(c.frm), c.data, c.when)

    for r in program:
        yield Round(tuple(map(move, r.comm)), r.then, r.meet)


_SWAPPED_BUFFER = {"send": "recv", "recv": "send"}


def backwards(program: Program, swap: bool = True) -> Program:
    """The program in reverse: sends become receives, copies go back.

    With `swap`, "send" and "recv" change places, since the reverse of a gather is a
    scatter, whose root sends from "send" the blocks that a gather puts into "recv".
    """

    def swapped(span: Span) -> Span:
        if not swap:
            return span
        return replace(span, buf=_SWAPPED_BUFFER.get(span.buf, span.buf))

    def reverse(c: Comm) -> Comm:
        if isinstance(c, Library):
            raise ValueError("the stage 'library' has no reverse")
        data = tuple(map(swapped, c.data))
        if isinstance(c, Send):
            return Recv(c.to, data, c.when)
        return Send(c.frm, data, c.when)

    rounds = [Round(), *program]
    if any(r.meet for r in rounds):
        raise ValueError("a meeting has no reverse")
    if rounds[-1].then:
        rounds.append(Round())
    for before, r in zip(rounds[-2::-1], rounds[:0:-1], strict=True):
        steps = (_reverse_copy(s, swapped) for s in reversed(before.then))
        yield Round(tuple(map(reverse, r.comm)), tuple(steps))


def _reverse_copy(s: Local, swapped: Callable[[Span], Span]) -> Copy:
    if isinstance(s, Reduce):
        raise ValueError("a reduction has no reverse")
    return Copy(swapped(s.dst), swapped(s.src), s.when)


def map_spans(program: Program, where: Callable[[Span], Spans]) -> Program:
    """The program with the spans of its messages mapped by a function."""

    def moved(c: Comm) -> Comm:
        if isinstance(c, Library):
            raise ValueError("the stage 'library' gathers into one buffer only")
        data = tuple([s for span in c.data for s in where(span)])
        if isinstance(c, Send):
            return Send(c.to, data, c.when)
        return Recv(c.frm, data, c.when)

    for r in program:
        yield Round(tuple(map(moved, r.comm)), r.then, r.meet) if r.comm else r


def masked(program: Program, when: Mask) -> Program:
    """The program of the ranks of a mask; no messages and no steps elsewhere."""

    def message(c: Comm) -> Comm:
        if isinstance(c, Library):
            raise ValueError("the stage 'library' is for all ranks of its group")
        return replace(c, when=c.when & when)

    for r in program:
        steps = (replace(s, when=s.when & when) for s in r.then)
        yield Round(tuple(map(message, r.comm)), tuple(steps), r.meet)


def lay(program: Program, where: Mapping[str, tuple[str, Index]]) -> Program:
    """The program with buffers laid into larger buffers.

    `where` has, by buffer, the larger buffer and the element at which to begin.
    """

    def moved(span: Span) -> Span:
        buf, start = where.get(span.buf, (span.buf, 0))
        return Span(buf, span.start + start, span.size)

    for r in map_spans(program, lambda span: (moved(span),)):
        steps = [type(s)(moved(s.src), moved(s.dst), s.when) for s in r.then]
        yield Round(r.comm, tuple(steps), r.meet)


def _matched(src: Spans, dst: Spans) -> Iterator[tuple[Span, Span]]:
    """The spans of two places, cut into pairs of equal size."""
    left, right = list(reversed(src)), list(reversed(dst))
    while left and right:
        x, y = left.pop(), right.pop()
        n = min(x.size, y.size)
        yield Span(x.buf, x.start, n), Span(y.buf, y.start, n)
        if x.size > n:
            left.append(Span(x.buf, x.start + n, x.size - n))
        if y.size > n:
            right.append(Span(y.buf, y.start + n, y.size - n))


def map_buffers(
    program: Program, where: Mapping[str, Callable[[Span], Spans]]
) -> Program:
    """The plain rounds of a rank, with every buffer in several places.

    A local step becomes several, because the places of its source and of its target may
    be cut differently.
    """

    def moved(span: Span) -> Spans:
        return where[span.buf](span) if span.buf in where else (span,)

    for r in map_spans(iter(plain(program)), moved):
        steps = (
            type(s)(src, dst)
            for s in r.then
            for src, dst in _matched(moved(s.src), moved(s.dst))
        )
        yield Round(r.comm, tuple(steps), r.meet)


def _column(x: Any, n: int) -> list[Any]:
    """The values of an index of n ranks, as plain ints or bools."""
    if isinstance(x, np.ndarray):
        return x.tolist()  # type: ignore[no-any-return]
    return [x.item() if isinstance(x, np.generic) else x] * n


def _spans(span: Span, n: int) -> list[Span]:
    starts, sizes = _column(span.start, n), _column(span.size, n)
    return [
        Span(span.buf, start, size) for start, size in zip(starts, sizes, strict=True)
    ]


def _nonempty_pieces(data: Pieces) -> Pieces:
    """The pieces of a rank, without empty pieces."""
    has_elements = data.size > 0
    return (
        data
        if has_elements.all()
        else Pieces(data.buf, data.start[has_elements], data.size[has_elements])
    )


def _messages(c: Comm, n: int) -> list[Comm | None]:
    """A message of each rank; None where masked out or without elements."""
    if isinstance(c, Library):
        return [c if c.whole.size else None] * n
    kind, peers = (Send, c.to) if isinstance(c, Send) else (Recv, c.frm)
    if is_signal(c.data):
        ends = zip(_column(peers, n), _column(c.when, n), strict=True)
        return [kind(peer, ()) if when else None for peer, when in ends]
    if isinstance(c.data, Pieces) and c.data.start.ndim == 1:
        nonempty_pieces = _nonempty_pieces(c.data)
        return [
            kind(int(peers), nonempty_pieces)
            if c.when and len(nonempty_pieces)
            else None
        ]
    spans = zip(*(_spans(s, n) for s in c.data), strict=True)
    messages: list[Comm | None] = []
    for peer, data, when in zip(
        _column(peers, n), spans, _column(c.when, n), strict=True
    ):
        nonempty = tuple(s for s in data if s.size) if when else ()
        messages.append(kind(peer, nonempty) if nonempty else None)
    return messages


def _steps(s: Local, n: int) -> list[Local | None]:
    """A local step of each rank; None where masked out or without elements."""
    steps = zip(_spans(s.src, n), _spans(s.dst, n), _column(s.when, n), strict=True)
    return [
        type(s)(src, dst) if when and dst.size else None for src, dst, when in steps
    ]


def per_rank(program: Iterable[Round], n: int) -> list[list[Round]]:
    """The rounds of each of n ranks, in plain ints, without empty messages."""
    ranks: list[list[Round]] = [[] for _ in range(n)]
    for r in program:
        comm = list(zip(*(_messages(c, n) for c in r.comm), strict=True)) or [()] * n
        then = list(zip(*(_steps(s, n) for s in r.then), strict=True)) or [()] * n
        for rounds, messages, steps in zip(ranks, comm, then, strict=True):
            round_of_rank = Round(
                tuple(c for c in messages if c is not None),
                tuple(s for s in steps if s is not None),
                r.meet,
            )
            if round_of_rank.comm or round_of_rank.then or round_of_rank.meet:
                rounds.append(round_of_rank)
    return ranks


def _is_plain(s: Span) -> bool:
    return type(s.start) is type(s.size) is int


def _message(c: Comm) -> Comm | None:
    """A rank's message without empty spans; None if no element is left.

    Plain messages are not copied, because most are plain and every message of a plan
    comes through this function.
    """
    if isinstance(c, Library) or isinstance(c.data, Pieces) or not c.data:
        return _messages(c, 1)[0]
    peer = c.to if isinstance(c, Send) else c.frm
    if not (type(peer) is int and type(c.when) is bool and all(map(_is_plain, c.data))):
        return _messages(c, 1)[0]
    if not c.when:
        return None
    if all(s.size for s in c.data):
        return c
    nonempty = tuple([s for s in c.data if s.size])
    return type(c)(peer, nonempty) if nonempty else None


def _step(s: Local) -> Local | None:
    """A rank's local step, not copied if plain; None if masked out or empty."""
    if not (type(s.when) is bool and _is_plain(s.src) and _is_plain(s.dst)):
        return _steps(s, 1)[0]
    return s if s.when and s.dst.size else None


def plain(program: Iterable[Round]) -> list[Round]:
    """A rank's rounds in plain ints, without empty and masked messages and steps."""
    rounds = []
    for r in program:
        comm = tuple([c for c in map(_message, r.comm) if c is not None])
        then: Sequence[Local] = r.then
        if not isinstance(then, Steps):
            then = tuple([s for s in map(_step, then) if s is not None])
        rounds.append(Round(comm, then, r.meet))
    return rounds


def trim(program: Iterable[Round]) -> list[Round]:
    """A rank's rounds in plain ints, without empty rounds, messages and steps."""
    return [r for r in plain(program) if r.comm or r.then or r.meet]


def reads(r: Round) -> Iterator[Span]:
    """The spans read by a round's messages."""
    for c in r.comm:
        if isinstance(c, Send):
            yield from c.data
        elif isinstance(c, Library):
            yield c.whole


def writes(r: Round) -> Iterator[Span]:
    """The spans written by a round's messages."""
    for c in r.comm:
        if isinstance(c, Recv):
            yield from c.data


def _meet(x: Span, y: Span) -> bool:
    """Whether two spans have an element in common."""
    apart = x.start + x.size <= y.start or y.start + y.size <= x.start
    return x.buf == y.buf and not apart


def meanwhile(r: Round) -> tuple[Sequence[Local], Sequence[Local]]:
    """The local steps to do while a round's messages are in flight; the steps after.

    A step waits if a message, or a waiting step before, writes an element that the step
    touches, or reads an element that the step writes: otherwise the result would depend
    on when messages arrive.
    """
    if not r.comm:
        return r.then, ()
    if any(isinstance(c, Library) for c in r.comm):
        return (), r.then
    read, written = [*reads(r)], [*writes(r)]
    early: list[Local] = []
    late: list[Local] = []
    for s in r.then:
        touches_written = any(_meet(s.src, x) or _meet(s.dst, x) for x in written)
        if touches_written or any(_meet(s.dst, x) for x in read):
            late.append(s)
            read.append(s.src)
            written.append(s.dst)
        else:
            early.append(s)
    return tuple(early), tuple(late)


def data_of(r: Round) -> Iterator[Data]:
    """The spans of each message and each step of a round."""
    for c in r.comm:
        yield (c.whole,) if isinstance(c, Library) else c.data
    if isinstance(r.then, Steps):
        yield from (r.then.src, r.then.dst)
        return
    for s in r.then:
        yield (s.src, s.dst)


def in_node(data: Data) -> bool:
    """Whether data lie in the memory that the ranks of a node share."""
    if isinstance(data, Pieces):
        return data.buf == "node"
    return any(s.buf == "node" for s in data)


def buffer_size(rounds: Iterable[Round], buf: str) -> int:
    """The number of elements that a buffer must have for the rounds.

    Plain loops: every plan and every verification comes through here several times.
    """
    end = 0
    for r in rounds:
        for data in data_of(r):
            if isinstance(data, Pieces):
                if data.buf == buf:
                    end = max(end, int((data.start + data.size).max()))
                continue
            for s in data:
                if s.buf == buf and s.start + s.size > end:
                    end = s.start + s.size
    return end
