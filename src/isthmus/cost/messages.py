"""A schedule as steps of all ranks: the messages that move in a step, and what follows.

Mostly a message is sent and received in rounds of the same number: then a step is a
round of all ranks, and its messages are found by numpy, for any number of ranks. From
the first round on where one is not, `verify.matcher` says which messages move together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from ..schedules.ir import (
    Comm,
    Library,
    Pieces,
    Program,
    Recv,
    Reduce,
    Round,
    Send,
    is_signal,
)
from ..schedules.program import meanwhile, per_rank
from ..schedules.schedule import Schedule
from ..verify.matcher import Matcher, Rank, size as size_of


@dataclass(frozen=True)
class Messages:
    """One entry per message, in the order of the senders' ports.

    `arrival` lists the same messages in the order of the receivers' ports.
    """

    source: np.ndarray
    target: np.ndarray
    size: np.ndarray
    arrival: np.ndarray

    def __len__(self) -> int:
        return len(self.source)


def _full(x: Any, n: int) -> np.ndarray:
    if isinstance(x, np.ndarray) and x.shape == (n,):
        return x
    return np.full(n, x)


def _size(c: Any, n: int) -> np.ndarray:
    if isinstance(c.data, Pieces):
        total = c.data.size.sum(axis=0)
    else:
        total = sum([s.size for s in c.data])
    return _full(total if c.when is True else np.where(c.when, total, 0), n)


def _ends(
    groups: Sequence[tuple[range, Round]], kind: type[Send] | type[Recv]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Own rank, peer and size of every message of a kind, by rank and port order."""
    if all(len(ranks) == 1 for ranks, _ in groups):
        return _ends_of_ranks(groups, kind)
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
    for ranks, r in groups:
        n = len(ranks)
        own = np.arange(ranks.start, ranks.stop)
        mine = [c for c in r.comm if isinstance(c, kind)]
        for place, c in enumerate(mine):
            peer = c.to if isinstance(c, Send) else c.frm
            sizes = _size(c, n)
            some = _full(c.when, n) if is_signal(c.data) else sizes > 0
            places = np.full(n, place)
            found.append((own[some], _full(peer, n)[some], sizes[some], places[some]))
    if not found:
        none = np.zeros(0, np.int64)
        return none, none, none
    own, peer, sizes, places = (np.concatenate(x) for x in zip(*found, strict=True))
    order = np.lexsort((places, own))
    return own[order], peer[order], sizes[order]


def _ends_of_ranks(
    groups: Sequence[tuple[range, Round]], kind: type[Send] | type[Recv]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same where each group is a rank: without an array for every message."""
    found: list[tuple[int, int, int]] = []
    for ranks, r in groups:
        for c in r.comm:
            if isinstance(c, kind) and c.when:
                peer = c.to if isinstance(c, Send) else c.frm
                if isinstance(c.data, Pieces):
                    size = int(c.data.size.sum())
                else:
                    size = sum([int(s.size) for s in c.data])
                if size or is_signal(c.data):
                    found.append((ranks.start, int(peer), size))
    found.sort(key=lambda end: end[0])
    ends = np.array(found, np.int64).reshape(-1, 3)
    return ends[:, 0], ends[:, 1], ends[:, 2]


def match(groups: Sequence[tuple[range, Round]], n: int) -> Messages | None:
    """The messages of a round, if both ends of each stand in the same round."""
    source, target, size = _ends(groups, Send)
    owner, origin, expected = _ends(groups, Recv)
    sent = np.argsort(source * n + target, kind="stable")
    received = np.argsort(origin * n + owner, kind="stable")
    if not (
        len(sent) == len(received)
        and np.array_equal(source[sent], origin[received])
        and np.array_equal(target[sent], owner[received])
        and np.array_equal(size[sent], expected[received])
    ):
        return None
    arrival = np.empty(len(sent), np.int64)
    arrival[received] = sent
    return Messages(source, target, size, arrival)


@dataclass(frozen=True)
class Step:
    """Messages that move at once, then what each rank does whose round has ended.

    `early` and `late` have a row of the elements that each rank copies and one of those
    that it reduces: while its messages are in flight, and after them. `meets` says
    which ranks have then all come to the meeting of their node. `ends` says whose round
    ends: everyone's, where there is none.
    """

    messages: Messages
    early: np.ndarray
    late: np.ndarray
    meets: np.ndarray
    ends: np.ndarray | None = None

    @property
    def reduced(self) -> np.ndarray:
        """The elements that each rank reduces."""
        total: np.ndarray = self.early[1] + self.late[1]
        return total


def _work(
    groups: Sequence[tuple[range, Round]], n: int
) -> tuple[np.ndarray, np.ndarray]:
    """What every rank copies and reduces, early and late."""
    found = np.zeros((2, 2, n), np.int64)
    for ranks, r in groups:
        if not r.then:
            continue
        if len(ranks) == 1:
            for when, some in enumerate(meanwhile(r)):
                for s in some:
                    kind = int(isinstance(s, Reduce))
                    found[when, kind, ranks.start] += s.dst.size if s.when else 0
            continue
        for s in r.then:
            sizes = np.where(_full(s.when, len(ranks)), s.dst.size, 0)
            kind = int(isinstance(s, Reduce))
            found[1, kind, ranks.start : ranks.stop] += sizes
    return found[0], found[1]


def _meets(groups: Sequence[tuple[range, Round]], n: int) -> np.ndarray:
    found = np.zeros(n, bool)
    for ranks, r in groups:
        found[ranks.start : ranks.stop] = r.meet
    return found


def _check_library(c: Comm) -> None:
    if isinstance(c, Library):
        raise ValueError("the stage 'library' has no time: nobody knows what it does")


def _aligned(programs: Sequence[Program]) -> list[Iterator[Round]]:
    """Rounds between the same two meetings side by side; who has fewer waits."""
    split: list[list[list[Round]]] = []
    for program in programs:
        segments: list[list[Round]] = [[]]
        for r in program:
            segments[-1].append(Round(r.comm, r.then))
            if r.meet:
                segments.append([])
        split.append(segments)
    found: list[list[Round]] = [[] for _ in split]
    nothing: list[Round] = []
    for t, column in enumerate(zip_longest(*split, fillvalue=nothing)):
        longest = max(1, *map(len, column))
        for rounds, segment, mine in zip(found, column, split, strict=True):
            *before, end = [*segment, *[Round()] * (longest - len(segment))]
            meet = t < len(mine) - 1
            rounds += [*before, Round(end.comm, end.then, meet)]
    return [iter(rounds) for rounds in found]


def steps(schedule: Schedule) -> Iterator[Step]:
    """The steps of all ranks, until every rank has done its rounds."""
    n, groups = schedule.n, list(schedule.lanes())
    programs = [program for _, program in groups]
    if len(groups) == n:  # rank by rank, as where ranks share memory and meet
        programs = _aligned(programs)
    programs = [iter(program) for program in programs]
    for rounds in zip_longest(*programs, fillvalue=Round()):
        here = list(zip((ranks for ranks, _ in groups), rounds, strict=True))
        for _, r in here:
            for c in r.comm:
                _check_library(c)
        busy = [(ranks, r) for ranks, r in here if r.comm or r.then]
        messages = match(busy, n)
        if messages is None:
            every = (
                each
                for (ranks, r), program in zip(here, programs, strict=True)
                for each in per_rank(chain([r], program), len(ranks))
            )
            yield from _by_pairs(list(every), schedule.nodes)
            return
        yield Step(messages, *_work(busy, n), _meets(here, n))


@dataclass
class _Gathered:
    """What happens in a step, as it is found.

    Of a message: its sender and its place there, its receiver and its place there, its
    elements. Of a rank whose round ends: what it then has copied and reduced.
    """

    messages: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    ends: list[tuple[int, Round]] = field(default_factory=list)
    meets: list[int] = field(default_factory=list)

    def step(self, n: int) -> Step:
        """The step of n ranks."""
        rows = np.array(sorted(self.messages), np.int64).reshape(-1, 5)
        source, _, target, place, size = rows.T
        arrival = np.lexsort((place, target))
        early, late = _work([(range(r, r + 1), x) for r, x in self.ends], n)
        meets, ends = np.zeros((2, n), bool)
        meets[self.meets] = True
        ends[[r for r, _ in self.ends]] = True
        return Step(Messages(source, target, size, arrival), early, late, meets, ends)


class _Gather:
    """Keeps what happens in each step."""

    def __init__(self) -> None:
        self.steps: dict[int, _Gathered] = defaultdict(_Gathered)
        #: the place of each end in the round of its rank
        self.places: dict[int, dict[int, int]] = {}

    def enters(self, rank: Rank, r: Round) -> None:
        self.places[rank.number] = {id(c): k for k, c in enumerate(r.comm)}

    def moves(self, source: Rank, send: Send, target: Rank, recv: Recv) -> None:
        out, into = self.places[source.number], self.places[target.number]
        sent, received = out[id(send)], into[id(recv)]
        message = source.number, sent, target.number, received, size_of(send)
        self.steps[max(source.step, target.step)].messages.append(message)

    def gathers(self, ranks: Sequence[Rank], calls: Sequence[Library]) -> None:
        _check_library(calls[0])

    def works(self, rank: Rank, r: Round) -> None:
        self.steps[rank.step].ends.append((rank.number, r))

    def meets(self, ranks: Sequence[Rank]) -> None:
        self.steps[ranks[0].step].meets += [rank.number for rank in ranks]


def _by_pairs(
    programs: Sequence[Sequence[Round]], nodes: Sequence[Hashable]
) -> Iterator[Step]:
    """The steps where ranks are rounds ahead of each other."""
    found = _Gather()
    Matcher(programs, found, nodes).run()
    return (found.steps[k].step(len(programs)) for k in sorted(found.steps))
