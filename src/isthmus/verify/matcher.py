"""The matching of sends and receives of all ranks, with their waiting and meetings.

A rank posts all ends of messages of a round at once. The n-th send of a rank to a peer
matches the peer's n-th receive from the rank, whatever rounds the two are in: a rank
may be rounds ahead. Sends are synchronous; a rank enters the next round when all
messages of the round have moved, and after a meeting when all ranks of the node have
come.

The intermediate form (`ir`) says nothing else about time. The effect of a message is
the business of a watcher: the reference machine moves marks, pictures and pages keep
the steps, cost models take the messages of a step together.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Protocol

from ..schedules.ir import Comm, Library, Recv, Round, Send
from .errors import BadMessage, Deadlock


class Rank:
    """The state of a rank: its round, and the ends in flight."""

    def __init__(self, number: int, program: Iterable[Round]) -> None:
        self.number = number
        self.program: Iterator[Round] = iter(program)
        #: the current round; None between rounds and after the last
        self.round: Round | None = None
        self.round_number = -1
        #: the ends of the round that wait for their peers
        self.open_ends: set[PostedEnd] = set()
        self.done = False
        #: the current step; a message moves in the later of the steps of its ends
        self.step = 0
        #: the step of the last message of the round so far
        self.busy_until = 0

    @property
    def where(self) -> str:
        """The rank and the round, as error messages name them."""
        return f"rank {self.number}, round {self.round_number}"


class PostedEnd:
    """A send, a receive or a call of the library that a rank has posted."""

    __slots__ = ("comm", "rank")

    def __init__(self, rank: Rank, comm: Comm) -> None:
        self.rank, self.comm = rank, comm


class Watcher(Protocol):
    """The receiver of all events of a run, in an order that the rules above allow."""

    def enters(self, rank: Rank, r: Round) -> None:
        """A rank enters a round."""

    def moves(self, source: Rank, send: Send, target: Rank, recv: Recv) -> None:
        """A message moves, whose ends have equal sizes."""

    def gathers(self, ranks: Sequence[Rank], calls: Sequence[Library]) -> None:
        """All ranks of a group, in rank order, call the library."""

    def works(self, rank: Rank, r: Round) -> None:
        """A rank does the local steps of a round, after the messages."""

    def meets(self, ranks: Sequence[Rank]) -> None:
        """All ranks of a node have come to a meeting."""


class _Node:
    """The ranks of a node, and the ranks that have come to the next meeting."""

    def __init__(self, members: list[int]) -> None:
        self.members, self.meetings = members, 0
        self.arrived: list[Rank] = []


def takes_always(r: Round) -> bool:
    """True: by default every round takes a step."""
    return True


def size(c: Send | Recv) -> int:
    """The number of elements in a message."""
    return sum(s.size for s in c.data)


class Matcher:
    """All ranks, and the posted ends that wait for their peers.

    Ranks with equal entries in `nodes` meet each other; without `nodes`, each rank is
    on a node alone. A round that takes no step shares the step of the round before, so
    that pictures have no empty steps.
    """

    def __init__(
        self,
        programs: Sequence[Iterable[Round]],
        watcher: Watcher,
        nodes: Sequence[Hashable] = (),
        takes_step: Callable[[Round], bool] = takes_always,
    ) -> None:
        self.ranks = [Rank(r, program) for r, program in enumerate(programs)]
        self.watcher, self.takes_step = watcher, takes_step
        members: dict[Hashable, list[int]] = defaultdict(list)
        for r, node in enumerate(nodes or range(len(self.ranks))):
            members[node].append(r)
        self.nodes = [_Node(ranks) for ranks in members.values()]
        self.node_of = {r: node for node in self.nodes for r in node.members}
        self.sends: dict[tuple[int, int], deque[PostedEnd]] = defaultdict(deque)
        self.recvs: dict[tuple[int, int], deque[PostedEnd]] = defaultdict(deque)
        self.library_calls: dict[tuple[int, int], list[PostedEnd]] = defaultdict(list)
        self.ready = deque(self.ranks)

    def run(self) -> None:
        """Run all rounds of all ranks; raise if ranks or messages are left over."""
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
        """Let a rank enter the next round and post all ends."""
        following = next(rank.program, None)
        if following is None:
            rank.done = True
            return
        rank.round_number, rank.round = rank.round_number + 1, following
        rank.busy_until = rank.step
        self.watcher.enters(rank, following)
        ends = [PostedEnd(rank, c) for c in following.comm]
        rank.open_ends = set(ends)
        for end in ends:
            self._post(end)
        self._leave(rank)

    def _post(self, end: PostedEnd) -> None:
        """Post an end, and move the message if the peer has posted the other end."""
        rank, c = end.rank, end.comm
        if isinstance(c, Library):
            self._call_library(end, c)
            return
        peer = c.to if isinstance(c, Send) else c.frm
        if not 0 <= peer < len(self.ranks):
            raise BadMessage(f"{rank.where}: there is no rank {peer}")
        sends = isinstance(c, Send)
        pair = (rank.number, peer) if sends else (peer, rank.number)
        (self.sends if sends else self.recvs)[pair].append(end)
        if self.sends[pair] and self.recvs[pair]:
            self._move(self.sends[pair].popleft(), self.recvs[pair].popleft())

    def _move(self, sent: PostedEnd, received: PostedEnd) -> None:
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
            end.rank.open_ends.discard(end)
            self._leave(end.rank)

    def _call_library(self, end: PostedEnd, c: Library) -> None:
        """Post a call of the library, which runs once the whole group has called."""
        posted = self.library_calls[c.base, c.n]
        posted.append(end)
        if len(posted) < c.n:
            return
        del self.library_calls[c.base, c.n]
        in_order = sorted(posted, key=lambda call: call.rank.number)
        ranks = [call.rank for call in in_order]
        step = max(rank.step for rank in ranks)
        for rank in ranks:
            rank.busy_until = max(rank.busy_until, step)
        calls = [call.comm for call in in_order if isinstance(call.comm, Library)]
        self.watcher.gathers(ranks, calls)
        for call in in_order:
            call.rank.open_ends.discard(call)
            self._leave(call.rank)

    def _leave(self, rank: Rank) -> None:
        """End the round of a rank, unless messages of the round are in flight."""
        r = rank.round
        if rank.open_ends or r is None:
            return
        rank.round, rank.step = None, rank.busy_until
        self.watcher.works(rank, r)
        takes_step = self.takes_step(r)
        if not r.meet:
            rank.step += takes_step
            self.ready.append(rank)
            return
        node = self.node_of[rank.number]
        node.arrived.append(rank)
        if len(node.arrived) < len(node.members):
            return
        ranks, node.arrived = node.arrived, []
        node.meetings += 1
        step = max(member.step for member in ranks)
        for member in ranks:
            member.step = step
        self.watcher.meets(ranks)
        for member in ranks:
            member.step += 1
        self.ready.extend(ranks)

    def _waits(self, rank: Rank) -> str:
        """The rank and the peers that a stuck rank waits for, in words."""
        node = self.node_of[rank.number]
        if rank in node.arrived:
            arrived = {member.number for member in node.arrived}
            late = [r for r in node.members if r not in arrived]
            return f"{rank.where} waits for ranks {late} at meeting {node.meetings}"
        r = rank.round
        open_ids = {id(end.comm) for end in rank.open_ends}
        ends = [_in_words(c) for c in (r.comm if r else ()) if id(c) in open_ids]
        return f"{rank.where} waits " + ", ".join(ends)


def _in_words(c: Comm) -> str:
    """The words for a send, a receive or a call of the library that waits."""
    if isinstance(c, Send):
        return f"to send {size(c)} to rank {c.to}"
    if isinstance(c, Recv):
        return f"for {size(c)} from rank {c.frm}"
    return "for its group"
