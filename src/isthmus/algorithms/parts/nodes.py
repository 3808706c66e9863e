"""Node-aware collectives out of flat ones: in, across by lanes, out.

The ranks of a node bring their data together in "node", memory that they share. A node
then acts as one vertex: its data are cut into lanes, and in lane l one rank of every
node runs a flat algorithm with the ranks of lane l of the other nodes. Thereby all
ranks drive the network at once, and every byte crosses a node's port once (Träff and
Hunold 2020). Last, each rank takes the data it needs from "node".

Long data go through "node" in chunks: while the network carries one chunk, the ranks
copy the next one in and the previous one out. A meeting of the node's ranks separates
the stages. On a single node nothing goes across, and the rest is a collective in shared
memory.

Most collectives are one `Flow` in each direction: a vector goes from the vertices that
hold it, or parts of it, to the vertices that need it. Across nodes a flow takes up to
three stages, all of them flat algorithms: a reduce_scatter among the sources, a
redistribution from sources to sinks, an allgatherv among the sinks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import accumulate
from math import ceil, sqrt
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...schedules.ir import Copy, Local, Program, Reduce, Round, Span, Spans
from ...schedules.layout import Blocks, Shares, Uneven, cut
from ...schedules.program import apart, lay, map_buffers, merge_rounds, pad, renumber
from .. import allgatherv, reduce_scatter
from .block_overlap import receives, sends
from .patterns import log2

if TYPE_CHECKING:
    from .node_exchange import NodeExchange

#: the most elements of "node" that a chunk takes, by default
NODE_CHUNK_ELEMENTS = 1 << 22
#: the least time of a long message, in start-ups: neighbours then beat few rounds
LONG_MESSAGE_STARTUPS = 4
#: the most chunks of data that would fit into one, so that copies and network overlap
MAX_OVERLAPPED_CHUNKS = 4


#: the node of each rank
Nodes = tuple[Hashable, ...]
#: consecutive elements of a vector: (start, size)
VectorRun = tuple[int, int]


@dataclass(frozen=True)
class Amount:
    """The size of a transfer, each figure for the node that has the most."""

    #: elements of a node's memory, if all data went at once
    need: float
    #: elements that pass a node's port
    volume: float
    #: messages of this volume that wait for each other
    messages: int
    #: elements that a vertex sends to another
    part: float


def shape(
    amount: Amount, ranks: int, size: float, startup: float, lanes: int = 0
) -> tuple[int, int]:
    """The number of chunks, and of lanes, in which data go through nodes.

    A chunk has up to `size` elements, and there are a few chunks if start-ups take
    little of their time; `startup` elements pass in the time of a start-up. By default
    there are as many lanes as ranks on a node, if each lane still sends as much as
    passes in the time of a start-up.
    """
    chunks = max(ceil(amount.need / size), 1)
    if amount.messages:
        # In c chunks the network takes c times the start-ups. Copies that take as long
        # as the network are hidden but for a c-th: the root of the ratio is best then,
        # and one chunk if they take no time. Two thirds of that root are within a sixth
        # of the best of both.
        overlapped_chunks = round(
            sqrt(amount.volume / (amount.messages * startup)) * 2 / 3
        )
        chunks = max(chunks, min(overlapped_chunks, MAX_OVERLAPPED_CHUNKS))
    return chunks, lanes or min(max(int(amount.part / (chunks * startup)), 1), ranks)


def long_messages(part: float, chunks: int, lanes: int, startup: float) -> bool:
    """Whether messages are long, if a vertex sends `part` elements to each vertex, and
    `startup` elements pass in the time of a start-up."""
    return part >= chunks * lanes * LONG_MESSAGE_STARTUPS * startup


@dataclass(frozen=True)
class Team:
    """A set of ranks by node: for every vertex its node and its ranks."""

    nodes: Nodes
    ranks: tuple[tuple[int, ...], ...]

    @property
    def n(self) -> int:
        """The number of vertices."""
        return len(self.nodes)

    @cached_property
    def places(self) -> dict[int, tuple[int, int]]:
        """The vertex of each rank, and the rank's index in the vertex."""
        vertices = enumerate(self.ranks)
        return {r: (x, i) for x, ranks in vertices for i, r in enumerate(ranks)}

    @property
    def max_ranks(self) -> int:
        """The most ranks of any vertex."""
        return max(map(len, self.ranks))

    def driver(self, x: int, lane: int) -> int:
        """The rank that drives a lane of vertex x."""
        return self.ranks[x][lane % len(self.ranks[x])]


@lru_cache(maxsize=16)
def team(ranks: range, nodes: Nodes, without: int = -1) -> Team:
    """Ranks by their nodes, in the order of the nodes' lowest ranks.

    Cached, since a simulation runs many ranks in one process.
    """
    node_order = {node: k for k, node in enumerate(dict.fromkeys(nodes))}
    ranks_of_node: dict[Hashable, list[int]] = {}
    for r in ranks:
        if r != without:
            ranks_of_node.setdefault(nodes[r], []).append(r)
    chosen = sorted(ranks_of_node, key=node_order.__getitem__)
    return Team(tuple(chosen), tuple(tuple(ranks_of_node[node]) for node in chosen))


@dataclass(frozen=True)
class Window:
    """The part of a vector that a rank has in a buffer: elements from `start` on.

    The buffer's first element would be element `origin` of the vector.
    """

    buf: str
    start: int
    size: int
    origin: int

    def span(self, start: int, size: int) -> Span:
        """A run of elements of the vector, in the buffer."""
        return Span(self.buf, start - self.origin, size)

    def overlap(self, start: int, size: int) -> tuple[int, int]:
        """The elements of (start, size) that lie in the window, as (start, size)."""
        low = max(start, self.start)
        return low, max(min(start + size, self.start + self.size) - low, 0)


@dataclass(frozen=True)
class Holding:
    """A vector in a buffer of each rank: the whole vector, or the rank's block.

    Ranks have blocks if `ends` has the edges of the blocks of the ranks from `base` on.
    A buffer that is `in_place` is as long as the whole vector.
    """

    buf: str
    total: int
    ends: tuple[int, ...] = ()
    base: int = 0
    in_place: bool = False

    def block(self, r: int) -> VectorRun:
        """The run of the vector held by rank r."""
        if not self.ends:
            return 0, self.total
        start, end = self.ends[r - self.base : r - self.base + 2]
        return start, end - start

    def window(self, r: int) -> Window:
        """The run of the vector held by rank r, and its place in the buffer."""
        start, size = self.block(r)
        return Window(self.buf, start, size, 0 if self.in_place else start)


@dataclass(frozen=True)
class VectorParts:
    """A vector as one part for each vertex, a part being several runs of the vector.

    Each part is cut into chunks, and each chunk of a part into lanes.
    """

    runs: tuple[tuple[VectorRun, ...], ...]
    chunks: int
    lanes: int

    @cached_property
    def totals(self) -> tuple[int, ...]:
        """The elements of each part."""
        return tuple(sum(size for _, size in runs) for runs in self.runs)

    @cached_property
    def _begins(self) -> list[list[int]]:
        """The first element of each run in the run's part."""
        sizes = ([size for _, size in runs] for runs in self.runs)
        return [list(accumulate(x[:-1], initial=0)) for x in sizes]

    @cached_property
    def _cuts(self) -> list[list[int]]:
        """The edges of the chunks of each part."""
        edges = range(self.chunks + 1)
        return [[int(cut(n, self.chunks, c)) for c in edges] for n in self.totals]

    def chunk(self, c: int) -> Chunk:
        """Chunk c of all parts."""
        return chunk(tuple(x[c + 1] - x[c] for x in self._cuts), self.lanes)

    def pieces(self, c: int, z: int) -> Iterator[tuple[int, int, int]]:
        """The runs of part z in chunk c: start in the vector, size, start in the chunk.

        The start in the chunk is counted within the chunk's share of the part.
        """
        (low, high), begins = self._cuts[z][c : c + 2], self._begins[z]
        if low == high:
            return
        for i in range(bisect_right(begins, low) - 1, bisect_left(begins, high)):
            at, (start, size) = begins[i], self.runs[z][i]
            first, last = max(at, low), min(at + size, high)
            if last > first:
                yield start + first - at, last - first, first - low


@dataclass(frozen=True)
class Chunk:
    """A chunk of a vector in "node", part after part; each part is cut into lanes."""

    counts: tuple[int, ...]
    lanes: int

    @property
    def total(self) -> int:
        """The elements of all parts."""
        return self.begins[-1]

    @cached_property
    def begins(self) -> tuple[int, ...]:
        """The edges of the parts in the chunk."""
        return tuple(accumulate(self.counts, initial=0))

    @cached_property
    def _cuts(self) -> tuple[tuple[int, ...], ...]:
        """The edges of the lanes of each part."""
        edges = range(self.lanes + 1)
        return tuple(
            tuple(int(cut(n, self.lanes, k)) for k in edges) for n in self.counts
        )

    @cached_property
    def _lanes(self) -> tuple[Uneven, ...]:
        """The blocks of every lane."""
        lane_numbers = range(self.lanes)
        return tuple(
            Uneven([x[k + 1] - x[k] for x in self._cuts]) for k in lane_numbers
        )

    def lane(self, k: int) -> Uneven:
        """The blocks of lane k, a block of each part."""
        return self._lanes[k]

    def piece(self, z: int, k: int, at: int = 0) -> Span:
        """Lane k of part z, if the part begins at element `at` of "node"."""
        low, high = self._cuts[z][k : k + 2]
        return Span("node", at + low, high - low)

    def spans(self, k: int, at: int, of: Span) -> Spans:
        """A span of lane k in "node", if the chunk begins at element `at` of "node"."""
        if self.lanes == 1:
            return (Span("node", at + of.start, of.size),)
        pieces, offsets = [], self._lanes[k].offsets
        start, end = of.start, of.start + of.size
        z = int(np.searchsorted(offsets, start, side="right")) - 1
        while start < end:
            n = min(int(offsets[z + 1]), end) - start
            if n > 0:
                low = self._cuts[z][k] + start - int(offsets[z])
                pieces.append(Span("node", at + self.begins[z] + low, n))
            start, z = start + max(n, 0), z + 1
        return tuple(pieces)


@lru_cache(maxsize=64)
def chunk(counts: tuple[int, ...], lanes: int) -> Chunk:
    """A chunk; cached, since a simulation runs many ranks in one process."""
    return Chunk(counts, lanes)


def pairs(
    parts: VectorParts, c: int, window: Window, starts: Mapping[int, int]
) -> Iterator[tuple[Span, Span]]:
    """Spans of chunk c in a rank's buffer and in "node".

    `starts` has the parts that lie in "node", with their first elements in "node".
    """
    for z, part_start in starts.items():
        for start, size, within in parts.pieces(c, z):
            low, overlap = window.overlap(start, size)
            if overlap:
                place = part_start + within + low - start
                yield window.span(low, overlap), Span("node", place, overlap)


def merged(runs: Iterable[VectorRun]) -> tuple[VectorRun, ...]:
    """Runs of a vector, with neighbours joined."""
    merged_runs: list[VectorRun] = []
    for start, size in runs:
        if merged_runs and sum(merged_runs[-1]) == start:
            start, size = merged_runs[-1][0], merged_runs.pop()[1] + size
        if size:
            merged_runs.append((start, size))
    return tuple(merged_runs)


#: the spans of elements of a lane
Place = Callable[[Span], Spans]


def _shifted(place: Place, low: int) -> Place:
    """A place that counts from element `low` of the lane."""
    return lambda s: place(Span(s.buf, low + s.start, s.size))


@dataclass(frozen=True)
class Flow:
    """A vector on its way from the vertices of `sources` to the vertices of `sinks`.

    `by` names the vertices by which the vector is cut into parts: "sources", each of
    which holds its own part; "sinks", each of which needs its own part; or "nobody",
    where the vector is a single part. If summed, every source holds the whole vector,
    and the sinks need the sum.
    """

    sources: Team
    sinks: Team
    by: str
    #: where the vector lies on the sources before, and on the sinks after
    gives: Holding
    takes: Holding
    summed: bool = False
    chunks: int = 1
    lanes: int = 1
    #: the elements that pass in the time of a start-up
    startup: float = 1.0

    def cut(self, chunks: int, lanes: int, startup: float) -> Flow:
        """The flow in a number of chunks and lanes."""
        return replace(self, chunks=chunks, lanes=lanes, startup=startup)

    @cached_property
    def parts(self) -> VectorParts:
        """The vector, cut by the vertices of the parts' holders or takers."""
        runs: tuple[tuple[VectorRun, ...], ...] = (((0, self.gives.total),),)
        if self.by != "nobody":
            of_sources = self.by == "sources"
            owners, held = (
                (self.sources, self.gives) if of_sources else (self.sinks, self.takes)
            )
            runs = tuple(merged(map(held.block, ranks)) for ranks in owners.ranks)
        return VectorParts(runs, self.chunks, self.lanes)

    @property
    def at_home(self) -> bool:
        """Whether sources and sinks are on the same nodes.

        Data for a node's own ranks then stay on the node, and the rest crosses.
        """
        return self.sources.nodes == self.sinks.nodes

    @property
    def one_node(self) -> bool:
        """Whether all ranks are on a single node, and no message is needed."""
        return self.at_home and self.sources.n == 1

    @property
    def everything(self) -> bool:
        """Whether every sink needs the whole vector."""
        return self.by != "sinks"

    @property
    def part(self) -> float:
        """The most elements that a vertex sends to another."""
        if self.by == "sources":
            return max(self.parts.totals)
        return self.gives.total / max(self.sources.n, self.sinks.n)

    @property
    def volume(self) -> float:
        """The most elements that pass the port of a node."""
        return self.gives.total

    @property
    def messages(self) -> int:
        """The least number of messages that wait for each other."""
        if self.one_node:
            return 0
        smaller, larger = sorted((self.sources.n, self.sinks.n))
        tree_messages = (
            log2(self.sources.n) * self.summed + log2(self.sinks.n) * self.everything
        )
        return tree_messages if self.at_home else tree_messages + ceil(larger / smaller)

    @cached_property
    def long(self) -> bool:
        """Whether messages are long enough for neighbours to beat few rounds."""
        part = self.part if self.by == "sources" else self.gives.total / self.sources.n
        return long_messages(part, self.chunks, self.lanes, self.startup)

    # -- where data lie in "node"

    def footprint(self, node: Hashable) -> int:
        """The elements of "node" that a chunk takes; the first chunk is the longest."""
        return self._footprint_in(node) + self._footprint_out(node)

    def _footprint_in(self, node: Hashable) -> int:
        """The elements brought by sources on a node."""
        if node not in self.sources.nodes:
            return 0
        chunk, x = self.parts.chunk(0), self.sources.nodes.index(node)
        if self.summed:
            return len(self.sources.ranks[x]) * chunk.total
        if self.at_home and self.everything:
            return 0  # brought to the place from which sinks take
        return chunk.counts[x] if self.by == "sources" else chunk.total

    def _footprint_out(self, node: Hashable) -> int:
        """The elements taken by sinks on a node."""
        if node not in self.sinks.nodes or (self.one_node and self.summed):
            return 0
        chunk, y = self.parts.chunk(0), self.sinks.nodes.index(node)
        if self.everything:
            return chunk.total
        return 0 if self.at_home and not self.summed else chunk.counts[y]

    def _slot(self, chunk: Chunk, i: int) -> int:
        """The place of the vector of rank i of a vertex, before vectors are summed."""
        return i * chunk.total

    def _out(self, node: Hashable) -> int:
        """The first element of the sinks' data, where these are not left as brought."""
        return self._footprint_in(node)

    # -- the stages

    def _part_starts(
        self, chunk: Chunk, at: int, only: int | None = None
    ) -> dict[int, int]:
        """The first element of each part in "node", or of the only part in "node"."""
        if only is not None:
            return {only: at}
        return {z: at + chunk.begins[z] for z in range(len(chunk.counts))}

    def bring(self, r: int, c: int, base: int) -> Iterator[Local]:
        """Copy a source's elements of chunk c into "node"."""
        if r not in self.sources.places:
            return
        x, i = self.sources.places[r]
        chunk, at = self.parts.chunk(c), base
        if self.summed:
            at += self._slot(chunk, i)
        part_starts = self._part_starts(chunk, at)
        if self.by == "sources":
            part_starts = (
                {x: part_starts[x]} if self.at_home else self._part_starts(chunk, at, x)
            )
        for own_span, node_span in pairs(
            self.parts, c, self.gives.window(r), part_starts
        ):
            yield Copy(own_span, node_span)

    def take(self, r: int, c: int, base: int) -> Iterator[Local]:
        """Copy a sink's elements of chunk c out of "node"."""
        if r not in self.sinks.places:
            return
        y, _ = self.sinks.places[r]
        chunk, window = self.parts.chunk(c), self.takes.window(r)
        if self.one_node and self.summed:
            yield from self._take_sum(window, c, base)
            return
        if self.everything:
            yield from self._take_all(window, c, base + self._out(self.sinks.nodes[y]))
            return
        if (
            self.at_home and not self.summed
        ):  # from the place to which sources brought it
            part_starts = {y: self._part_starts(chunk, base)[y]}
        else:
            part_starts = self._part_starts(
                chunk, base + self._out(self.sinks.nodes[y]), y
            )
        for own_span, node_span in pairs(self.parts, c, window, part_starts):
            yield Copy(node_span, own_span)

    def _take_all(self, window: Window, c: int, at: int) -> tuple[Local, ...]:
        """Copies of all of chunk c, which begins at element `at` of "node".

        The copies are cached, since all sinks of a node take equal steps.
        """
        if (c, at) not in self._all_copies:
            part_starts = self._part_starts(self.parts.chunk(c), at)
            copies = pairs(self.parts, c, window, part_starts)
            self._all_copies[c, at] = tuple(
                Copy(node_span, own_span) for own_span, node_span in copies
            )
        return self._all_copies[c, at]

    @cached_property
    def _all_copies(self) -> dict[tuple[int, int], tuple[Local, ...]]:
        """The copies of each chunk and place, by `_take_all`."""
        return {}

    def _take_sum(self, window: Window, c: int, base: int) -> Iterator[Local]:
        """The copy of the sum on the only node; with one chunk, the reductions too.

        With several chunks `combine` has summed the vectors in the stage before.
        """
        chunk = self.parts.chunk(c)
        last_rank, *other_ranks = range(len(self.sources.ranks[0]) - 1, -1, -1)
        for i in (last_rank, *other_ranks) if self.chunks == 1 else (last_rank,):
            part_starts = self._part_starts(chunk, base + self._slot(chunk, i))
            for own_span, node_span in pairs(self.parts, c, window, part_starts):
                yield (
                    Copy(node_span, own_span)
                    if i == last_rank
                    else Reduce(node_span, own_span)
                )

    def combine(self, r: int, c: int, base: int) -> Iterator[Local]:
        """A source's share of the sum of all vectors brought to the source's node."""
        if r in self.sources.places:
            x, i = self.sources.places[r]
            chunk = self.parts.chunk(c)
            shares = Shares(len(self.sources.ranks[x]), chunk.total, "node")
            yield from self._sums(x, chunk, shares[i][0], base)

    def _sums(self, x: int, chunk: Chunk, span: Span, base: int) -> Iterator[Local]:
        """Reductions of the vectors of vertex x, from the last to the first.

        The sum grows in the place of the last vector, in rank order where the ranks of
        the vertex follow each other.
        """
        *other_ranks, last_rank = range(len(self.sources.ranks[x]))
        total = Span(
            "node", base + self._slot(chunk, last_rank) + span.start, span.size
        )
        for i in reversed(other_ranks):
            start = base + self._slot(chunk, i) + span.start
            yield Reduce(Span("node", start, span.size), total)

    # -- across

    def across(self, r: int, c: int, base: int) -> Program:
        """A rank's messages with other nodes for chunk c, in the lanes of this rank."""
        programs = []
        for k in range(self.lanes):
            if self.at_home:
                programs += self._driven(self.sources, r, k, c, base, self._home)
            else:
                programs += self._driven(self.sources, r, k, c, base, self._source)
                programs += self._driven(self.sinks, r, k, c, base, self._sink)
        return apart(*programs)

    def _driven(
        self,
        members: Team,
        r: int,
        k: int,
        c: int,
        base: int,
        program: Callable[..., Program],
    ) -> list[Program]:
        """The program of a lane, if rank r drives the lane."""
        if r not in members.places:
            return []
        x, i = members.places[r]
        if k % len(members.ranks[x]) != i:
            return []
        return [program(x, k, self.parts.chunk(c), base)]

    def _held(self, x: int, k: int, chunk: Chunk, base: int) -> Place:
        """The place of the elements of lane k that vertex x holds."""
        if self.summed:
            base += self._slot(chunk, len(self.sources.ranks[x]) - 1)
        elif self.by == "sources":
            piece, low = chunk.piece(x, k, base), int(chunk.lane(k).offset(x))
            return lambda s: (Span("node", piece.start + s.start - low, s.size),)
        return lambda s: chunk.spans(k, base, s)

    def _wanted(self, y: int, k: int, chunk: Chunk, base: int) -> Place:
        """The place of the elements of lane k that vertex y needs."""
        at = base + self._out(self.sinks.nodes[y])
        if self.everything:
            return lambda s: chunk.spans(k, at, s)
        piece, low = chunk.piece(y, k, at), int(chunk.lane(k).offset(y))
        return lambda s: (Span("node", piece.start + s.start - low, s.size),)

    def _combined(self, x: int, k: int, chunk: Chunk, base: int) -> Program:
        """The round that sums a lane; empty if all ranks of the node do so before."""
        if self.summed and self.chunks == 1:
            spans = chunk.spans(k, 0, Span("node", 0, chunk.lane(k).total))
            steps = (s for span in spans for s in self._sums(x, chunk, span, base))
            yield Round(then=tuple(steps))

    def _home(self, x: int, k: int, chunk: Chunk, base: int) -> Program:
        """Lane k of vertex x, if sources and sinks are on the same nodes."""
        lane, n = chunk.lane(k), self.sources.n
        blocks: Blocks = lane if self.by != "nobody" else Shares(n, lane.total)
        driver = partial(self._driver, self.sources, k)
        wanted = self._wanted(x, k, chunk, base)
        if self.summed:
            yield from self._combined(x, k, chunk, base)
            program = renumber(self._sum(n, x, blocks), driver)
            own_places = {"send": self._held(x, k, chunk, base)}
            own_places["recv"] = _shifted(wanted, int(blocks.offset(x)))
            yield from map_buffers(program, own_places)
        if self.everything:
            program = renumber(self._gather(n, x, blocks), driver)
            yield from map_buffers(program, {"recv": wanted})

    def _source(self, x: int, k: int, chunk: Chunk, base: int) -> Program:
        """Lane k of vertex x of the sources, if the sinks are on other nodes."""
        own, (held, wanted) = self._held(x, k, chunk, base), self._blocks(k, chunk)
        low, size = int(held.offset(x)), int(held.size(x))
        receiver = partial(self._driver, self.sinks, k)
        if not self.summed:
            across = Round(
                tuple(sends(x, held, wanted, receiver, Span("lane", low, size)))
            )
            yield from map_buffers(iter([across]), {"lane": own})
            return
        yield from self._combined(x, k, chunk, base)
        driver = partial(self._driver, self.sources, k)
        program = renumber(self._sum(self.sources.n, x, held), driver)
        scratch = {"recv": ("tmp", 0), "tmp": ("tmp", int(held.size(0)))}
        yield from map_buffers(lay(program, scratch), {"send": own})
        yield Round(tuple(sends(x, held, wanted, receiver, Span("tmp", 0, size))))

    def _sink(self, y: int, k: int, chunk: Chunk, base: int) -> Program:
        """Lane k of vertex y of the sinks, if the sources are on other nodes."""
        held, wanted = self._blocks(k, chunk)
        own = Span("lane", int(wanted.offset(y)), int(wanted.size(y)))
        wanted_place = self._wanted(y, k, chunk, base)
        if self.summed:
            sum_rounds = sum(1 for _ in self._sum(self.sources.n, 0, held))
            yield from pad(iter(()), sum_rounds + (self.chunks == 1))
        sender = partial(self._driver, self.sources, k)
        across = Round(tuple(receives(y, held, wanted, sender, own)))
        yield from map_buffers(iter([across]), {"lane": wanted_place})
        if self.everything:
            driver = partial(self._driver, self.sinks, k)
            program = renumber(self._gather(self.sinks.n, y, wanted), driver)
            yield from map_buffers(program, {"recv": wanted_place})

    def _blocks(self, k: int, chunk: Chunk) -> tuple[Blocks, Blocks]:
        """The blocks of lane k on the sources, and the blocks needed by the sinks."""
        lane = chunk.lane(k)
        held: Blocks = lane
        if self.by != "sources":
            held = Shares(self.sources.n, lane.total)
        return held, Shares(self.sinks.n, lane.total) if self.everything else lane

    @staticmethod
    def _driver(members: Team, k: int, x: int) -> int:
        """The rank of a team that drives lane k of vertex x."""
        return members.driver(int(x), k)

    def _sum(self, n: int, x: int, blocks: Blocks) -> Program:
        """The reduce_scatter among the sources."""
        flat = reduce_scatter.rotated if self.long else reduce_scatter.bruck
        return flat(n, x, blocks)

    def _gather(self, n: int, x: int, blocks: Blocks) -> Program:
        """The allgatherv among the sinks."""
        flat = allgatherv.ring if self.long else allgatherv.bruck
        return flat(n, x, blocks)


def spread(steps: Iterable[Local], n: int) -> list[tuple[Local, ...]]:
    """Local steps in n shares of about equally many elements, in their order."""
    all_steps = list(steps)
    if n == 1:
        return [tuple(all_steps)]
    total = sum(step.dst.size for step in all_steps)
    shares: list[list[Local]] = [[] for _ in range(n)]
    position = 0
    for step in all_steps:
        sliced = 0
        while sliced < step.dst.size:
            k = min(position * n // total, n - 1)
            size = min(step.dst.size - sliced, -(-total * (k + 1) // n) - position)
            shares[k].append(
                step if size == step.dst.size else _slice(step, sliced, size)
            )
            sliced, position = sliced + size, position + size
    return [tuple(part) for part in shares]


def _slice(step: Local, start: int, size: int) -> Local:
    """A local step on `size` of its elements, from `start` on."""
    src, dst = (
        Span(span.buf, span.start + start, size) for span in (step.src, step.dst)
    )
    return type(step)(src, dst)


def pipeline(stages: Sequence[Callable[[int], Program]], chunks: int) -> Program:
    """Chunks through stages: in step t stage s does chunk t - s.

    A meeting ends all steps but the last. The local stages are spread over the rounds
    of the other stages, to be done while messages are in flight.
    """
    last = chunks + len(stages) - 2
    for t in range(last + 1):
        active = [
            list(stage(t - s)) for s, stage in enumerate(stages) if 0 <= t - s < chunks
        ]
        local_stages = [x for x in active if not any(r.comm for r in x)]
        rounds = list(
            merge_rounds(*(iter(x) for x in active if any(r.comm for r in x)))
        )
        steps = (s for x in local_stages for r in x for s in r.then)
        parts = spread(steps, max(len(rounds), 1))
        pairs_of_round = zip(rounds or [Round()], parts, strict=True)
        *before, end = (
            Round(r.comm, (*r.then, *meanwhile)) for r, meanwhile in pairs_of_round
        )
        yield from before
        yield Round(end.comm, end.then, meet=t < last)


#: data on their way through nodes
Transfer: TypeAlias = "Flow | NodeExchange"


@lru_cache(maxsize=8)
def planned(
    nodes: Nodes, transfers: tuple[Transfer, ...], lanes: int, size: int, startup: float
) -> tuple[Transfer, ...]:
    """Transfers in chunks that take up to `size` elements of a node's memory.

    Without a number of lanes, as many lanes as still send long messages.
    """
    need = max(
        sum(transfer.footprint(node) for transfer in transfers) for node in set(nodes)
    )
    ranks_per_vertex = max(
        max(transfer.sources.max_ranks, transfer.sinks.max_ranks)
        for transfer in transfers
    )
    amount = Amount(
        need=need,
        volume=max(transfer.volume for transfer in transfers),
        messages=max(transfer.messages for transfer in transfers),
        part=max(transfer.part for transfer in transfers),
    )
    chunks, lanes = shape(amount, ranks_per_vertex, size, startup, lanes)
    return tuple(transfer.cut(chunks, lanes, startup) for transfer in transfers)


def through_nodes(
    r: int,
    nodes: Nodes,
    transfers: Sequence[Transfer],
    lanes: int,
    size: int,
    startup: float,
) -> Program:
    """The program of rank r in transfers of one kind: in, across by lanes, out."""
    cut_transfers = planned(nodes, tuple(transfers), lanes, size, startup)
    chunks = cut_transfers[0].chunks
    starts = list(
        accumulate(
            (transfer.footprint(nodes[r]) for transfer in cut_transfers), initial=0
        )
    )

    def placed_transfers(c: int) -> Iterator[tuple[Transfer, int]]:
        """The transfers, and the first element of each for chunk c in "node"."""
        for transfer, start in zip(cut_transfers, starts, strict=False):
            yield transfer, c % len(stages) * starts[-1] + start

    def bring(c: int) -> Program:
        yield Round(
            then=tuple(
                s
                for transfer, base in placed_transfers(c)
                for s in transfer.bring(r, c, base)
            )
        )

    def combine(c: int) -> Program:
        yield Round(
            then=tuple(
                s
                for transfer, base in placed_transfers(c)
                for s in transfer.combine(r, c, base)
            )
        )

    def across(c: int) -> Program:
        return apart(
            *(transfer.across(r, c, base) for transfer, base in placed_transfers(c))
        )

    def take(c: int) -> Program:
        yield Round(
            then=tuple(
                s
                for transfer, base in placed_transfers(c)
                for s in transfer.take(r, c, base)
            )
        )

    stages = [bring]
    if cut_transfers[0].summed and chunks > 1:
        stages.append(combine)
    if not cut_transfers[0].one_node:
        stages.append(across)
    stages.append(take)
    return pipeline(stages, chunks)
