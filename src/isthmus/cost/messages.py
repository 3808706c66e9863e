"""A schedule as steps of all ranks: the messages of a step, then the local work.

In most schedules a message is sent and received in rounds of equal number: a step is
then a round of all ranks, and numpy pairs the ends of its messages, for any number of
ranks. From the first round on in which an end has no peer, `verify.matcher` decides
which messages move together.
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
from ..verify.matcher import Matcher, Rank, size as elements


@dataclass(frozen=True)
class Messages:
    """Arrays with an entry for each message, in the order of the senders' ports.

    `arrival` has the numbers of the messages in the order of the receivers' ports.
    """

    source: np.ndarray
    target: np.ndarray
    size: np.ndarray
    arrival: np.ndarray

    def __len__(self) -> int:
        return len(self.source)


def _per_rank(value: Any, n: int) -> np.ndarray:
    if isinstance(value, np.ndarray) and value.shape == (n,):
        return value
    return np.full(n, value)


def _sizes(c: Send | Recv, n: int) -> np.ndarray:
    """The elements of a message at each of n ranks; 0 where the rank has none."""
    if isinstance(c.data, Pieces):
        total = c.data.size.sum(axis=0)
    else:
        total = sum([s.size for s in c.data])
    return _per_rank(total if c.when is True else np.where(c.when, total, 0), n)


def _ends(
    groups: Sequence[tuple[range, Round]], kind: type[Send] | type[Recv]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Own rank, peer and size of the sends or receives, by rank and port order."""
    if all(len(ranks) == 1 for ranks, _ in groups):
        return _ends_rank_by_rank(groups, kind)
    columns: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
    for ranks, r in groups:
        n = len(ranks)
        own = np.arange(ranks.start, ranks.stop)
        for place, c in enumerate(c for c in r.comm if isinstance(c, kind)):
            peer = _per_rank(c.to if isinstance(c, Send) else c.frm, n)
            sizes = _sizes(c, n)
            active = _per_rank(c.when, n) if is_signal(c.data) else sizes > 0
            places = np.full(n, place)
            columns.append((own[active], peer[active], sizes[active], places[active]))
    if not columns:
        empty = np.zeros(0, np.int64)
        return empty, empty, empty
    own, peer, sizes, places = map(np.concatenate, zip(*columns, strict=True))
    order = np.lexsort((places, own))
    return own[order], peer[order], sizes[order]


def _ends_rank_by_rank(
    groups: Sequence[tuple[range, Round]], kind: type[Send] | type[Recv]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The result of `_ends` where each group is a rank.

    Without arrays of a single rank, since plain integers are faster: an Alltoallv of 64
    ranks on 8 nodes is simulated in a fifth of the time.
    """
    ends: list[tuple[int, int, int]] = []
    for ranks, r in groups:
        for c in r.comm:
            if isinstance(c, kind) and c.when:
                peer = c.to if isinstance(c, Send) else c.frm
                if isinstance(c.data, Pieces):
                    size = int(c.data.size.sum())
                else:
                    size = sum([int(s.size) for s in c.data])
                if size or is_signal(c.data):
                    ends.append((ranks.start, int(peer), size))
    ends.sort(key=lambda end: end[0])
    columns = np.array(ends, np.int64).reshape(-1, 3)
    return columns[:, 0], columns[:, 1], columns[:, 2]


def match(groups: Sequence[tuple[range, Round]], n: int) -> Messages | None:
    """The messages of a round; None if some end has no peer in the round."""
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
    """Messages that move at once, then the local work of ranks whose round ends.

    `early` (while messages are in flight) and `late` (after the messages) have a row of
    the elements that each rank copies, and a row of the elements that each rank
    reduces. `meets` marks the ranks whose meeting is complete, and `ends` the ranks
    whose round ends; without `ends`, the rounds of all ranks end.
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
    """The elements that each rank copies and reduces, early and late (see `Step`)."""
    work = np.zeros((2, 2, n), np.int64)
    for ranks, r in groups:
        if not r.then:
            continue
        if len(ranks) == 1:
            for when, local_steps in enumerate(meanwhile(r)):
                for s in local_steps:
                    kind = int(isinstance(s, Reduce))
                    work[when, kind, ranks.start] += s.dst.size if s.when else 0
            continue
        for s in r.then:
            sizes = np.where(_per_rank(s.when, len(ranks)), s.dst.size, 0)
            kind = int(isinstance(s, Reduce))
            work[1, kind, ranks.start : ranks.stop] += sizes
    return work[0], work[1]


def _meeting_ranks(groups: Sequence[tuple[range, Round]], n: int) -> np.ndarray:
    meets = np.zeros(n, bool)
    for ranks, r in groups:
        meets[ranks.start : ranks.stop] = r.meet
    return meets


def _refuse_library(c: Comm) -> None:
    if isinstance(c, Library):
        raise ValueError("the stage 'library' has no time: nobody knows what it does")


def _aligned_at_meetings(programs: Sequence[Program]) -> list[Iterator[Round]]:
    """Programs with equally many rounds between two meetings.

    Where ranks have different numbers of rounds before a meeting, empty rounds are
    added, so that all ranks come to the meeting in the same step.
    """
    split: list[list[list[Round]]] = []
    for program in programs:
        parts: list[list[Round]] = [[]]
        for r in program:
            parts[-1].append(Round(r.comm, r.then))
            if r.meet:
                parts.append([])
        split.append(parts)
    aligned: list[list[Round]] = [[] for _ in split]
    no_rounds: list[Round] = []
    for t, column in enumerate(zip_longest(*split, fillvalue=no_rounds)):
        longest = max(1, *map(len, column))
        for rounds, part, parts in zip(aligned, column, split, strict=True):
            *before, end = [*part, *[Round()] * (longest - len(part))]
            meet = t < len(parts) - 1
            rounds += [*before, Round(end.comm, end.then, meet)]
    return [iter(rounds) for rounds in aligned]


def steps(schedule: Schedule) -> Iterator[Step]:
    """The steps of all ranks, until all rounds are done."""
    n, groups = schedule.n, list(schedule.group_programs())
    programs = [program for _, program in groups]
    if len(groups) == n:  # rank by rank, as where ranks share memory and meet
        programs = _aligned_at_meetings(programs)
    programs = [iter(program) for program in programs]
    for rounds in zip_longest(*programs, fillvalue=Round()):
        current = list(zip((ranks for ranks, _ in groups), rounds, strict=True))
        for _, r in current:
            for c in r.comm:
                _refuse_library(c)
        busy = [(ranks, r) for ranks, r in current if r.comm or r.then]
        messages = match(busy, n)
        if messages is None:
            remaining = [
                rank_rounds
                for (ranks, r), program in zip(current, programs, strict=True)
                for rank_rounds in per_rank(chain([r], program), len(ranks))
            ]
            yield from _steps_by_pairs(remaining, schedule.nodes)
            return
        yield Step(messages, *_work(busy, n), _meeting_ranks(current, n))


@dataclass
class _StepDraft:
    """A step while the matcher runs: messages, ends of rounds and meetings so far."""

    #: sender, place among its messages, receiver, place among its messages, elements
    messages: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    #: ranks whose rounds end, with the rounds
    ends: list[tuple[int, Round]] = field(default_factory=list)
    #: ranks that have come to a meeting
    meets: list[int] = field(default_factory=list)

    def step(self, n: int) -> Step:
        """The step of n ranks."""
        rows = np.array(sorted(self.messages), np.int64).reshape(-1, 5)
        source, _, target, place, size = rows.T
        arrival = np.lexsort((place, target))
        rounds = [(range(rank, rank + 1), r) for rank, r in self.ends]
        early, late = _work(rounds, n)
        meets, ends = np.zeros((2, n), bool)
        meets[self.meets] = True
        ends[[rank for rank, _ in self.ends]] = True
        return Step(Messages(source, target, size, arrival), early, late, meets, ends)


class _StepRecorder:
    """The steps of a schedule, recorded while the matcher runs its rounds."""

    def __init__(self) -> None:
        self.steps: dict[int, _StepDraft] = defaultdict(_StepDraft)
        #: of each rank the place of each message in the round, by identity
        self.places: dict[int, dict[int, int]] = {}

    def enters(self, rank: Rank, r: Round) -> None:
        self.places[rank.number] = {id(c): k for k, c in enumerate(r.comm)}

    def moves(self, source: Rank, send: Send, target: Rank, recv: Recv) -> None:
        sent = self.places[source.number][id(send)]
        received = self.places[target.number][id(recv)]
        message = source.number, sent, target.number, received, elements(send)
        self.steps[max(source.step, target.step)].messages.append(message)

    def gathers(self, ranks: Sequence[Rank], calls: Sequence[Library]) -> None:
        _refuse_library(calls[0])

    def works(self, rank: Rank, r: Round) -> None:
        self.steps[rank.step].ends.append((rank.number, r))

    def meets(self, ranks: Sequence[Rank]) -> None:
        self.steps[ranks[0].step].meets += [rank.number for rank in ranks]


def _steps_by_pairs(
    programs: Sequence[Sequence[Round]], nodes: Sequence[Hashable]
) -> Iterator[Step]:
    """The steps of programs in which ranks are rounds ahead of each other."""
    recorder = _StepRecorder()
    Matcher(programs, recorder, nodes).run()
    steps = recorder.steps
    return (steps[number].step(len(programs)) for number in sorted(steps))
