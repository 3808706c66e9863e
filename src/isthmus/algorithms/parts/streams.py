"""Streams: a pipeline of nodes between a root and the nodes of its leaves.

A flat pipeline must not pause, so "node" (see `nodes`) is only the way between the
ranks that drive it and the others of their nodes: a few rounds at a time, with a
meeting after them. What arrives of a broadcast is put there a step later, and taken
after that. Of a sum, the ranks bring a part and combine it in the steps before; there
it grows by what arrives, until it is sent.

The root and each node are a vertex of the flat algorithm, a broadcast in parts on a
circulant graph, or the same backwards. The parts take turns among the lanes of a node.
A part is received and sent on by the one rank of a node that drives its lane: while
this combines a part, or starts a message, the port of its node carries those of the
other lanes. The root, who drives all lanes alone, has no more messages than with one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from heapq import heappop, heappush
from itertools import compress
from math import ceil

from ...schedules.ir import (
    Copy,
    Index,
    Library,
    Local,
    Program,
    Recv,
    Reduce,
    Round,
    Send,
    Span,
    Spans,
)
from ...schedules.layout import Shares, cut
from ...schedules.program import (
    lay,
    meanwhile,
    merge_rounds,
    pad,
    plain,
    reads,
    renumber,
    scatter,
    then,
    writes,
)
from .. import bcast
from .nodes import Team, pipeline
from .patterns import log2
from .reduce_mirrored import mirrored

#: rounds between two meetings, at the most
BETWEEN = 4
#: lanes, by default: one is busy while the other carries a part
LANES = 2
#: chunks of `size` elements that "node" can hold, as in a pipeline of flows
CHUNKS = 4


@dataclass(frozen=True)
class Shape:
    """The lanes and parts of a stream, and its rounds between two meetings."""

    lanes: int
    parts: int
    between: int

    @property
    def shared(self) -> bool:
        """Whether all ranks of a node combine what arrives, and meet once more in every
        round. Where only one round of them fits, parts are long, and it
        takes less than the driver alone would."""
        return self.between == 1


def parts_in(between: int, sums: bool) -> int:
    """The parts that pass through "node" for so many rounds, at the most: one arrives
    in a round; of a sum, up to two begin in each of the first rounds."""
    return min(2 * between, between + 2) if sums else between


def copies(ranks: int, sums: bool) -> int:
    """How often "node" holds them: twice for what arrives, and for what every
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
    that is fastest, or more of them where a round would not fit in "node"."""
    footprint = CHUNKS * size / copies(ranks, sums)
    n = n or bcast.parts(vertices, ceil(m), startup)
    if m * parts_in(1, sums) > n * footprint:
        n = min(ceil(m * parts_in(1, sums) / footprint), max(ceil(m), 1))
    fits = (b for b in range(BETWEEN, 1, -1) if m * parts_in(b, sums) <= n * footprint)
    return Shape(lanes or min(LANES, ranks), n, next(fits, 1))


@dataclass(frozen=True)
class Vertex:
    """What a vertex does in each lane, step by step, and the parts that pass through
    "node" for each step, by lane; `footprint` elements at the most.

    Of a sum, the part that begins at element j of the vector lies at `slots[j]` of
    "node", where it grows until it is sent; behind all of them, at `end`, is space for
    two parts that arrive.
    """

    lanes: tuple[list[list[Round]], ...]
    spans: list[list[tuple[int, Span]]]
    slots: dict[int, int]
    end: int

    @cached_property
    def footprint(self) -> int:
        """The elements that pass for a step, at the most."""
        return max(sum(int(s.size) for _, s in spans) for spans in self.spans)

    @cached_property
    def arriving(self) -> list[list[tuple[Span, bool]]]:
        """The sums that grow by what arrives in each step but the last, and whether the
        next one sends them."""
        steps = list(zip(*self.lanes, strict=True))
        sent = [{s for x in now for y in x for s in reads(y)} for now in steps]
        grow = [[s.dst for x in now for y in x for s in y.then] for now in steps]
        return [
            [(total, total in after) for total in now]
            for now, after in zip(grow, sent[1:], strict=False)
        ]


@lru_cache(maxsize=64)
def vertex(vertices: int, v: int, m: int, shape: Shape, sums: bool) -> Vertex:
    """Vertex v of so many, for m elements: the same for all ranks of its node."""
    pieces, count = Shares(shape.parts, m), shape.parts - 1 + log2(vertices)
    most, n = int(pieces.size(0)), shape.between

    def lane(s: Span) -> int:
        return int(pieces.find(s.start)) % shape.lanes

    def steps(program: Program) -> list[list[Round]]:
        # backwards, an empty round may end it
        rounds = plain(pad(program, count))[:count]
        return [rounds[t : t + n] for t in range(0, count, n)] or [[]]

    forth = plain(bcast.circulant(vertices, v, m, 0, shape.parts))
    used: list[dict[int, Span]] = [{} for _ in range(0, max(count, 1), n)]
    for t, x in enumerate(reversed(forth)):
        # with what arrives the node's sum is combined after the round, if all do so
        for late, spans in ((0, writes(x)), (shape.shared, reads(x))):
            used[min((t + late) // n, len(used) - 1)] |= {s.start: s for s in spans}
    slots = _slots(used, most) if sums and v else {}
    lanes = []
    for k in range(shape.lanes):
        mine: Program = iter([_only(x, lane, k) for x in forth])
        if sums:
            mine = (
                _growing(list(mine), slots)
                if v
                else mirrored(mine, pieces, True, False, most)
            )
            if not shape.shared:
                mine = _postponed(plain(mine), most)
        lanes.append(steps(mine))
    if not sums:
        every = (merge_rounds(*map(iter, x)) for x in zip(*lanes, strict=True))
        passing = [[s for x in rounds for s in writes(x)] for rounds in every]
    else:
        passing = _first_used(used) if v else [[] for _ in used]
    end = max(slots.values(), default=-most) + most
    by_lane = [[(lane(s), s) for s in x] for x in passing]
    return Vertex(tuple(lanes), by_lane, slots, end)


def _first_used(used: list[dict[int, Span]]) -> list[list[Span]]:
    """The spans of "send" of the parts that are used in each step, and in none before
    it."""
    seen: set[int] = set()
    found = []
    for parts in used:
        new = (s for j, s in parts.items() if j not in seen)
        found.append([Span("send", s.start, s.size) for s in new])
        seen |= parts.keys()
    return found


def _slots(used: list[dict[int, Span]], size: int) -> dict[int, int]:
    """Where the parts are that are used in each step, each from two steps before its
    first one, when it is brought, to its last: who comes takes what is free."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for t, parts in enumerate(used):
        for j in parts:
            first.setdefault(j, t)
            last[j] = t
    found: dict[int, int] = {}
    taken: list[tuple[int, int]] = []  # until when, and which
    free: list[int] = []
    for j in sorted(first, key=first.__getitem__):
        while taken and taken[0][0] < first[j] - 2:
            heappush(free, heappop(taken)[1])
        found[j] = heappop(free) if free else len(taken) * size
        heappush(taken, (last[j], found[j]))
    return found


def _growing(forth: list[Round], slots: dict[int, int]) -> Program:
    """A broadcast backwards, in which parts grow in "node": what arrives is combined
    with what is there."""
    for x in reversed(forth):
        comm: list[Send | Recv] = []
        steps: list[Reduce] = []
        for c in x.comm:
            assert not isinstance(c, Library)
            (s,) = c.data
            here, came = Span("node", slots[s.start], s.size), Span("tmp", 0, s.size)
            if isinstance(c, Recv):
                comm.append(Send(c.frm, (here,)))
            else:
                comm.append(Recv(c.to, (came,)))
                steps.append(Reduce(came, here))
        yield Round(tuple(comm), tuple(steps))


def _only(r: Round, lane: Callable[[Span], int], k: int) -> Round:
    """A round with the messages of lane k alone."""
    own = (
        all(lane(s) == k for s in (*reads(Round((c,))), *writes(Round((c,)))))
        for c in r.comm
    )
    return Round(tuple(compress(r.comm, own)))


def _postponed(rounds: list[Round], footprint: int) -> Program:
    """Rounds in which what arrived in the one before is combined, beside the messages,
    unless these carry it; so two buffers for what arrives take turns."""
    waiting: Sequence[Local] = ()
    found: list[Round] = []
    for t, x in enumerate(rounds):
        (moved,) = scatter(iter([x]), {"tmp": partial(_turned, footprint, t % 2)})
        now = Round(moved.comm, waiting)
        if found and meanwhile(now)[1]:
            found[-1] = Round(found[-1].comm, (*found[-1].then, *waiting))
            now = Round(moved.comm)
        found.append(now)
        waiting = moved.then
    if waiting:
        found[-1] = Round(found[-1].comm, (*found[-1].then, *waiting))
    return iter(found)


def _turned(footprint: int, turn: int, s: Span) -> Spans:
    """A span of "tmp", of which two halves take turns."""
    return (Span(s.buf, s.start + footprint * turn, s.size),)


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
        return merge_rounds(*every)

    def down(self, r: int) -> Program:
        """From the root's "recv" to the "recv" of all leaves."""
        v, i, n = self.where(r)
        of, mine = self.vertex(v, sums=False), range(i, self.shape.lanes, n)

        def passes(t: int) -> Iterator[tuple[bool, Span, Span]]:
            """What came in step t, whether to this rank, and where in "node" it is."""
            at = t % 2 * of.footprint
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
        most = int(Shares(self.shape.parts, self.m).size(0))

        def passes(t: int) -> Iterator[tuple[Span, range]]:
            """What is for step t, and where in "node" each rank but the last brings it:
            that one brings it to where it grows."""
            at = of.end + 2 * most + t % 2 * (n - 1) * of.footprint
            for _, s in of.spans[t]:
                yield s, range(at, at + (n - 1) * of.footprint, of.footprint)
                at += s.size

        def bring(t: int) -> Program:
            steps = (
                Copy(
                    s, Span("node", near[i] if i < n - 1 else of.slots[s.start], s.size)
                )
                for s, near in passes(t)
            )
            yield Round(then=tuple(steps))

        def combine(t: int) -> Program:
            steps = []
            for s, near in passes(t):
                total = Span("node", of.slots[s.start], s.size)
                for at in reversed(near):
                    theirs = Span("node", at, s.size)
                    steps.append(Reduce(_share(theirs, i, n), _share(total, i, n)))
            yield Round(then=tuple(steps))

        def send(t: int) -> Program:
            rounds = self.driven(of, mine, t)
            if v and self.shape.shared:
                return lay((Round(x.comm) for x in rounds), {"tmp": ("node", came(t))})
            return rounds

        def came(t: int) -> int:
            """Where in "node" a part arrives in step t, if all ranks combine it."""
            return of.end + t % 2 * most

        def arrived(t: int, urgent: bool) -> Iterator[Reduce]:
            """The share of a rank in combining what arrived in step t: what is sent in
            the next one at once, else beside its messages."""
            for total, at_once in of.arriving[t] if v and 0 <= t < steps - 1 else ():
                if at_once == urgent:
                    part = Span("node", came(t), total.size)
                    yield Reduce(_share(part, i, n), _share(total, i, n))

        stages, steps = [bring, combine, send], len(of.spans)
        if not self.shape.shared:
            yield from pipeline(stages, steps)
            return
        # a step is one round here; all ranks of a node combine what arrived in it
        for t, x in enumerate(pipeline(stages, steps), start=-2):
            local = (*x.then, *arrived(t - 1, urgent=False))
            yield Round(x.comm, local, x.meet)
            if 0 <= t < steps - 1:
                yield Round(then=tuple(arrived(t, urgent=True)), meet=True)


def _share(s: Span, i: int, n: int) -> Span:
    """The i-th of n shares of a span."""
    low, high = cut(s.size, n, i), cut(s.size, n, i + 1)
    return Span(s.buf, s.start + low, high - low)
