"""The reference machine: all ranks in one process.

It defines what the intermediate form (`ir`) means.

`matcher` decides which ranks wait: sends are synchronous, so a schedule that relies on
buffering ends in `Deadlock`. The effect on memory is here. Memory holds marks (see
`marks`) in place of data. The ranks of a node share the buffer "node"; an element
written between two meetings may be touched by no second rank of the node, or the
schedule has a `Race`.

For each rank the machine also keeps the set of ranks known to have begun, and each
message carries the set of the sender to the receiver: a contract may demand that no
rank ends before certain ranks have begun.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from functools import reduce
from operator import or_

import numpy as np

from ..schedules.ir import Data, Library, Recv, Reduce, Round, Send, Span
from ..schedules.program import reads, writes
from .errors import BadMessage, Overlap, Race, Unwritten
from .marks import Memory, blank, combine
from .matcher import Matcher, Rank

_NO_ELEMENTS = blank(0)


def show(span: Span) -> str:
    """A span, in the notation of a Python slice."""
    return f"{span.buf}[{span.start}:{span.start + span.size}]"


def check_overlap(r: Round, where: str) -> None:
    """Raise if two writes of a round overlap, or a write and a read.

    The result would be open, since messages of a round may move in any order.
    """
    spans = [(s.buf, s.start, True, s) for s in writes(r)]
    spans += [(s.buf, s.start, False, s) for s in reads(r)]
    spans.sort(key=lambda entry: entry[:3])
    farthest: Span | None = None
    farthest_end, written_end = 0, 0
    for buf, start, is_write, s in spans:
        if farthest is None or buf != farthest.buf:
            farthest, farthest_end, written_end = s, start, start
        if start < (farthest_end if is_write else written_end):
            raise Overlap(f"{where}: {show(s)} overlaps {show(farthest)} in one round")
        end = start + s.size
        if end >= farthest_end:
            farthest, farthest_end = s, end
        if is_write:
            written_end = max(written_end, end)


#: in place of a rank: no rank, or several
_NOBODY, _SEVERAL = -1, -2


class _NodeMemory:
    """The last writer and reader of each element of a node's memory since a meeting."""

    def __init__(self, members: list[int], size: int) -> None:
        self.members, self.meetings = members, 0
        self.writer, self.reader = np.full((2, size), _NOBODY)

    def touch(self, rank: Rank, span: Span, writes: bool) -> None:
        """Record a read or a write of a rank; raise `Race` if not allowed.

        Reads are recorded as well, because nothing orders a read before a later write
        of another rank.
        """
        place = slice(span.start, span.start + span.size)
        users = ("writes", self.writer[place]), ("reads", self.reader[place])
        for verb, ranks in users:
            if verb == "reads" and not writes:
                continue
            foreign = (ranks != _NOBODY) & (ranks != rank.number)
            if foreign.any():
                i = int(np.argmax(foreign))
                first = f"rank {ranks[i]}" if ranks[i] >= 0 else "another rank"
                raise Race(
                    f"{rank.where} {'writes' if writes else 'reads'} "
                    f"node[{span.start + i}], which {first} {verb} between the same "
                    f"meetings (after meeting {self.meetings} of ranks {self.members})"
                )
        if writes:
            self.writer[place] = rank.number
            return
        readers = self.reader[place]
        alone = (readers == _NOBODY) | (readers == rank.number)
        self.reader[place] = np.where(alone, rank.number, _SEVERAL)

    def start_epoch(self) -> None:
        """Clear writers and readers, after a meeting."""
        self.writer[:] = self.reader[:] = _NOBODY
        self.meetings += 1


class _MarkedMemory:
    """The watcher that moves marks in the memory of all ranks, and keeps the sets of
    ranks known to have begun, a bit for each rank."""

    def __init__(self, memory: Sequence[Memory], nodes: Sequence[Hashable]) -> None:
        self.memory = memory
        members: dict[Hashable, list[int]] = defaultdict(list)
        for r, node in enumerate(nodes):
            members[node].append(r)
        shared = [
            _NodeMemory(ranks, len(memory[ranks[0]].get("node", ())))
            for ranks in members.values()
        ]
        self.nodes = {r: node for node in shared for r in node.members}
        self.known_begun = [1 << r for r in range(len(memory))]
        #: learned in the current round, and passed on from the next round on
        self.learned = [0] * len(memory)

    def enters(self, rank: Rank, r: Round) -> None:
        check_overlap(r, rank.where)

    def moves(self, source: Rank, send: Send, target: Rank, recv: Recv) -> None:
        self.store(target, recv.data, self.load(source, send.data))
        self.learned[target.number] |= self.known_begun[source.number]

    def gathers(self, ranks: Sequence[Rank], calls: Sequence[Library]) -> None:
        blocks = [(calls[0].block(i),) for i in range(len(ranks))]
        pieces = [
            (block, self.load(rank, block))
            for rank, block in zip(ranks, blocks, strict=True)
        ]
        everyone = reduce(or_, (self.known_begun[rank.number] for rank in ranks))
        for rank in ranks:
            self.learned[rank.number] |= everyone
            for spans, data in pieces:
                self.store(rank, spans, data)

    def works(self, rank: Rank, r: Round) -> None:
        self.known_begun[rank.number] |= self.learned[rank.number]
        for s in r.then:
            src, dst = self.read(rank, s.src), self.written(rank, s.dst)
            if len(src) != len(dst):
                raise BadMessage(
                    f"{rank.where}: {show(s.src)} and {show(s.dst)} differ"
                )
            if isinstance(s, Reduce):
                self.read(rank, s.dst)
                combine(src, dst, f"{rank.where}: {show(s.src)} to {show(s.dst)}")
            else:
                dst[:] = src.copy()

    def meets(self, ranks: Sequence[Rank]) -> None:
        self.nodes[ranks[0].number].start_epoch()
        everyone = reduce(or_, (self.known_begun[rank.number] for rank in ranks))
        for rank in ranks:
            self.known_begun[rank.number] |= everyone

    def view(self, rank: Rank, span: Span) -> np.ndarray:
        """The elements of a span, refused if outside the buffer."""
        buf = self.memory[rank.number].get(span.buf, _NO_ELEMENTS)
        if not 0 <= span.start <= span.start + span.size <= len(buf):
            raise BadMessage(
                f"{rank.where}: {show(span)} lies outside a buffer of {len(buf)}"
            )
        return buf[span.start : span.start + span.size]

    def load(self, rank: Rank, spans: Data) -> np.ndarray:
        """The elements of a message, read in the order of its spans."""
        if len(spans) == 1:
            return self.read(rank, next(iter(spans)))
        parts = [self.read(rank, s) for s in spans]
        return np.concatenate(parts) if parts else _NO_ELEMENTS

    def store(self, rank: Rank, spans: Data, data: np.ndarray) -> None:
        """Write the elements of a message into its spans."""
        offset = 0
        for s in spans:
            self.written(rank, s)[:] = data[offset : offset + s.size]
            offset += s.size

    def read(self, rank: Rank, span: Span) -> np.ndarray:
        """The elements of a span to read; raise if an element has no data."""
        elements = self.view(rank, span)
        if span.buf == "node":
            self.nodes[rank.number].touch(rank, span, writes=False)
        blank = elements["lo"] < 0
        if blank.any():
            i = span.start + int(np.argmax(blank))
            raise Unwritten(f"{rank.where}: {span.buf}[{i}] is read, nobody wrote it")
        return elements

    def written(self, rank: Rank, span: Span) -> np.ndarray:
        """The elements of a span to write."""
        elements = self.view(rank, span)
        if span.buf == "node":
            self.nodes[rank.number].touch(rank, span, writes=True)
        return elements


def run(
    programs: Sequence[Iterable[Round]],
    memory: Sequence[Memory],
    nodes: Sequence[Hashable] = (),
) -> list[int]:
    """Run the rounds of all ranks on their memory, in place.

    Returns the set of ranks known to have begun of each rank, a bit for each rank.
    Ranks with equal entries in `nodes` share a node and the array of the buffer "node";
    without `nodes`, each rank is on a node alone.
    """
    node_of_rank = nodes or range(len(memory))
    marked_memory = _MarkedMemory(memory, node_of_rank)
    Matcher(programs, marked_memory, node_of_rank).run()
    return marked_memory.known_begun
