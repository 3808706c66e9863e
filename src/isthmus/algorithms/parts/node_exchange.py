"""Blocks from everyone to everyone through nodes (see `nodes`): Alltoall and Alltoallv.

Each node sends every other node a part with the blocks of all its ranks, in a single
round.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise

from ...schedules.ir import Copy, Local, Program, Recv, Round, Send
from ...schedules.layout import cut
from .nodes import Team, VectorParts, VectorRun, Window, pairs


@dataclass(frozen=True)
class BlockTable:
    """The blocks that ranks have in `buf`, one for every rank of the other end.

    `rows` has the edges of the blocks of each rank from `base` on; a single row holds
    for all ranks. The other end is numbered from `other` on.
    """

    team: Team
    rows: tuple[tuple[int, ...], ...]
    base: int
    other: int
    buf: str

    def row(self, r: int) -> tuple[int, ...]:
        """The edges of the blocks of rank r."""
        return self.rows[r - self.base if len(self.rows) > 1 else 0]

    @cached_property
    def _starts(self) -> dict[int, int]:
        """The first element of each rank's buffer in the vector of the rank's vertex.

        The vector has the buffers of all ranks of the vertex, one after the other.
        """
        starts: dict[int, int] = {}
        for ranks in self.team.ranks:
            sizes = (self.row(r)[-1] for r in ranks)
            starts.update(zip(ranks, accumulate(sizes, initial=0), strict=False))
        return starts

    def window(self, r: int) -> Window:
        """The buffer of a rank, in the vector of the rank's vertex."""
        start = self._starts[r]
        return Window(self.buf, start, self.row(r)[-1], start)

    def run(self, r: int, other: int) -> VectorRun:
        """The block from rank r to rank `other`, in the vector of r's vertex."""
        low, high = self.row(r)[other - self.other : other - self.other + 2]
        return self._starts[r] + low, high - low


def _slices(run: VectorRun, n: int) -> list[VectorRun]:
    """The n consecutive parts of a run."""
    start, size = run
    cuts = [int(cut(size, n, i)) for i in range(n + 1)]
    return [(start + low, high - low) for low, high in pairwise(cuts)]


@dataclass(frozen=True)
class NodeExchange:
    """A block from every source to every sink.

    With more chunks than ranks on a node, blocks are cut, so that all ranks of a node
    have a part in every chunk.
    """

    sent: BlockTable
    received: BlockTable
    chunks: int = 1
    lanes: int = 1
    summed: bool = False

    def cut(self, chunks: int, lanes: int, startup: float) -> NodeExchange:
        """The exchange in a number of chunks and lanes."""
        return replace(self, chunks=chunks, lanes=lanes)

    @property
    def sources(self) -> Team:
        """The team of ranks with the blocks."""
        return self.sent.team

    @property
    def sinks(self) -> Team:
        """The team of ranks to receive the blocks."""
        return self.received.team

    @property
    def at_home(self) -> bool:
        """Whether sources and sinks are on the same nodes."""
        return self.sources.nodes == self.sinks.nodes

    @property
    def one_node(self) -> bool:
        """Whether all ranks are on a single node, and no message is needed."""
        return self.at_home and self.sources.n == 1

    @cached_property
    def volume(self) -> float:
        """The most elements that pass the port of a node."""
        return max(sum(self._out(x).totals) for x in range(self.sources.n))

    @property
    def messages(self) -> int:
        """The number of messages that wait for each other."""
        return max(self.sources.n, self.sinks.n) - self.at_home

    @cached_property
    def part(self) -> float:
        """The most elements that a vertex sends to another."""
        return max(max(self._out(x).totals) for x in range(self.sources.n))

    @cached_property
    def _parts_of_vertex(self) -> dict[tuple[str, int], VectorParts]:
        return {}

    def _out(self, x: int) -> VectorParts:
        """The blocks that vertex x sends, as parts for the vertices of the sinks."""
        if ("out", x) not in self._parts_of_vertex:
            runs_by_sink = tuple(self._runs(x, y, 0) for y in range(self.sinks.n))
            self._parts_of_vertex["out", x] = VectorParts(
                runs_by_sink, self.chunks, self.lanes
            )
        return self._parts_of_vertex["out", x]

    def _in(self, y: int) -> VectorParts:
        """The blocks that vertex y receives, as parts of the vertices of the sources.

        The blocks of a part are in the order in which the source sends them.
        """
        if ("in", y) not in self._parts_of_vertex:
            runs_by_source = tuple(self._runs(x, y, 1) for x in range(self.sources.n))
            self._parts_of_vertex["in", y] = VectorParts(
                runs_by_source, self.chunks, self.lanes
            )
        return self._parts_of_vertex["in", y]

    def _runs(self, x: int, y: int, end: int) -> tuple[VectorRun, ...]:
        """The blocks from vertex x to vertex y, as runs at the end `end`: 0 or 1.

        The order is by diagonals, so that any few blocks are of many sources and for
        many sinks, and all ranks of both nodes copy a part of every chunk.
        """
        senders, receivers = self.sources.ranks[x], self.sinks.ranks[y]
        n, m = -(-self.chunks // self.sources.max_ranks), len(receivers)
        pairs_by_diagonal = (
            (a, receivers[(i + d) % m]) for d in range(m) for i, a in enumerate(senders)
        )
        if end == 0:
            runs = [self.sent.run(a, b) for a, b in pairs_by_diagonal]
        else:
            runs = [self.received.run(b, a) for a, b in pairs_by_diagonal]
        if n == 1:
            return tuple(runs)
        parts = zip(*(_slices(run, n) for run in runs), strict=True)
        return tuple(run for part in parts for run in part)

    def _footprint_in(self, node: Hashable) -> int:
        """The elements of "node" that the sources on a node bring."""
        if node not in self.sources.nodes:
            return 0
        return self._out(self.sources.nodes.index(node)).chunk(0).total

    def footprint(self, node: Hashable) -> int:
        """The elements of "node" that a chunk takes on a node."""
        footprint = self._footprint_in(node)
        if node in self.sinks.nodes and not self.one_node:
            footprint += self._in(self.sinks.nodes.index(node)).chunk(0).total
        return footprint

    def bring(self, r: int, c: int, base: int) -> Iterator[Local]:
        """Copy the blocks of a source into "node"."""
        if r in self.sources.places:
            x, _ = self.sources.places[r]
            parts = self._out(x)
            part_starts = {
                z: base + at for z, at in enumerate(parts.chunk(c).begins[:-1])
            }
            for own_span, node_span in pairs(
                parts, c, self.sent.window(r), part_starts
            ):
                yield Copy(own_span, node_span)

    def combine(self, r: int, c: int, base: int) -> Iterator[Local]:
        """No local steps, since blocks are not combined."""
        return iter(())

    def take(self, r: int, c: int, base: int) -> Iterator[Local]:
        """Copy the blocks for a sink out of "node".

        Blocks of the sink's own node still lie where their sources brought them.
        """
        if r not in self.sinks.places:
            return
        y, _ = self.sinks.places[r]
        parts, low = self._in(y), base + self._footprint_in(self.sinks.nodes[y])
        part_starts = {z: low + at for z, at in enumerate(parts.chunk(c).begins[:-1])}
        if self.at_home:
            part_starts[y] = base + self._out(y).chunk(c).begins[y]
        for own_span, node_span in pairs(
            parts, c, self.received.window(r), part_starts
        ):
            yield Copy(node_span, own_span)

    def across(self, r: int, c: int, base: int) -> Program:
        """The round of messages, in every lane, to and from all other nodes."""
        comm: list[Send | Recv] = []
        turns = max(self.sources.n, self.sinks.n)
        if r in self.sinks.places:
            y, i = self.sinks.places[r]
            chunk = self._in(y).chunk(c)
            at = base + self._footprint_in(self.sinks.nodes[y])
            for k in range(i, chunk.lanes, len(self.sinks.ranks[y])):
                for x in ((y - t) % turns for t in range(turns)):
                    if x < self.sources.n and not (self.at_home and x == y):
                        data = chunk.piece(x, k, at + chunk.begins[x])
                        comm.append(Recv(self.sources.driver(x, k), (data,)))
        if r in self.sources.places:
            x, i = self.sources.places[r]
            chunk = self._out(x).chunk(c)
            for k in range(i, chunk.lanes, len(self.sources.ranks[x])):
                for y in ((x + t) % turns for t in range(turns)):
                    if y < self.sinks.n and not (self.at_home and x == y):
                        data = chunk.piece(y, k, base + chunk.begins[y])
                        comm.append(Send(self.sinks.driver(y, k), (data,)))
        yield Round(tuple(comm))
