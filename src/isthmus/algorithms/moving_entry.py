"""Allgatherv between two groups at the bound for all blocks; Reduce_scatter backwards.

In `balanced` whoever has a giant block hands it out share by share, and only then do
the groups pass shares on: the giant and all other data go through the same ports one
after the other. In the ring of several groups pieces enter a group at its first rank
and leave the line at its last, so that all ranks but the last send what they pass on
and their own blocks too.

Here the ranks of each group form a ring. A piece that enters a group at one rank goes
once round, and its last stop is the rank before that one: this rank passes nothing on
in the round in which the next piece enters. So it is the one that sends its own block
meanwhile. Where pieces enter is a matter of who sends: behind the *owner*, the rank of
this group whose block is being sent. When its block is sent, the next rank becomes the
owner and the entry moves on by one place; nothing enters for one round, and no two
pieces ever meet.

So in every round every port has one piece at the most, and the rounds are those of the
data, one for each owner, and once round the ring: `rounds_of`. docs/ideas.md has the
proof.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from ..schedules.ir import Index, Program, Recv, Reduce, Round, Send, Span, Spans
from ..schedules.layout import Blocks, Side, cut
from ..schedules.registry import algorithm
from .allgatherv_blocked_ring import sizes, table
from .parts.patterns import STARTUP_ELEMENTS, startup_in

#: the rounds beyond those of the data are less than so many for each rank of the larger
#: group: a short piece of every block, a pause for every owner, the way round the ring
EXTRA_ROUNDS = 3
#: more rounds than this take longer to plan than they gain
MAX_PLANNED_ROUNDS = 1 << 14


def ring_order(counts: np.ndarray, nodes: Sequence[Hashable] = ()) -> np.ndarray:
    """The ranks of a group in the order of its ring, node after node.

    The largest block of each node is at the node's end: pieces enter behind the owner
    of a block, so behind the last rank of a node they enter the next node at its first
    rank, pass through all others and never come twice.
    """
    lowest_rank: dict[Hashable, int] = {}
    node_of_rank = nodes if len(nodes) else (0,) * len(counts)
    node = np.array([lowest_rank.setdefault(x, r) for r, x in enumerate(node_of_rank)])
    order: np.ndarray = np.lexsort((counts, node))
    return order


@dataclass(frozen=True)
class PieceQueue:
    """The pieces of a group's blocks in the order in which they leave the group."""

    #: the ranks of the group by their place in the ring
    order: np.ndarray
    #: the places of ranks that have a block, the pieces of each, and the longest piece
    owners: np.ndarray
    numbers: np.ndarray
    longest: int

    @property
    def pieces(self) -> int:
        """The number of pieces."""
        return int(self.numbers.sum())

    @property
    def moves(self) -> int:
        """The number of places by which the owner moves on until the last one."""
        return int(self.owners[-1] - self.owners[0]) if len(self.owners) else 0


def queue(counts: np.ndarray, order: np.ndarray, size: int) -> PieceQueue:
    """The pieces of a group's blocks, none longer than `size`."""
    sorted_counts = counts[order]
    owners = np.flatnonzero(sorted_counts)
    own = sorted_counts[owners]
    numbers = -(-own // size)
    longest = int((-(-own // np.maximum(numbers, 1))).max(initial=0))
    return PieceQueue(order, owners, numbers, longest)


def rounds_of(a: PieceQueue, b: PieceQueue) -> int:
    """The most rounds of two groups.

    They are the pieces of a group, one round for each time that the other group's owner
    moves, and the way round the ring. Where ranks without a block lie between two
    owners, both groups wait for the entry to pass them.
    """
    gaps = sum(x.moves - max(len(x.owners) - 1, 0) for x in (a, b))
    ends = []
    for queue, other_queue in ((a, b), (b, a)):
        if queue.pieces:
            changes = max(len(other_queue.owners) - 1, 0)
            ends.append(queue.pieces + changes + gaps + len(other_queue.order) - 1)
    return max(ends, default=0)


def best_size(counts: Sequence[np.ndarray], startup: float) -> int:
    """The size of pieces for which the rounds take the least time, by `rounds_of`."""
    largest = max((int(k.max(initial=0)) for k in counts), default=0)
    orders = [np.argsort(k, kind="stable") for k in counts]
    least_time, fastest_size, size = inf, max(largest, 1), max(largest, 1)
    while True:
        queues = [queue(k, o, size) for k, o in zip(counts, orders, strict=True)]
        rounds = rounds_of(*queues)
        time = rounds * (startup + max(x.longest for x in queues))
        if time < least_time:
            least_time, fastest_size = time, size
        if size == 1 or time > 2 * least_time or rounds > MAX_PLANNED_ROUNDS:
            return fastest_size
        size = max(size * 7 // 8, 1)


@dataclass(frozen=True)
class Departures:
    """Of each piece of a group the round in which it leaves, and its owner's rank.

    `begin` and `size` say its place in the owner's block, `start` that among the blocks
    of the group, `entry` the place of the other group's ring at which it enters.
    """

    round: np.ndarray
    owner: np.ndarray
    begin: np.ndarray
    size: np.ndarray
    start: np.ndarray
    entry: np.ndarray

    @property
    def n(self) -> int:
        """The number of pieces."""
        return len(self.round)


@dataclass
class _Turn:
    """The owner whose turn it is in one group, and the number of its pieces left."""

    of: PieceQueue
    owner: int
    left: int

    @property
    def done(self) -> bool:
        """Whether all pieces of the group are sent."""
        return self.owner == len(self.of.owners)

    @property
    def last(self) -> bool:
        """Whether the owner's next piece is its last, and another owner follows."""
        return self.left == 1 and self.owner + 1 < len(self.of.owners)

    @property
    def entry(self) -> int:
        """The place behind the owner, where pieces of the other group enter.

        Places go on counting beyond the end of the ring.
        """
        if not len(self.of.owners):
            return 0
        return int(self.of.owners[min(self.owner, len(self.of.owners) - 1)]) + 1

    @property
    def free(self) -> int:
        """The pieces that the owner can send before the other group must pause."""
        follows = self.owner + 1 < len(self.of.owners)
        return self.left - 1 if follows else self.left

    def take(self, n: int) -> int:
        """Send n pieces of the owner, and return the rounds to wait after them.

        There are some where the owner changes, until the next one is free to send.
        """
        self.left -= n
        if self.left:
            return 0
        self.owner += 1
        if self.done:
            return 0
        before, now = self.of.owners[self.owner - 1 : self.owner + 1]
        self.left = int(self.of.numbers[self.owner])
        return int(now - before) - 1


def _turn(of: PieceQueue) -> _Turn:
    return _Turn(of, 0, int(of.numbers[0]) if len(of.numbers) else 0)


def _departure_runs(
    a: PieceQueue, b: PieceQueue
) -> Iterator[tuple[int, int, int, int]]:
    """Runs of pieces: their group, the round of the first, their number, their entry.

    Both groups send a piece in every round, except that in the round of an owner's last
    piece nothing of the other group enters: then the entry moves.
    """
    turns, now = (_turn(a), _turn(b)), 0
    while not all(x.done for x in turns):
        going = [i for i in (0, 1) if not turns[i].done]
        n = min(turns[i].free for i in going)
        if n == 0:
            # the second group first: its owner's last piece, and then the first's
            going = [max(i for i in going if turns[i].last)]
            n = 1
        for i in going:
            yield i, now, n, turns[1 - i].entry
        waits = [turns[i].take(n) for i in going]
        now += n + sum(waits)


def departures_of(
    sides: Sequence[Blocks], queues: Sequence[PieceQueue]
) -> tuple[Departures, Departures]:
    """The round in which each piece of each group leaves, and its entry."""
    runs = list(_departure_runs(*queues))
    departures = []
    for i, (blocks, piece_queue) in enumerate(zip(sides, queues, strict=True)):
        own_runs = [(now, n, entry) for j, now, n, entry in runs if j == i]
        rounds = [np.arange(now, now + n) for now, n, _ in own_runs]
        entries = [np.full(n, entry) for _, n, entry in own_runs]
        owner = np.repeat(piece_queue.order[piece_queue.owners], piece_queue.numbers)
        first = np.cumsum(piece_queue.numbers) - piece_queue.numbers
        number = np.arange(len(owner)) - np.repeat(first, piece_queue.numbers)
        block_sizes, parts = (
            blocks.size(owner),
            np.repeat(piece_queue.numbers, piece_queue.numbers),
        )
        begin = cut(block_sizes, parts, number)
        size = cut(block_sizes, parts, number + 1) - begin
        empty = np.zeros(0, np.int64)
        departures.append(
            Departures(
                np.concatenate([*rounds, empty]),
                owner,
                begin,
                size,
                blocks.offset(owner) + begin,
                np.concatenate([*entries, empty]) % len(queues[1 - i].order),
            )
        )
    return departures[0], departures[1]


@dataclass(frozen=True)
class PieceTimetable:
    """The pieces that come to a rank, go on and leave, round by round.

    Where r is an array, all values have a lane for each of its ranks.
    """

    rounds: int
    #: in each round the piece that comes, or -1, and the rank that sends it
    comes: Any
    source: Any
    #: whether the piece that came one round ago goes on, and the next rank of the ring
    goes_on: Any
    right: Index
    #: in each round the own group's piece that leaves, or -1; of each its owner and
    #: the rank of the other group at which it enters
    leaves: list[int]
    owner: list[int]
    target: list[int]
    #: where a piece of the other group lies among its group's blocks, and an own piece
    #: in its block
    theirs: Callable[[str, Index], Spans]
    own: Callable[[str, int], Spans]
    #: the elements of the longest piece of the other group
    longest: int


def timetable(
    r: Index, here: Side, there: Side, nodes: Sequence[Hashable], size: int, s: float
) -> PieceTimetable:
    """The timetable of rank r, or of all ranks of an array, of the group `here`."""
    first, second = sorted((here, there), key=lambda side: side.base)
    counts = [sizes(side.blocks) for side in (first, second)]
    size = size or best_size(counts, s)
    orders = [
        ring_order(k, nodes[side.base : side.base + side.n])
        for k, side in zip(counts, (first, second), strict=True)
    ]
    queues = [queue(k, o, size) for k, o in zip(counts, orders, strict=True)]
    both = departures_of([first.blocks, second.blocks], queues)
    mine, theirs = both if here is first else both[::-1]
    order, across = orders if here is first else orders[::-1]
    place = np.argsort(order)[r]
    ends = [
        int(stream.round[-1]) + ring.n
        for stream, ring in ((mine, there), (theirs, here))
        if stream.n
    ]
    rounds = max(ends, default=0)
    column = -1, *[1] * np.ndim(r)
    hops = (place - theirs.entry.reshape(column)) % here.n
    when = theirs.round.reshape(column) + hops
    number = np.arange(theirs.n).reshape(column)
    comes = np.full((rounds + 1, *np.shape(r)), -1)
    distance = np.zeros_like(comes)
    where = (when, np.arange(np.size(r))) if np.ndim(r) else (when,)
    comes[where] = number
    distance[where] = hops
    left = here.base + order[place - 1]
    origin = there.base + theirs.owner
    if theirs.n:
        source = np.where(distance == 0, origin[comes], left)
    else:
        source = np.zeros_like(comes)
    leaves = np.full(rounds, -1)
    leaves[mine.round] = np.arange(mine.n)
    # piece -1 is none, and the last of these
    start, length = (table(np.append(x, 0), r) for x in (theirs.start, theirs.size))
    begin, own_size = mine.begin.tolist(), mine.size.tolist()
    on_way = (comes >= 0) & (distance < here.n - 1)
    return PieceTimetable(
        rounds,
        table(comes, r),
        table(source, r),
        table(on_way, r),
        here.base + table(order, r)[(place + 1) % here.n],
        leaves.tolist(),
        mine.owner.tolist(),
        (there.base + across[mine.entry]).tolist(),
        lambda buf, n: (Span(buf, start[n], length[n]),),
        lambda buf, n: (Span(buf, begin[n], own_size[n]),),
        int(theirs.size.max(initial=0)),
    )


def _time(p: int, q: int, ka: float, kb: float, s: float) -> tuple[int, int]:
    """The rounds and the longest piece for equal blocks."""
    counts = [np.full(p, int(ka)), np.full(q, int(kb))]
    size = best_size(counts, s)
    a, b = (queue(k, np.arange(len(k)), size) for k in counts)
    return rounds_of(a, b), max(a.longest, b.longest)


def gather_cost(
    p: int,
    q: int,
    ka: float,
    kb: float,
    alpha: float,
    beta: float,
    stage: object = None,
    startup: float | None = None,
) -> float:
    """An upper bound of the time of the allgather."""
    rounds, longest = _time(p, q, ka, kb, startup or startup_in(alpha, beta))
    return rounds * (alpha + longest * beta)


def scatter_cost(
    p: int, q: int, n: float, alpha: float, beta: float, startup: float | None = None
) -> float:
    """An upper bound of the time to reduce and scatter n elements in equal blocks."""
    return gather_cost(p, q, n / p, n / q, alpha, beta, None, startup)


@algorithm(
    "inter_allgather",
    "inter_allgatherv",
    paper="isthmus",
    cost=gather_cost,
    own_counts=True,
    joint=True,
)
def moving_entry(
    r: Index,
    here: Side,
    there: Side,
    stage: object = None,
    size: int = 0,
    startup: float = STARTUP_ELEMENTS,
    nodes: Sequence[Hashable] = (),
) -> Program:
    """Pieces go once round a ring of each group and enter behind the rank that sends.

    Everyone sends and receives one piece in a round, so the transfer time is M and a
    few pieces for all blocks, also for a giant one. About M/size + 3 max(p, q) rounds.
    """
    way = timetable(r, here, there, nodes, size, startup)
    came, goes_on = -1, False
    for t in range(way.rounds):
        comes, own = way.comes[t], way.leaves[t]
        comm: list[Recv | Send] = [
            Recv(way.source[t], way.theirs("recv", comes), comes >= 0),
            Send(way.right, way.theirs("recv", came), goes_on),
        ]
        if own >= 0:
            (part,) = way.own("send", own)
            comm.append(Send(way.target[own], (part,), r == way.owner[own]))
        yield Round(tuple(comm))
        came, goes_on = comes, way.goes_on[t]


@algorithm(
    "inter_reduce_scatter",
    "inter_reduce_scatter_block",
    name="moving_entry",
    paper="isthmus",
    cost=scatter_cost,
    other_counts=True,
    commutative=True,
)
def reduce_scatter(
    r: Index,
    here: Side,
    there: Side,
    size: int = 0,
    startup: float = STARTUP_ELEMENTS,
    nodes: Sequence[Hashable] = (),
) -> Program:
    """The allgather backwards: sums of pieces grow round a ring and go to their owner.

    As many rounds, each with a piece to combine, in any order. Scratch for two pieces.
    """
    way = timetable(r, here, there, nodes, size, startup)
    for t in reversed(range(way.rounds)):
        came = way.comes[t - 1] if t else -1
        on = way.goes_on[t - 1] if t else False
        comes, own = way.comes[t], way.leaves[t]
        (mine,), (grown,) = way.theirs("send", comes), way.theirs("send", came)
        begun = way.goes_on[t]
        into = Span("tmp", t % 2 * way.longest, grown.size)
        held = Span("tmp", (t + 1) % 2 * way.longest, mine.size)
        comm: list[Recv | Send] = [
            Recv(way.right, (into,), on),
            Send(way.source[t], (held,), (comes >= 0) & begun),
            Send(way.source[t], (mine,), (comes >= 0) & (begun ^ True)),
        ]
        if own >= 0:
            (part,) = way.own("recv", own)
            comm.insert(0, Recv(way.target[own], (part,), r == way.owner[own]))
        yield Round(tuple(comm), (Reduce(grown, into, on),))
