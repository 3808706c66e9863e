"""What every rank holds, step by step, when every message takes one step.

The machine of `isthmus.machine` says whether a schedule is right; this one only shows
how a right schedule goes. A message moves in the first step in which both its ends are
in their round, so that a column of a picture has both ends of all its messages.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..errors import Deadlock
from ..ir import Comm, Data, Library, Local, Recv, Reduce, Round, Send
from ..marks import Memory, blank, combine
from ..program import extent
from ..schedules import Schedule


@dataclass(frozen=True)
class Message:
    """Elements that moved from one rank to another, as their marks."""

    source: int
    target: int
    data: np.ndarray


@dataclass(frozen=True)
class Step:
    """The messages of a step, the groups whose library was called (first rank, size),
    and what every rank holds after it."""

    messages: tuple[Message, ...]
    library: tuple[tuple[int, int], ...]
    memory: tuple[Memory, ...]


class _Rank:
    """A rank's rounds, its memory, and what of its round is still in flight."""

    def __init__(self, rounds: list[Round], memory: Memory, mark: np.dtype) -> None:
        self.memory = {**memory, "tmp": blank(extent(rounds, "tmp"), mark)}
        self.rounds = deque(rounds)
        self.then: tuple[Local, ...] = ()
        self.open: list[Comm] = []

    def load(self, spans: Data) -> np.ndarray:
        parts = [self.memory[s.buf][s.start : s.start + s.size] for s in spans]
        return np.concatenate(parts) if parts else blank(0)

    def store(self, spans: Data, data: np.ndarray) -> None:
        for s in spans:
            self.memory[s.buf][s.start : s.start + s.size] = data[: s.size]
            data = data[s.size :]

    def enter(self) -> list[Comm]:
        """Take the next round with messages; a round of local steps takes no time."""
        while self.rounds and not self.open:
            following = self.rounds.popleft()
            self.then, self.open = following.then, list(following.comm)
            self.leave()
        return self.open

    def leave(self) -> None:
        """Do the local steps once nothing is in flight, and those of the rounds that
        follow and have no others."""
        if self.open:
            return
        self.work(self.then)
        self.then = ()
        while self.rounds and not self.rounds[0].comm:
            self.work(self.rounds.popleft().then)

    def work(self, steps: tuple[Local, ...]) -> None:
        """Do local steps."""
        for s in steps:
            data = self.load((s.src,))
            if isinstance(s, Reduce):
                own = self.load((s.dst,))
                combine(data, own)
                data = own
            self.store((s.dst,), data)


class _Machine:
    """All ranks, and the ends of messages that wait for their other end."""

    def __init__(self, schedule: Schedule) -> None:
        contract = schedule.contract
        self.ranks = [
            _Rank(rounds, _copied(contract.before(r)), contract.mark)
            for r, rounds in enumerate(schedule.all_ranks())
        ]
        self.sends: dict[tuple[int, int], deque[Send]] = defaultdict(deque)
        self.recvs: dict[tuple[int, int], deque[Recv]] = defaultdict(deque)
        self.halls: dict[tuple[int, int], list[Library]] = defaultdict(list)

    def enter(self) -> bool:
        """Let every rank that is free take its next round; whether any is at work."""
        for number, rank in enumerate(self.ranks):
            if rank.open:
                continue
            for c in rank.enter():
                if isinstance(c, Send):
                    self.sends[number, c.to].append(c)
                elif isinstance(c, Recv):
                    self.recvs[c.frm, number].append(c)
                else:
                    self.halls[c.base, c.n].append(c)
        return any(rank.open for rank in self.ranks)

    def messages(self) -> Iterator[Message]:
        """Move every message that has both its ends."""
        for (source, target), sends in self.sends.items():
            recvs = self.recvs[source, target]
            while sends and recvs:
                send, recv = sends.popleft(), recvs.popleft()
                data = self.ranks[source].load(send.data)
                self.ranks[target].store(recv.data, data)
                _drop(self.ranks[source].open, send)
                _drop(self.ranks[target].open, recv)
                yield Message(source, target, data)

    def library(self) -> Iterator[tuple[int, int]]:
        """Do the library's allgather in every group that has come as a whole."""
        for (base, n), calls in self.halls.items():
            if len(calls) < n:
                continue
            members = self.ranks[base : base + n]
            for i, owner in enumerate(members):
                block = (calls[0].block(i),)
                for member in members:
                    member.store(block, owner.load(block))
            for member, call in zip(members, calls, strict=True):
                _drop(member.open, call)
            calls.clear()
            yield base, n

    def step(self) -> Step:
        """One step of all ranks."""
        messages, library = tuple(self.messages()), tuple(self.library())
        if not messages and not library:
            raise Deadlock("ranks wait for each other for ever")
        for rank in self.ranks:
            rank.leave()
        held = (_copied(r.memory) for r in self.ranks)
        return Step(messages, library, tuple(held))


def _copied(memory: Memory) -> Memory:
    return {name: buf.copy() for name, buf in memory.items()}


def _drop(open_: list[Comm], c: Comm) -> None:
    """Take away this very end, or the only call of the library."""
    same = (
        x is c or (isinstance(x, Library) and isinstance(c, Library)) for x in open_
    )
    del open_[next(i for i, is_it in enumerate(same) if is_it)]


def steps(schedule: Schedule) -> Iterator[Step]:
    """The steps of a schedule, until every rank has done its rounds."""
    machine = _Machine(schedule)
    while machine.enter():
        yield machine.step()
