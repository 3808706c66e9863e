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

#: the most rounds between two meetings
ROUNDS_BETWEEN_MEETINGS = 4
#: lanes, by default: one combines a part while the other carries one
STREAM_LANES = 2
#: chunks of `size` elements that "node" can hold, as in a pipeline of flows
STREAM_CHUNKS = 4


@dataclass(frozen=True)
class StreamShape:
    """The lanes and parts of a stream, and its rounds between two meetings."""

    lanes: int
    parts: int
    between: int

    @property
    def shared(self) -> bool:
        """Whether all ranks of a node combine a part, and meet once more a round.

        Where the parts of one round only fit into "node", they are long, and all ranks
        together take less time than the driver alone would.
        """
        return self.between == 1


def parts_in(between: int, sums: bool) -> int:
    """The most parts that pass through "node" between two meetings.

    One part arrives in a round; of a sum, up to two begin in each of the first rounds.
    """
    return min(2 * between, between + 2) if sums else between


def copies(ranks: int, sums: bool) -> int:
    """The copies of each part in "node".

    There are two for an arriving part and for the part of every rank but the last, and
    three for the sum, into which the last rank brings its own.
    """
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
) -> StreamShape:
    """The shape for m elements on nodes of up to `ranks` ranks.

    The number of parts is the fastest, or larger where a round would not fit in "node".
    """
    footprint = STREAM_CHUNKS * size / copies(ranks, sums)
    n = n or bcast.parts(vertices, ceil(m), startup)
    if m * parts_in(1, sums) > n * footprint:
        n = min(ceil(m * parts_in(1, sums) / footprint), max(ceil(m), 1))
    fits = (
        b
        for b in range(ROUNDS_BETWEEN_MEETINGS, 1, -1)
        if m * parts_in(b, sums) <= n * footprint
    )
    return StreamShape(lanes or min(STREAM_LANES, ranks), n, next(fits, 1))


@dataclass(frozen=True)
class Vertex:
    """A vertex's rounds in each lane, step by step, and each step's parts in "node".

    `spans` has these parts with their lanes, `footprint` elements at the most. Of a
    sum, the part that begins at element j of the vector lies at `slots[j]` of "node",
    where it grows until it is sent; behind all slots, at `end`, is space for two
    arriving parts.
    """

    lanes: tuple[list[list[Round]], ...]
    spans: list[list[tuple[int, Span]]]
    slots: dict[int, int]
    end: int

    @cached_property
    def footprint(self) -> int:
        """The most elements that pass through "node" for a step."""
        return max(sum(int(s.size) for _, s in spans) for spans in self.spans)

    @cached_property
    def arriving(self) -> list[list[tuple[Span, bool]]]:
        """The sums that arriving parts add to in each step but the last.

        With each sum stands whether the next step sends it.
        """
        steps = list(zip(*self.lanes, strict=True))
        sent = [{s for x in now for y in x for s in reads(y)} for now in steps]
        grow = [[s.dst for x in now for y in x for s in y.then] for now in steps]
        return [
            [(total, total in after) for total in now]
            for now, after in zip(grow, sent[1:], strict=False)
        ]


@lru_cache(maxsize=64)
def vertex(vertices: int, v: int, m: int, shape: StreamShape, sums: bool) -> Vertex:
    """Vertex v of `vertices`, for m elements: one object for all ranks of its node."""
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
        # where all ranks combine, an arriving part is added after its round
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
        rounds_of_steps = (
            merge_rounds(*map(iter, x)) for x in zip(*lanes, strict=True)
        )
        passing = [[s for x in rounds for s in writes(x)] for rounds in rounds_of_steps]
    else:
        passing = _first_used(used) if v else [[] for _ in used]
    end = max(slots.values(), default=-most) + most
    by_lane = [[(lane(s), s) for s in x] for x in passing]
    return Vertex(tuple(lanes), by_lane, slots, end)


def _first_used(used: list[dict[int, Span]]) -> list[list[Span]]:
    """The spans of "send" of the parts that each step is the first to use."""
    used_before: set[int] = set()
    new_spans = []
    for parts in used:
        first_time = (s for j, s in parts.items() if j not in used_before)
        new_spans.append([Span("send", s.start, s.size) for s in first_time])
        used_before |= parts.keys()
    return new_spans


def _slots(used: list[dict[int, Span]], size: int) -> dict[int, int]:
    """The place in "node" of each part, which it has until the last step that uses it.

    A part takes a free place two steps before its first use, when it is brought.
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for t, parts in enumerate(used):
        for j in parts:
            first.setdefault(j, t)
            last[j] = t
    slots: dict[int, int] = {}
    taken: list[tuple[int, int]] = []  # until when, and which
    free: list[int] = []
    for j in sorted(first, key=first.__getitem__):
        while taken and taken[0][0] < first[j] - 2:
            heappush(free, heappop(taken)[1])
        slots[j] = heappop(free) if free else len(taken) * size
        heappush(taken, (last[j], slots[j]))
    return slots


def _growing(forth: list[Round], slots: dict[int, int]) -> Program:
    """A broadcast backwards, in which sums grow in "node" by arriving parts."""
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
    """A round with the messages of lane k only."""
    own = (
        all(lane(s) == k for s in (*reads(Round((c,))), *writes(Round((c,)))))
        for c in r.comm
    )
    return Round(tuple(compress(r.comm, own)))


def _postponed(rounds: list[Round], footprint: int) -> Program:
    """Rounds in which the part that arrived in the round before is combined.

    The combining goes on beside the messages, unless these carry its result, so two
    buffers for arriving parts take turns.
    """
    waiting: Sequence[Local] = ()
    postponed: list[Round] = []
    for t, x in enumerate(rounds):
        (moved,) = scatter(iter([x]), {"tmp": partial(_turned, footprint, t % 2)})
        current = Round(moved.comm, waiting)
        if postponed and meanwhile(current)[1]:
            postponed[-1] = Round(postponed[-1].comm, (*postponed[-1].then, *waiting))
            current = Round(moved.comm)
        postponed.append(current)
        waiting = moved.then
    if waiting:
        postponed[-1] = Round(postponed[-1].comm, (*postponed[-1].then, *waiting))
    return iter(postponed)


def _turned(footprint: int, turn: int, s: Span) -> Spans:
    """A span of "tmp", of which two halves take turns."""
    return (Span(s.buf, s.start + footprint * turn, s.size),)


@dataclass(frozen=True)
class Stream:
    """A vector of m elements between a root, vertex 0, and its leaves.

    Vertex x + 1 is vertex x of the leaves' team.
    """

    root: int
    leaves: Team
    m: int
    shape: StreamShape

    def where(self, r: int) -> tuple[int, int, int]:
        """The vertex of a rank, the rank's index there, and the vertex's ranks."""
        if r == self.root:
            return 0, 0, 1
        x, i = self.leaves.places[r]
        return x + 1, i, len(self.leaves.ranks[x])

    def vertex(self, v: int, sums: bool) -> Vertex:
        """The rounds of a vertex, and the parts that pass through its "node"."""
        return vertex(self.leaves.n + 1, v, self.m, self.shape, sums)

    def driven(self, of: Vertex, mine: range, t: int) -> Program:
        """Step t of the lanes that a rank drives."""

        def number(k: int, x: Index) -> int:
            return self.leaves.driver(int(x) - 1, k) if x else self.root

        lane_programs = (
            renumber(iter(of.lanes[k][t]), partial(number, k)) for k in mine
        )
        return merge_rounds(*lane_programs)

    def down(self, r: int) -> Program:
        """The broadcast from the root's "recv" to the "recv" of all leaves."""
        v, i, n = self.where(r)
        of, mine = self.vertex(v, sums=False), range(i, self.shape.lanes, n)

        def passes(t: int) -> Iterator[tuple[bool, Span, Span]]:
            """Parts of step t: whether to this rank, span, place in "node"."""
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
        """The reduction of the "send" of all leaves to the root's "recv"."""
        v, i, n = self.where(r)
        of, mine = self.vertex(v, sums=True), range(i, self.shape.lanes, n)
        most = int(Shares(self.shape.parts, self.m).size(0))

        def passes(t: int) -> Iterator[tuple[Span, range]]:
            """Parts for step t, and the places in "node" of each rank but the last.

            The last rank brings its part to where the sum grows.
            """
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
            """The place in "node" of a part of step t that all combine."""
            return of.end + t % 2 * most

        def arrived(t: int, urgent: bool) -> Iterator[Reduce]:
            """A rank's share in combining the parts that arrived in step t.

            Sums that the next step sends are urgent; the others wait for its messages.
            """
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
