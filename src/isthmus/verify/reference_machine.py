"""The reference machine: all ranks in one process, the definition of the form.

Who waits for whom is the matter of `matcher`: sends are synchronous, so a schedule that
leans on buffering ends in `Deadlock`. Here is what then happens to memory. It holds
marks (see `marks`) in place of data. The ranks of a node share the buffer "node"; what
one of them writes there between two meetings may be touched by no other, or it is a
`Race`.

Whoever receives a message has heard of its sender, and of all that the sender had heard
of when it posted it: so it is known who cannot have ended before whom began.
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

_NOTHING = blank(0)


def show(span: Span) -> str:
    """A span as Python would slice it."""
    return f"{span.buf}[{span.start}:{span.start + span.size}]"


def check_overlap(r: Round, where: str) -> None:
    """Raise if two writes of a round overlap, or a write and a read."""
    spans = [(s.buf, s.start, True, s) for s in writes(r)]
    spans += [(s.buf, s.start, False, s) for s in reads(r)]
    spans.sort(key=lambda x: x[:3])
    far: Span | None = None
    far_end, written_end = 0, 0
    for buf, start, written, s in spans:
        if far is None or buf != far.buf:
            far, far_end, written_end = s, start, start
        if start < (far_end if written else written_end):
            raise Overlap(f"{where}: {show(s)} overlaps {show(far)} in one round")
        end = start + s.size
        if end >= far_end:
            far, far_end = s, end
        if written:
            written_end = max(written_end, end)


_NOBODY, _SEVERAL = -1, -2


class _NodeMemory:
    """Who has touched what of a node's memory since its ranks met."""

    def __init__(self, members: list[int], size: int) -> None:
        self.members, self.met = members, 0
        self.writer, self.reader = np.full((2, size), _NOBODY)

    def touch(self, rank: Rank, span: Span, writes: bool) -> None:
        """Note that a rank reads or writes elements."""
        at = slice(span.start, span.start + span.size)
        for verb, who in (("writes", self.writer[at]), ("reads", self.reader[at])):
            if verb == "reads" and not writes:
                continue
            other = (who != _NOBODY) & (who != rank.number)
            if other.any():
                i = int(np.argmax(other))
                first = f"rank {who[i]}" if who[i] >= 0 else "another rank"
                raise Race(
                    f"{rank.where} {'writes' if writes else 'reads'} "
                    f"node[{span.start + i}], which {first} {verb} between the same "
                    f"meetings (after meeting {self.met} of ranks {self.members})"
                )
        if writes:
            self.writer[at] = rank.number
            return
        alone = (self.reader[at] == _NOBODY) | (self.reader[at] == rank.number)
        self.reader[at] = np.where(alone, rank.number, _SEVERAL)

    def forget(self) -> None:
        """Begin anew, after a meeting."""
        self.writer[:] = self.reader[:] = _NOBODY
        self.met += 1


class _Marks:
    """The memory of all ranks, and of whom each has heard, a bit for each rank."""

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
        self.heard = [1 << r for r in range(len(memory))]
        #: heard in this round: it counts from the next on
        self.news = [0] * len(memory)

    def enters(self, rank: Rank, r: Round) -> None:
        check_overlap(r, rank.where)

    def moves(self, source: Rank, send: Send, target: Rank, recv: Recv) -> None:
        self.store(target, recv.data, self.load(source, send.data))
        self.news[target.number] |= self.heard[source.number]

    def gathers(self, ranks: Sequence[Rank], calls: Sequence[Library]) -> None:
        blocks = [(calls[0].block(i),) for i in range(len(ranks))]
        pieces = [
            (block, self.load(rank, block))
            for rank, block in zip(ranks, blocks, strict=True)
        ]
        everyone = reduce(or_, (self.heard[rank.number] for rank in ranks))
        for rank in ranks:
            self.news[rank.number] |= everyone
            for spans, data in pieces:
                self.store(rank, spans, data)

    def works(self, rank: Rank, r: Round) -> None:
        self.heard[rank.number] |= self.news[rank.number]
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
        self.nodes[ranks[0].number].forget()
        everyone = reduce(or_, (self.heard[rank.number] for rank in ranks))
        for rank in ranks:
            self.heard[rank.number] |= everyone

    def view(self, rank: Rank, span: Span) -> np.ndarray:
        """The elements of a span, which must lie in its buffer."""
        buf = self.memory[rank.number].get(span.buf, _NOTHING)
        if not 0 <= span.start <= span.start + span.size <= len(buf):
            raise BadMessage(
                f"{rank.where}: {show(span)} lies outside a buffer of {len(buf)}"
            )
        return buf[span.start : span.start + span.size]

    def load(self, rank: Rank, spans: Data) -> np.ndarray:
        """The elements of a message, in order."""
        if len(spans) == 1:
            return self.read(rank, next(iter(spans)))
        parts = [self.read(rank, s) for s in spans]
        return np.concatenate(parts) if parts else _NOTHING

    def store(self, rank: Rank, spans: Data, data: np.ndarray) -> None:
        """Put a message where it belongs."""
        at = 0
        for s in spans:
            self.written(rank, s)[:] = data[at : at + s.size]
            at += s.size

    def read(self, rank: Rank, span: Span) -> np.ndarray:
        """The elements of a span, to be read: somebody must have written them."""
        found = self.view(rank, span)
        if span.buf == "node":
            self.nodes[rank.number].touch(rank, span, writes=False)
        blank = found["lo"] < 0
        if blank.any():
            at = span.start + int(np.argmax(blank))
            raise Unwritten(f"{rank.where}: {span.buf}[{at}] is read, nobody wrote it")
        return found

    def written(self, rank: Rank, span: Span) -> np.ndarray:
        """The elements of a span, to be written."""
        found = self.view(rank, span)
        if span.buf == "node":
            self.nodes[rank.number].touch(rank, span, writes=True)
        return found


def run(
    programs: Sequence[Iterable[Round]],
    memory: Sequence[Memory],
    nodes: Sequence[Hashable] = (),
) -> list[int]:
    """Run every rank's rounds on its memory, in place; of whom each has then heard, a
    bit for each rank. Ranks with equal entries in `nodes` are on one node, and have the
    same array as their buffer "node"; without it, each is on a node of its own."""
    where = nodes or range(len(memory))
    marks = _Marks(memory, where)
    Matcher(programs, marks, where).run()
    return marks.heard
