"""The reference machine: all ranks in one process, the definition of the form.

Sends are synchronous: a message moves when both ends are in their round, so a schedule
that leans on buffering ends in `Deadlock`. Memory holds marks (see `marks`) in place of
data. The ranks of a node share the buffer "node"; what one of them writes there between
two meetings may be touched by no other, or it is a `Race`.

Whoever receives a message has heard of its sender, and of all that the sender had heard
of when it posted it: so it is known who cannot have ended before whom began.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import reduce
from operator import or_

import numpy as np

from ..schedules.ir import Comm, Data, Library, Recv, Reduce, Round, Send, Span
from ..schedules.program import reads, writes
from .errors import BadMessage, Deadlock, Overlap, Race, Unwritten
from .marks import Memory, blank, combine

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


class _Node:
    """The ranks of a node, and who has touched what of its memory since they met."""

    def __init__(self, members: list[int], size: int) -> None:
        self.members, self.met = members, 0
        self.writer, self.reader = np.full((2, size), _NOBODY)
        self.come: list[_Rank] = []

    def touch(self, rank: _Rank, span: Span, writes: bool) -> None:
        """Note that a rank reads or writes elements of the node's memory."""
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

    def meet(self, rank: _Rank) -> list[_Rank]:
        """A rank comes to the meeting; all of them, if it is the last one."""
        self.come.append(rank)
        if len(self.come) < len(self.members):
            return []
        everyone, self.come = self.come, []
        self.writer[:] = self.reader[:] = _NOBODY
        self.met += 1
        return everyone


class _Rank:
    """Where one rank stands."""

    def __init__(
        self, number: int, program: Iterable[Round], memory: Memory, node: _Node
    ) -> None:
        self.number = number
        self.program: Iterator[Round] = iter(program)
        self.memory, self.node = memory, node
        self.index = -1
        self.round = Round()
        self.open: list[Comm] = []
        self.done = False
        #: of whom it has heard, a bit for each rank; and in this round
        self.heard, self.news = 1 << number, 0

    @property
    def where(self) -> str:
        return f"rank {self.number}, round {self.index}"

    def view(self, span: Span) -> np.ndarray:
        """The elements of a span, which must lie in its buffer."""
        buf = self.memory.get(span.buf, _NOTHING)
        if not 0 <= span.start <= span.start + span.size <= len(buf):
            raise BadMessage(
                f"{self.where}: {show(span)} lies outside a buffer of {len(buf)}"
            )
        return buf[span.start : span.start + span.size]

    def load(self, spans: Data) -> np.ndarray:
        """The elements of a message, in order."""
        if len(spans) == 1:
            return self.read(next(iter(spans)))
        return np.concatenate([self.read(s) for s in spans]) if spans else _NOTHING

    def store(self, spans: Data, data: np.ndarray) -> None:
        """Put a message where it belongs."""
        at = 0
        for s in spans:
            self.written(s)[:] = data[at : at + s.size]
            at += s.size

    def read(self, span: Span) -> np.ndarray:
        """The elements of a span, to be read: somebody must have written them."""
        found = self.view(span)
        if span.buf == "node":
            self.node.touch(self, span, writes=False)
        blank = found["lo"] < 0
        if blank.any():
            at = span.start + int(np.argmax(blank))
            raise Unwritten(f"{self.where}: {span.buf}[{at}] is read, nobody wrote it")
        return found

    def written(self, span: Span) -> np.ndarray:
        """The elements of a span, to be written."""
        found = self.view(span)
        if span.buf == "node":
            self.node.touch(self, span, writes=True)
        return found

    def finish_round(self) -> None:
        """Do the local steps."""
        self.heard |= self.news
        for s in self.round.then:
            src, dst = self.read(s.src), self.written(s.dst)
            if len(src) != len(dst):
                raise BadMessage(
                    f"{self.where}: {show(s.src)} and {show(s.dst)} differ"
                )
            if isinstance(s, Reduce):
                self.read(s.dst)
                combine(src, dst, f"{self.where}: {show(s.src)} to {show(s.dst)}")
            else:
                dst[:] = src.copy()


def _size(c: Send | Recv) -> int:
    return sum(s.size for s in c.data)


class _Machine:
    """All ranks, and the ends of messages that wait for their other end."""

    def __init__(self, ranks: Sequence[_Rank]) -> None:
        self.ranks = ranks
        self.ready = deque(ranks)
        self.sends: dict[tuple[int, int], deque[Send]] = defaultdict(deque)
        self.recvs: dict[tuple[int, int], deque[Recv]] = defaultdict(deque)
        self.halls: dict[int, list[tuple[_Rank, Library]]] = defaultdict(list)

    def enter(self, rank: _Rank) -> None:
        """Take the next round and put all its messages in flight."""
        following = next(rank.program, None)
        if following is None:
            rank.done = True
            return
        rank.index, rank.round = rank.index + 1, following
        check_overlap(following, rank.where)
        rank.open = list(following.comm)
        for c in following.comm:
            self.post(rank, c)
        self.leave(rank)

    def post(self, rank: _Rank, c: Comm) -> None:
        """Put one end of a message in flight, and move it if the other is there."""
        if isinstance(c, Library):
            self.meet(rank, c)
            return
        other = c.to if isinstance(c, Send) else c.frm
        if not 0 <= other < len(self.ranks):
            raise BadMessage(f"{rank.where}: there is no rank {other}")
        if isinstance(c, Send):
            pair = (rank.number, other)
            self.sends[pair].append(c)
        else:
            pair = (other, rank.number)
            self.recvs[pair].append(c)
        if self.sends[pair] and self.recvs[pair]:
            self.move(pair, self.sends[pair].popleft(), self.recvs[pair].popleft())

    def move(self, pair: tuple[int, int], send: Send, recv: Recv) -> None:
        """Carry a message from its sender to its receiver."""
        source, target = self.ranks[pair[0]], self.ranks[pair[1]]
        if _size(send) != _size(recv):
            raise BadMessage(
                f"{source.where} sends {_size(send)} elements to {target.where}, "
                f"which expects {_size(recv)}"
            )
        target.store(recv.data, source.load(send.data))
        target.news |= source.heard
        for rank, c in ((source, send), (target, recv)):
            _forget(rank.open, c)
            self.leave(rank)

    def meet(self, rank: _Rank, c: Library) -> None:
        """The library's allgather, once the whole group has come."""
        hall = self.halls[c.base]
        hall.append((rank, c))
        if len(hall) < c.n:
            return
        del self.halls[c.base]
        blocks = [(c.block(i),) for i in range(c.n)]
        pieces = [
            (block, self.ranks[c.base + i].load(block))
            for i, block in enumerate(blocks)
        ]
        everyone = reduce(or_, (member.heard for member, _ in hall))
        for member, call in hall:
            member.news |= everyone
            for spans, data in pieces:
                member.store(spans, data)
            _forget(member.open, call)
            self.leave(member)

    def leave(self, rank: _Rank) -> None:
        """Once nothing of the round is in flight, end it and go on."""
        if not rank.open and rank.round is not _LEFT:
            rank.finish_round()
            meets, rank.round = rank.round.meet, _LEFT
            everyone = rank.node.meet(rank) if meets else [rank]
            heard = reduce(or_, (x.heard for x in everyone), 0)
            for x in everyone:
                x.heard |= heard
            self.ready.extend(everyone)

    def run(self) -> None:
        while self.ready:
            self.enter(self.ready.popleft())
        stuck = [r for r in self.ranks if not r.done]
        if stuck:
            raise Deadlock("; ".join(_waits(r) for r in stuck[:8]))
        left = [
            pair for ends in (self.sends, self.recvs) for pair in ends if ends[pair]
        ]
        if left:
            raise BadMessage(f"messages from, to {left[:8]} have only one end")


_LEFT = Round()


def _forget(open_: list[Comm], c: Comm) -> None:
    """Take away this very end; equal ones of the same round stay."""
    del open_[next(i for i, x in enumerate(open_) if x is c)]


def _waits(rank: _Rank) -> str:
    """What a stuck rank waits for."""
    if rank in rank.node.come:
        late = [
            r for r in rank.node.members if r not in {x.number for x in rank.node.come}
        ]
        return f"{rank.where} waits for ranks {late} at meeting {rank.node.met}"
    ends = [
        f"to send {_size(c)} to rank {c.to}"
        if isinstance(c, Send)
        else f"for {_size(c)} from rank {c.frm}"
        if isinstance(c, Recv)
        else "for its group"
        for c in rank.open
    ]
    return f"{rank.where} waits " + ", ".join(ends)


def run(
    programs: Sequence[Iterable[Round]],
    memory: Sequence[Memory],
    nodes: Sequence[Hashable] = (),
) -> list[int]:
    """Run every rank's rounds on its memory, in place; of whom each has then heard, a
    bit for each rank. Ranks with equal entries in `nodes` are on one node, and have the
    same array as their buffer "node"; without it, each is on a node of its own."""
    where = nodes or range(len(memory))
    members: dict[Hashable, list[int]] = defaultdict(list)
    for r, node in enumerate(where):
        members[node].append(r)
    made = {
        node: _Node(ranks, len(memory[ranks[0]].get("node", ())))
        for node, ranks in members.items()
    }
    ranks = [
        _Rank(r, program, memory[r], made[node])
        for r, (program, node) in enumerate(zip(programs, where, strict=True))
    ]
    _Machine(ranks).run()
    return [rank.heard for rank in ranks]
