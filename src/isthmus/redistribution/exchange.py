"""One rank's part in a redistribution, and its rounds in the form."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from ..algorithms.allgatherv_node_ring import node_ring
from ..algorithms.parts.stages import stage_by_size, stage_for
from ..algorithms.parts.turns import piece_size
from ..schedules.ir import (
    Comm,
    Copy,
    Library,
    Local,
    Pieces,
    Recv,
    Reduce,
    Round,
    Send,
    Span,
    Steps,
)
from ..schedules.layout import Shares
from ..schedules.program import renumber, trim
from .layouts import Layout
from .messages import Message, incoming, outgoing, spread_to
from .order import Turn, shifted
from .runs import joined, some_of, spread

_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Exchange:
    """What a rank sends and receives; peers by their numbers."""

    number: int
    #: the number of all ranks
    n: int
    sends: tuple[Message, ...] = ()
    receives: tuple[Message, ...] = ()
    #: the elements of its target array
    wanted: int = 0
    #: replicas that gather shares of the target, its place among them, the shares
    replicas: tuple[list[int], int, Shares] | None = None
    #: elements that it wants twice: where they are, and where they belong too
    repeats: tuple[np.ndarray, np.ndarray] = (_NONE, _NONE)
    #: whether every source of an element counts
    every: bool = False

    @property
    def table(self) -> list[tuple[int, int, int]]:
        """The messages it sends to others: from, to, elements."""
        others = (m for m in self.sends if m.peer != self.number)
        return [(self.number, m.peer, m.total) for m in others]


def numbered(messages: Iterable[Message], base: int) -> tuple[Message, ...]:
    """Messages with peers by their numbers, of a group that begins at `base`."""
    return tuple(replace(m, peer=m.peer + base) for m in messages)


def regular(
    number: int,
    n: int,
    flows: Sequence[tuple[Layout, int, Layout, int]],
    same: bool,
    every: bool,
) -> Exchange:
    """A rank's part between layouts that are the same on every rank: from one layout,
    on ranks from a number on, to another on ranks from a number on."""
    found = Exchange(number, n, every=every)
    for source, s, target, t in flows:
        if 0 <= (i := number - s) < source.ranks:
            sent = outgoing(source, target, i, same, every)
            found = replace(found, sends=numbered(sent, t))
        if 0 <= (j := number - t) < target.ranks:
            got = incoming(source, target, j, same, every)
            found = received(found, target, j, numbered(got, s), t)
    return found


def received(
    x: Exchange, layout: Layout, rank: int, messages: tuple[Message, ...], base: int
) -> Exchange:
    """A rank's part with what it receives; its group begins at a number."""
    return replace(
        x,
        receives=messages,
        wanted=prod(layout.local_shape(rank if layout.is_regular else None)),
        replicas=spread_to(layout, rank, base),
        repeats=layout.repeats,
    )


def _part(m: Message, buf: str, low: int, high: int) -> Pieces:
    """Some elements of a message, in the local array."""
    start, size = some_of(m.start, m.size, low, high)
    size, start = joined(size, [start])
    return Pieces(buf, start, size)


def _tmp(x: Exchange) -> dict[int, int]:
    """Where the messages of each peer are put that are to be combined."""
    at, found = 0, {}
    for m in x.receives:
        if m.peer != x.number:
            found[m.peer] = at
            at += m.total
    return found


def _ordered(x: Exchange, every: Sequence[Turn] | None) -> Iterator[Turn]:
    """The turns of a rank, of all or by a shift."""
    if every is not None:
        yield from (t for t in every if x.number in (t.source, t.target))
        return
    for m in x.sends:
        if m.peer != x.number:
            turn = shifted(x.number, m.peer, x.n)
            yield Turn(turn, x.number, m.peer, 0, m.total)
    for m in x.receives:
        if m.peer != x.number:
            turn = shifted(m.peer, x.number, x.n)
            yield Turn(turn, m.peer, x.number, 0, m.total)


def crossing(x: Exchange, every: Sequence[Turn] | None = None) -> list[Round]:
    """The rounds in which elements go from sources to targets: all messages in their
    order, then what is copied or combined."""
    sends = {m.peer: m for m in x.sends}
    receives = {m.peer: m for m in x.receives}
    tmp = _tmp(x)
    out, into = list[Send](), list[Recv]()
    for t in sorted(_ordered(x, every), key=lambda t: t.turn):
        if t.source == x.number:
            out.append(Send(t.target, _part(sends[t.target], "send", t.low, t.high)))
        elif x.every:
            at = np.array([tmp[t.source] + t.low])
            data = Pieces("tmp", at, np.array([t.high - t.low]))
            into.append(Recv(t.source, data))
        else:
            data = _part(receives[t.source], "recv", t.low, t.high)
            into.append(Recv(t.source, data))
    comm: tuple[Comm, ...] = (*into, *out)
    if x.every:
        found = [Round(comm), *_combined(x, tmp)]
    else:
        found = [Round(comm, _own(x))]
    return [r for r in found if r.comm or r.then]


def spreading(
    x: Exchange, unit: int = 1, nodes: Sequence[Hashable] = ()
) -> list[Round]:
    """The rounds after that: replicas gather their shares, and what is wanted twice is
    copied. `unit` is the bytes of an element, `nodes` has the node of every rank: of
    long shares, none enters a node twice."""
    program: list[Round] = []
    if x.replicas is not None:
        ranks, index, shares = x.replicas
        n, most = len(ranks), max(piece_size() // max(unit, 1), 1)
        own = [nodes[r] for r in ranks] if nodes else ranks
        is_long = stage_for(n, shares.total * unit) == "ring"
        if is_long and 1 < len(set(own)) < n:
            stage = node_ring(n, index, shares, own, "fixed", most)
        else:
            stage = stage_by_size(unit)(n, index, shares)
        whole = renumber(stage, lambda i: ranks[i])
        program += (x for r in whole for x in _in_pieces(r, most))
    return trim([*program, Round((), _steps(Copy, "recv", *x.repeats))])


def _in_pieces(r: Round, most: int) -> Iterator[Round]:
    """A round in which a rank sends one span and receives one, in several of so many
    elements at most: the next piece goes when the other's has come (see `turns`)."""
    ends = [c for c in r.comm if not isinstance(c, Library) and len(c.data) == 1]
    longest = max((span.size for c in ends for span in c.data), default=0)
    if len(ends) != len(r.comm) or len(ends) > 2 or longest <= most:
        yield r
        return
    for low in range(0, longest, most):
        some: list[Comm] = []
        for c in ends:
            (span,) = c.data
            size = min(span.size - low, most)
            if size > 0:
                data = (Span(span.buf, span.start + low, size),)
                some.append(replace(c, data=data))
        last = low + most >= longest
        yield Round(tuple(some), r.then if last else (), r.meet and last)


def rounds(
    x: Exchange, every: Sequence[Turn] | None = None, nodes: Sequence[Hashable] = ()
) -> list[Round]:
    """All rounds of a rank."""
    return [*crossing(x, every), *spreading(x, nodes=nodes)]


def _steps(
    kind: type[Local],
    buf: str,
    start: np.ndarray,
    at: np.ndarray,
    size: np.ndarray | None = None,
) -> Steps:
    """Steps from runs of a buffer, or single elements, to others of the target."""
    n = np.ones(len(start), np.int64) if size is None else size
    n, start, at = joined(n, [start, at])
    return Steps(kind, Pieces(buf, start, n), Pieces("recv", at, n))


def _own(x: Exchange) -> Sequence[Local]:
    """What a rank takes from itself; the two ends may be cut in other places."""
    sent, got = (
        next((m for m in some if m.peer == x.number), None)
        for some in (x.sends, x.receives)
    )
    if sent is None or got is None:
        return ()
    ends = [np.cumsum(m.size) for m in (sent, got)]
    edges = np.sort(np.concatenate(ends), kind="stable")  # these are two sorted parts
    edges = edges[np.diff(edges, prepend=0) > 0]
    low = np.concatenate(([0], edges[:-1]))
    source, target = (
        m.start[k] + low - before[k]
        for m in (sent, got)
        for before in (np.cumsum(m.size) - m.size,)
        for k in (np.searchsorted(before, low, side="right") - 1,)
    )
    return _steps(Copy, "send", source, target, edges - low)


def _combined(x: Exchange, tmp: dict[int, int]) -> Iterator[Round]:
    """What came from each, from the last rank to the first: the first one to write an
    element is copied, the others are combined with it from the left."""
    seen = np.zeros(x.wanted, bool)
    own = {m.peer: m for m in x.sends}
    for m in sorted(x.receives, key=lambda m: -m.peer):
        at = spread(m.start, m.size)
        if m.peer == x.number:
            buf, frm = "send", spread(own[m.peer].start, own[m.peer].size)
        else:
            buf, frm = "tmp", tmp[m.peer] + np.arange(len(at))
        again = seen[at]
        seen[at] = True
        yield Round((), _steps(Copy, buf, frm[~again], at[~again]))
        yield Round((), _steps(Reduce, buf, frm[again], at[again]))
