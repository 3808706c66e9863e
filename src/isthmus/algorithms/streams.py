"""Streams: a pipeline of nodes between a root and the nodes of its leaves.

A flat pipeline must not pause, so it runs in the own memory of the ranks that drive it,
and "node" (see `nodes`) is only the way to and from the other ranks of their nodes: a
few rounds at a time, with a meeting after them.

The root and each node are a vertex of the flat algorithm, a broadcast in parts on a
circulant graph, or the same backwards. The parts take turns among the lanes of a node.
A part is received and sent on by the one rank of a node that drives its lane: while
this combines a part, or starts a message, the port of its node carries those of the
other lanes. The root, who drives all lanes alone, has no more messages than with one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import compress
from math import ceil

from ..ir import Copy, Index, Local, Program, Reduce, Round, Span, Spans
from ..layout import Shares
from ..program import (
    beside,
    lay,
    meanwhile,
    pad,
    plain,
    reads,
    renumber,
    scatter,
    then,
    writes,
)
from . import bcast
from .nodes import Team, pipeline
from .patterns import log2
from .reduce_mirrored import mirrored

#: rounds between two meetings, at the most
BETWEEN = 4
#: lanes, where nobody says: one is busy while the other carries a part
LANES = 2
#: chunks of `size` elements that there is room for in "node", as in a pipeline of flows
ROOM = 4


@dataclass(frozen=True)
class Shape:
    """The lanes and parts of a stream, and its rounds between two meetings."""

    lanes: int
    parts: int
    between: int


def parts_in(between: int, sums: bool) -> int:
    """The parts that pass through "node" for so many rounds, at the most: one arrives
    in a round; of a sum, up to two begin in each of the first rounds."""
    return min(2 * between, between + 2) if sums else between


def copies(ranks: int, sums: bool) -> int:
    """How often "node" has room for them: twice for what arrives, and for what every
    rank but the last brings; three times for the sum, to which the last one brings."""
    return 2 * (ranks - 1) + 3 if sums else 2


def stream_shape(
    m: float,
    vertices: int,
    ranks: int,
    startup: float,
    size: float,
    sums: bool,
    lanes: int = 0,
    n: int = 0,
) -> Shape:
    """The shape for m elements on nodes of up to so many ranks: the number of parts
    that is fastest, or more of them where "node" would have no room for a round."""
    room = ROOM * size / copies(ranks, sums)
    n = n or bcast.parts(vertices, ceil(m), startup)
    if m * parts_in(1, sums) > n * room:
        n = min(ceil(m * parts_in(1, sums) / room), max(ceil(m), 1))
    fits = (b for b in range(BETWEEN, 1, -1) if m * parts_in(b, sums) <= n * room)
    return Shape(lanes or min(LANES, ranks), n, next(fits, 1))


@dataclass(frozen=True)
class Vertex:
    """What a vertex does in each lane, step by step, and the parts that pass through
    "node" for each step, by lane; `room` elements at the most."""

    lanes: tuple[list[list[Round]], ...]
    spans: list[list[tuple[int, Span]]]

    @cached_property
    def room(self) -> int:
        """The elements that pass for a step, at the most."""
        return max(sum(int(s.size) for _, s in spans) for spans in self.spans)


@lru_cache(maxsize=64)
def vertex(vertices: int, v: int, m: int, shape: Shape, sums: bool) -> Vertex:
    """Vertex v of so many, for m elements: the same for all ranks of its node."""
    pieces, count = Shares(shape.parts, m), shape.parts - 1 + log2(vertices)

    def lane(s: Span) -> int:
        return int(pieces.find(s.start)) % shape.lanes

    def steps(program: Program) -> list[list[Round]]:
        # backwards, an empty round may end it
        rounds, n = plain(pad(program, count))[:count], shape.between
        return [rounds[t : t + n] for t in range(0, count, n)] or [[]]

    forth = plain(bcast.circulant(vertices, v, m, 0, shape.parts))
    lanes = []
    for k in range(shape.lanes):
        mine: Program = iter([_only(x, lane, k) for x in forth])
        if sums:
            room = int(pieces.size(0))
            mine = mirrored(mine, pieces, v == 0, v > 0, room)
            mine = _postponed(plain(mine), room)
        lanes.append(steps(mine))
    every = [list(beside(*map(iter, x))) for x in zip(*lanes, strict=True)]
    if sums:
        spans = _first_reads(every) if v else [[] for _ in every]
    else:
        spans = [[s for x in rounds for s in writes(x)] for rounds in every]
    return Vertex(tuple(lanes), [[(lane(s), s) for s in x] for x in spans])


def _only(r: Round, lane: Callable[[Span], int], k: int) -> Round:
    """A round with the messages of lane k alone."""
    own = (
        all(lane(s) == k for s in (*reads(Round((c,))), *writes(Round((c,)))))
        for c in r.comm
    )
    return Round(tuple(compress(r.comm, own)))


def _postponed(rounds: list[Round], room: int) -> Program:
    """Rounds in which what arrived in the one before is combined, beside the messages,
    unless these carry it; so two rooms for what arrives take turns."""
    waiting: tuple[Local, ...] = ()
    found: list[Round] = []
    for t, x in enumerate(rounds):
        (moved,) = scatter(iter([x]), {"tmp": partial(_turned, room, t % 2)})
        now = Round(moved.comm, waiting)
        if found and meanwhile(now)[1]:
            found[-1] = Round(found[-1].comm, found[-1].then + waiting)
            now = Round(moved.comm)
        found.append(now)
        waiting = moved.then
    if waiting:
        found[-1] = Round(found[-1].comm, found[-1].then + waiting)
    return iter(found)


def _turned(room: int, turn: int, s: Span) -> Spans:
    """A span of "tmp" if there are two rooms before what grows there."""
    return (Span(s.buf, s.start + room * (turn or s.start >= room), s.size),)


def _first_reads(steps: list[list[Round]]) -> list[list[Span]]:
    """The spans of "send" that are read in each step, and in none before it."""
    seen: set[Span] = set()
    found = []
    for rounds in steps:
        every = [
            s
            for x in rounds
            for s in (*reads(x), *(step.src for step in x.then))
            if s.buf == "send"
        ]
        found.append([s for s in dict.fromkeys(every) if s not in seen])
        seen |= set(every)
    return found


@dataclass(frozen=True)
class Stream:
    """A vector of m elements between a root, vertex 0, and its leaves: vertex x + 1 is
    vertex x of theirs."""

    root: int
    leaves: Team
    m: int
    shape: Shape

    def where(self, r: int) -> tuple[int, int, int]:
        """The vertex of a rank, its index there, and how many there are."""
        if r == self.root:
            return 0, 0, 1
        x, i = self.leaves.places[r]
        return x + 1, i, len(self.leaves.ranks[x])

    def vertex(self, v: int, sums: bool) -> Vertex:
        """What a vertex does."""
        return vertex(self.leaves.n + 1, v, self.m, self.shape, sums)

    def driven(self, of: Vertex, mine: range, t: int) -> Program:
        """Step t of some lanes."""

        def number(k: int, x: Index) -> int:
            return self.leaves.driver(int(x) - 1, k) if x else self.root

        every = (renumber(iter(of.lanes[k][t]), partial(number, k)) for k in mine)
        return beside(*every)

    def down(self, r: int) -> Program:
        """From the root's "recv" to the "recv" of all leaves."""
        v, i, n = self.where(r)
        of, mine = self.vertex(v, sums=False), range(i, self.shape.lanes, n)

        def passes(t: int) -> Iterator[tuple[bool, Span, Span]]:
            """What came in step t, whether to this rank, and where in "node" it is."""
            at = t % 2 * of.room
            for k, s in of.spans[t] if n > 1 else ():
                yield k in mine, s, Span("node", at, s.size)
                at += s.size

        def receive(t: int) -> Program:
            return self.driven(of, mine, t)

        def put(t: int) -> Program:
            steps = (Copy(own, near) for here, own, near in passes(t) if here)
            yield Round(then=tuple(steps))

        def take(t: int) -> Program:
            steps = (Copy(near, own) for here, own, near in passes(t) if not here)
            yield Round(then=tuple(steps))

        if len(of.spans) > 1:
            return pipeline([receive, put, take], len(of.spans))
        return pipeline([lambda t: then(receive(t), put(t)), take], 1)

    def up(self, r: int) -> Program:
        """From the "send" of all leaves, combined, to the root's "recv"."""
        v, i, n = self.where(r)
        of, mine = self.vertex(v, sums=True), range(i, self.shape.lanes, n)
        # the sums of a node lie in "tmp" of who drives their lane, before what it uses
        where = {"send": ("tmp", 0), "tmp": ("tmp", self.m)} if n > 1 else {}

        def slot(t: int, j: int) -> int:
            """Where rank j brings what is for step t: the last one to the sum's."""
            if j == n - 1:
                return t % 3 * of.room
            return (3 + t % 2 * (n - 1) + j) * of.room

        def passes(t: int) -> Iterator[tuple[int, Span, int]]:
            """What is for step t, by lane, and where in a slot it is."""
            at = 0
            for k, s in of.spans[t] if n > 1 else ():
                yield k, s, at
                at += s.size

        def bring(t: int) -> Program:
            low = slot(t, i)
            steps = (Copy(s, Span("node", low + at, s.size)) for _, s, at in passes(t))
            yield Round(then=tuple(steps))

        def combine(t: int) -> Program:
            share = Shares(n, sum(s.size for _, s, _ in passes(t)), "node")[i][0]
            *others, total = (
                Span("node", slot(t, j) + int(share.start), int(share.size))
                for j in range(n)
            )
            yield Round(then=tuple(Reduce(x, total) for x in reversed(others)))

        def fetch(t: int) -> Program:
            low = slot(t, n - 1)
            steps = (
                Copy(Span("node", low + at, s.size), Span("tmp", s.start, s.size))
                for k, s, at in passes(t)
                if k in mine
            )
            yield Round(then=tuple(steps))

        def send(t: int) -> Program:
            return lay(self.driven(of, mine, t), where)

        if len(of.spans) > 1:
            return pipeline([bring, combine, fetch, send], len(of.spans))
        return pipeline([bring, combine, lambda t: then(fetch(t), send(t))], 1)
