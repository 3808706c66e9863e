"""Who waits for whom: all ranks, as far as messages and meetings let them.

A rank posts all ends of messages of a round at once. The n-th send from one rank to
another meets the n-th receive there from that rank, whatever rounds these are in: a
rank may be rounds ahead. Sends are synchronous; a rank is in its next round when all
its messages have moved, and after a meeting when all ranks of its node have come.

That is all the form says about time. What a message does is the business of a watcher:
the reference machine moves marks, pictures and pages keep the steps, models take the
messages of a step together.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Protocol

from ..schedules.ir import Comm, Library, Recv, Round, Send
from .errors import BadMessage, Deadlock


class Rank:
    """Where one rank stands."""

    def __init__(self, number: int, program: Iterable[Round]) -> None:
        self.number = number
        self.program: Iterator[Round] = iter(program)
        #: its round, and the number of that; none between rounds and in the end
        self.round: Round | None = None
        self.index = -1
        self.open: set[End] = set()
        self.done = False
        #: the step in which it is: no message can move before both ends are in it
        self.step = 0
        #: the step of the last message of its round
        self.busy_until = 0

    @property
    def where(self) -> str:
        """In words."""
        return f"rank {self.number}, round {self.index}"


class End:
    """One end of a message, or a call of the library, that a rank has posted."""

    __slots__ = ("comm", "rank")

    def __init__(self, rank: Rank, comm: Comm) -> None:
        self.rank, self.comm = rank, comm


class Watcher(Protocol):
    """What is done with all that happens, in an order that the form allows."""

    def enters(self, rank: Rank, r: Round) -> None:
        """A rank is in a round."""

    def moves(self, source: Rank, send: Send, target: Rank, recv: Recv) -> None:
        """Both ends of a message are there, of one size."""

    def gathers(self, ranks: Sequence[Rank], calls: Sequence[Library]) -> None:
        """All ranks of a group call their library, in their order."""

    def works(self, rank: Rank, r: Round) -> None:
        """A rank does the local steps of a round whose messages have moved."""

    def meets(self, ranks: Sequence[Rank]) -> None:
        """All ranks of a node have come to a meeting."""


class Node:
    """The ranks of a node, and those that have come to its next meeting."""

    def __init__(self, members: list[int]) -> None:
        self.members, self.met = members, 0
        self.come: list[Rank] = []


def always(r: Round) -> bool:
    """Every round takes a step."""
    return True


def size(c: Send | Recv) -> int:
    """The elements of a message."""
    return sum(s.size for s in c.data)


class Matcher:
    """All ranks, and the ends of messages that wait for their other end.

    Ranks with equal entries in `nodes` meet each other; without it, each is on a node
    of its own. A round that takes no step is in that of the round before it.
    """

    def __init__(
        self,
        programs: Sequence[Iterable[Round]],
        watcher: Watcher,
        nodes: Sequence[Hashable] = (),
        takes_step: Callable[[Round], bool] = always,
    ) -> None:
        self.ranks = [Rank(r, program) for r, program in enumerate(programs)]
        self.watcher, self.takes_step = watcher, takes_step
        members: dict[Hashable, list[int]] = defaultdict(list)
        for r, node in enumerate(nodes or range(len(self.ranks))):
            members[node].append(r)
        self.nodes = [Node(ranks) for ranks in members.values()]
        self.node_of = {r: node for node in self.nodes for r in node.members}
        self.sends: dict[tuple[int, int], deque[End]] = defaultdict(deque)
        self.recvs: dict[tuple[int, int], deque[End]] = defaultdict(deque)
        self.halls: dict[tuple[int, int], list[End]] = defaultdict(list)
        self.ready = deque(self.ranks)

    def run(self) -> None:
        """Do all rounds of all ranks."""
        while self.ready:
            self._enter(self.ready.popleft())
        stuck = [rank for rank in self.ranks if not rank.done]
        if stuck:
            raise Deadlock("; ".join(map(self._waits, stuck[:8])))
        ends = (self.sends, self.recvs)
        left = [pair for waiting in ends for pair in waiting if waiting[pair]]
        if left:
            raise BadMessage(f"messages from, to {left[:8]} have only one end")

    def _enter(self, rank: Rank) -> None:
        """Take the next round and post all its ends."""
        following = next(rank.program, None)
        if following is None:
            rank.done = True
            return
        rank.index, rank.round = rank.index + 1, following
        rank.busy_until = rank.step
        self.watcher.enters(rank, following)
        ends = [End(rank, c) for c in following.comm]
        rank.open = set(ends)
        for end in ends:
            self._post(end)
        self._leave(rank)

    def _post(self, end: End) -> None:
        """Put one end in flight, and let the message move if the other is there."""
        rank, c = end.rank, end.comm
        if isinstance(c, Library):
            self._call(end, c)
            return
        other = c.to if isinstance(c, Send) else c.frm
        if not 0 <= other < len(self.ranks):
            raise BadMessage(f"{rank.where}: there is no rank {other}")
        sends = isinstance(c, Send)
        pair = (rank.number, other) if sends else (other, rank.number)
        (self.sends if sends else self.recvs)[pair].append(end)
        if self.sends[pair] and self.recvs[pair]:
            self._move(self.sends[pair].popleft(), self.recvs[pair].popleft())

    def _move(self, sent: End, received: End) -> None:
        source, target = sent.rank, received.rank
        send, recv = sent.comm, received.comm
        assert isinstance(send, Send) and isinstance(recv, Recv)
        if size(send) != size(recv):
            raise BadMessage(
                f"{source.where} sends {size(send)} elements to {target.where}, "
                f"which expects {size(recv)}"
            )
        step = max(source.step, target.step)
        source.busy_until = max(source.busy_until, step)
        target.busy_until = max(target.busy_until, step)
        self.watcher.moves(source, send, target, recv)
        for end in (sent, received):
            end.rank.open.discard(end)
            self._leave(end.rank)

    def _call(self, end: End, c: Library) -> None:
        """The library's call, once the whole group has come."""
        hall = self.halls[c.base, c.n]
        hall.append(end)
        if len(hall) < c.n:
            return
        del self.halls[c.base, c.n]
        members = sorted(hall, key=lambda x: x.rank.number)
        ranks = [x.rank for x in members]
        step = max(rank.step for rank in ranks)
        for rank in ranks:
            rank.busy_until = max(rank.busy_until, step)
        calls = [x.comm for x in members if isinstance(x.comm, Library)]
        self.watcher.gathers(ranks, calls)
        for x in members:
            x.rank.open.discard(x)
            self._leave(x.rank)

    def _leave(self, rank: Rank) -> None:
        """Once nothing of the round is in flight, end it and go on."""
        r = rank.round
        if rank.open or r is None:
            return
        rank.round, rank.step = None, rank.busy_until
        self.watcher.works(rank, r)
        takes_step = self.takes_step(r)
        if not r.meet:
            rank.step += takes_step
            self.ready.append(rank)
            return
        node = self.node_of[rank.number]
        node.come.append(rank)
        if len(node.come) < len(node.members):
            return
        everyone, node.come = node.come, []
        node.met += 1
        step = max(x.step for x in everyone)
        for x in everyone:
            x.step = step
        self.watcher.meets(everyone)
        for x in everyone:
            x.step += 1
        self.ready.extend(everyone)

    def _waits(self, rank: Rank) -> str:
        """What a stuck rank waits for."""
        node = self.node_of[rank.number]
        if rank in node.come:
            come = {x.number for x in node.come}
            late = [r for r in node.members if r not in come]
            return f"{rank.where} waits for ranks {late} at meeting {node.met}"
        r = rank.round
        open_ = {id(end.comm) for end in rank.open}
        ends = [_open(c) for c in (r.comm if r else ()) if id(c) in open_]
        return f"{rank.where} waits " + ", ".join(ends)


def _open(c: Comm) -> str:
    """An end that waits, in words."""
    if isinstance(c, Send):
        return f"to send {size(c)} to rank {c.to}"
    if isinstance(c, Recv):
        return f"for {size(c)} from rank {c.frm}"
    return "for its group"
