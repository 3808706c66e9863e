"""Streams: a pipeline of nodes between a root and the nodes of its leaves.

A flat pipeline must not pause, so the drivers of a node send and receive in their own
buffers, and "node" (see `nodes`) only connects them with the other ranks of their node:
a few rounds at a time, with a meeting after them. A part that arrives of a broadcast is
put into "node" a step later, and taken from there in the step after. Of a sum, the
ranks bring a part and combine it in the steps before; in "node" the part grows by
arriving parts, until it is sent.

The root and each node are a vertex of the flat algorithm, a broadcast in parts on a
circulant graph, or its reverse. The parts take turns among the lanes of a node. Each
part is received and sent on by the rank of a node that drives the part's lane: while
the driver combines a part, or starts a message, the port of its node carries messages
of the other lanes. The root, who drives all lanes alone, has no more messages than with
one lane.
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
    map_buffers,
    meanwhile,
    merge_rounds,
    pad,
    plain,
    reads,
    renumber,
    then,
    writes,
)
from .. import bcast
from .nodes import Team, pipeline
from .patterns import log2
from .reduce_mirrored import mirrored

#: the most rounds between two meetings
ROUNDS_BETWEEN_MEETINGS = 4
#: lanes, by default: in turn, a lane combines a part while the other carries one
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

        Where only the parts of one round fit into "node", the parts are long, and all
        ranks together take less time than the driver alone would.
        """
        return self.between == 1


def parts_in(between: int, sums: bool) -> int:
    """The most parts that pass through "node" between two meetings.

    One part arrives in a round; of a sum, up to two begin in each of the first rounds.
    """
    return min(2 * between, between + 2) if sums else between


def copies(ranks: int, sums: bool) -> int:
    """The copies of each part in "node".

    For a broadcast, two for an arriving part. For a sum, two for the part of every rank
    but the last, and three for the sum, into which the last rank brings its own part.
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

    `spans` has these parts with their lanes, at most `footprint` elements. Of a sum,
    the part that begins at element j of the vector lies at `slots[j]` of "node", where
    the part grows until it is sent; behind all slots, at `end`, is space for two
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

        With each sum stands whether the next step sends the sum.
        """
        steps = list(zip(*self.lanes, strict=True))
        sent = [
            {s for rounds in step for round_ in rounds for s in reads(round_)}
            for step in steps
        ]
        sums = [
            [s.dst for rounds in step for round_ in rounds for s in round_.then]
            for step in steps
        ]
        return [
            [(total, total in next_sent) for total in step]
            for step, next_sent in zip(sums, sent[1:], strict=False)
        ]


@lru_cache(maxsize=64)
def vertex(vertices: int, v: int, m: int, shape: StreamShape, sums: bool) -> Vertex:
    """Vertex v of `vertices`, for m elements; cached for all ranks of its node."""
    pieces, count = Shares(shape.parts, m), shape.parts - 1 + log2(vertices)
    part_elements, between = int(pieces.size(0)), shape.between

    def lane(s: Span) -> int:
        return int(pieces.find(s.start)) % shape.lanes

    def steps(program: Program) -> list[list[Round]]:
        # backwards, the program may end with an empty round
        rounds = plain(pad(program, count))[:count]
        return [rounds[t : t + between] for t in range(0, count, between)] or [[]]

    forward_rounds = plain(bcast.circulant(vertices, v, m, 0, shape.parts))
    used_by_step: list[dict[int, Span]] = [{} for _ in range(0, max(count, 1), between)]
    for t, round_ in enumerate(reversed(forward_rounds)):
        # where all ranks combine, an arriving part is added after its round
        for delay, spans in ((0, writes(round_)), (shape.shared, reads(round_))):
            used_by_step[min((t + delay) // between, len(used_by_step) - 1)] |= {
                s.start: s for s in spans
            }
    slots = _slots(used_by_step, part_elements) if sums and v else {}
    lanes = []
    for k in range(shape.lanes):
        lane_program: Program = iter(
            [_only(round_, lane, k) for round_ in forward_rounds]
        )
        if sums:
            lane_program = (
                _growing(list(lane_program), slots)
                if v
                else mirrored(lane_program, pieces, True, False, part_elements)
            )
            if not shape.shared:
                lane_program = _postponed(plain(lane_program), part_elements)
        lanes.append(steps(lane_program))
    if not sums:
        rounds_of_steps = (
            merge_rounds(*map(iter, step)) for step in zip(*lanes, strict=True)
        )
        passing = [
            [s for round_ in rounds for s in writes(round_)]
            for rounds in rounds_of_steps
        ]
    else:
        passing = _first_used(used_by_step) if v else [[] for _ in used_by_step]
    end = max(slots.values(), default=-part_elements) + part_elements
    by_lane = [[(lane(s), s) for s in spans] for spans in passing]
    return Vertex(tuple(lanes), by_lane, slots, end)


def _first_used(used_by_step: list[dict[int, Span]]) -> list[list[Span]]:
    """The spans of "send" of the parts that each step is the first to use."""
    used_before: set[int] = set()
    new_spans = []
    for parts in used_by_step:
        first_time = (s for j, s in parts.items() if j not in used_before)
        new_spans.append([Span("send", s.start, s.size) for s in first_time])
        used_before |= parts.keys()
    return new_spans


def _slots(used_by_step: list[dict[int, Span]], size: int) -> dict[int, int]:
    """The place of each part in "node", up to the last step that uses the part.

    A part takes a free place two steps before its first use, when it is brought.
    """
    first_use: dict[int, int] = {}
    last_use: dict[int, int] = {}
    for t, parts in enumerate(used_by_step):
        for j in parts:
            first_use.setdefault(j, t)
            last_use[j] = t
    slots: dict[int, int] = {}
    taken: list[tuple[int, int]] = []  # (last step, place)
    free: list[int] = []
    for j in sorted(first_use, key=first_use.__getitem__):
        while taken and taken[0][0] < first_use[j] - 2:
            heappush(free, heappop(taken)[1])
        slots[j] = heappop(free) if free else len(taken) * size
        heappush(taken, (last_use[j], slots[j]))
    return slots


def _growing(forth: list[Round], slots: dict[int, int]) -> Program:
    """A broadcast backwards, in which sums grow in "node" by arriving parts."""
    for forward_round in reversed(forth):
        comm: list[Send | Recv] = []
        steps: list[Reduce] = []
        for message in forward_round.comm:
            assert not isinstance(message, Library)
            (piece,) = message.data
            sum_span = Span("node", slots[piece.start], piece.size)
            arrived = Span("tmp", 0, piece.size)
            if isinstance(message, Recv):
                comm.append(Send(message.frm, (sum_span,)))
            else:
                comm.append(Recv(message.to, (arrived,)))
                steps.append(Reduce(arrived, sum_span))
        yield Round(tuple(comm), tuple(steps))


def _only(r: Round, lane: Callable[[Span], int], k: int) -> Round:
    """A round with the messages of lane k only."""
    own = (
        all(lane(s) == k for s in (*reads(Round((c,))), *writes(Round((c,)))))
        for c in r.comm
    )
    return Round(tuple(compress(r.comm, own)))


def _postponed(rounds: list[Round], footprint: int) -> Program:
    """Rounds that combine the part received in the round before.

    The combining goes on beside the messages, unless the messages carry its result. Two
    buffers for arriving parts take turns, since the next part arrives meanwhile.
    """
    waiting: Sequence[Local] = ()
    postponed: list[Round] = []
    for t, round_ in enumerate(rounds):
        (moved,) = map_buffers(
            iter([round_]), {"tmp": partial(_turned, footprint, t % 2)}
        )
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
        """The vertex of a rank, the rank's index there, and the number of ranks."""
        if r == self.root:
            return 0, 0, 1
        x, i = self.leaves.places[r]
        return x + 1, i, len(self.leaves.ranks[x])

    def vertex(self, v: int, sums: bool) -> Vertex:
        """The rounds of a vertex, and the parts on their way through its "node"."""
        return vertex(self.leaves.n + 1, v, self.m, self.shape, sums)

    def driven(self, own_vertex: Vertex, lanes: range, t: int) -> Program:
        """Step t of the lanes driven by a rank."""

        def number(k: int, x: Index) -> int:
            return self.leaves.driver(int(x) - 1, k) if x else self.root

        lane_programs = (
            renumber(iter(own_vertex.lanes[k][t]), partial(number, k)) for k in lanes
        )
        return merge_rounds(*lane_programs)

    def down(self, r: int) -> Program:
        """The broadcast from the root's "recv" to the "recv" of all leaves."""
        v, i, n = self.where(r)
        own_vertex = self.vertex(v, sums=False)
        own_lanes = range(i, self.shape.lanes, n)

        def passes(t: int) -> Iterator[tuple[bool, Span, Span]]:
            """Parts of step t: whether received by this rank, span, place in "node"."""
            start = t % 2 * own_vertex.footprint
            for k, s in own_vertex.spans[t] if n > 1 else ():
                yield k in own_lanes, s, Span("node", start, s.size)
                start += s.size

        def receive(t: int) -> Program:
            return self.driven(own_vertex, own_lanes, t)

        def put(t: int) -> Program:
            steps = (
                Copy(own_span, node_span)
                for is_driver, own_span, node_span in passes(t)
                if is_driver
            )
            yield Round(then=tuple(steps))

        def take(t: int) -> Program:
            steps = (
                Copy(node_span, own_span)
                for is_driver, own_span, node_span in passes(t)
                if not is_driver
            )
            yield Round(then=tuple(steps))

        if len(own_vertex.spans) > 1:
            return pipeline([receive, put, take], len(own_vertex.spans))
        return pipeline([lambda t: then(receive(t), put(t)), take], 1)

    def up(self, r: int) -> Program:
        """The reduction of the "send" of all leaves to the root's "recv"."""
        v, i, n = self.where(r)
        own_vertex, own_lanes = self.vertex(v, sums=True), range(i, self.shape.lanes, n)
        part_elements = int(Shares(self.shape.parts, self.m).size(0))

        def passes(t: int) -> Iterator[tuple[Span, range]]:
            """Parts for step t, and the places in "node" of each rank but the last.

            The last rank brings its part to where the sum grows.
            """
            start = (
                own_vertex.end
                + 2 * part_elements
                + t % 2 * (n - 1) * own_vertex.footprint
            )
            for _, s in own_vertex.spans[t]:
                yield (
                    s,
                    range(
                        start,
                        start + (n - 1) * own_vertex.footprint,
                        own_vertex.footprint,
                    ),
                )
                start += s.size

        def bring(t: int) -> Program:
            steps = (
                Copy(
                    s,
                    Span(
                        "node",
                        places[i] if i < n - 1 else own_vertex.slots[s.start],
                        s.size,
                    ),
                )
                for s, places in passes(t)
            )
            yield Round(then=tuple(steps))

        def combine(t: int) -> Program:
            steps = []
            for s, places in passes(t):
                total = Span("node", own_vertex.slots[s.start], s.size)
                for start in reversed(places):
                    contribution = Span("node", start, s.size)
                    steps.append(
                        Reduce(_share(contribution, i, n), _share(total, i, n))
                    )
            yield Round(then=tuple(steps))

        def send(t: int) -> Program:
            rounds = self.driven(own_vertex, own_lanes, t)
            if v and self.shape.shared:
                return lay(
                    (Round(x.comm) for x in rounds), {"tmp": ("node", arrival_place(t))}
                )
            return rounds

        def arrival_place(t: int) -> int:
            """The place in "node" of a part of step t, to be combined by all ranks."""
            return own_vertex.end + t % 2 * part_elements

        def arrived(t: int, urgent: bool) -> Iterator[Reduce]:
            """A rank's share in combining the parts that arrived in step t.

            Urgent are the sums to be sent in the next step; other sums wait for its
            messages.
            """
            for total, at_once in (
                own_vertex.arriving[t] if v and 0 <= t < steps - 1 else ()
            ):
                if at_once == urgent:
                    part = Span("node", arrival_place(t), total.size)
                    yield Reduce(_share(part, i, n), _share(total, i, n))

        stages, steps = [bring, combine, send], len(own_vertex.spans)
        if not self.shape.shared:
            yield from pipeline(stages, steps)
            return
        # a step is one round; all ranks of a node combine the part that arrived in it
        for t, x in enumerate(pipeline(stages, steps), start=-2):
            local = (*x.then, *arrived(t - 1, urgent=False))
            yield Round(x.comm, local, x.meet)
            if 0 <= t < steps - 1:
                yield Round(then=tuple(arrived(t, urgent=True)), meet=True)


def _share(s: Span, i: int, n: int) -> Span:
    """The i-th of n shares of a span."""
    low, high = cut(s.size, n, i), cut(s.size, n, i + 1)
    return Span(s.buf, s.start + low, high - low)
