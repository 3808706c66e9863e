"""Allgatherv between two groups at the bound for all blocks; Reduce_scatter backwards.

In `balanced` a rank with a giant block hands it out share by share, and only then do
the groups pass shares on: the giant and all other data go through the same ports one
after the other. In the ring of several groups pieces enter a group at its first rank
and leave the line at its last, so that all ranks but the last send both what they pass
on and their own blocks.

Here the ranks of each group form a ring. A piece that enters a group at one rank goes
once round and stops at the rank before the entry. This last rank passes nothing on in
the round in which the next piece enters, so it can send its own block meanwhile. Hence
pieces enter behind the *owner*, the rank of this group whose block is being sent. After
the last piece of that block, the next rank becomes the owner and the entry moves on by
one place; nothing enters for one round, and no two pieces ever meet.

So in every round every port has at most one piece, and the rounds are those of the
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
from .allgatherv_node_ring import lowest_ranks
from .parts.patterns import STARTUP_ELEMENTS, startup_in

#: the most rounds beyond those of the data for each rank of the larger group: a short
#: piece of every block, a pause for every owner, the way round the ring
EXTRA_ROUNDS = 3
#: the most rounds of a best size: more take longer to plan than they gain
MAX_PLANNED_ROUNDS = 1 << 14


def ring_order(counts: np.ndarray, nodes: Sequence[Hashable] = ()) -> np.ndarray:
    """The ranks of a group in the order of its ring, node after node.

    The largest block of each node is at the node's end, because pieces enter behind the
    owner of a block: behind the last rank of a node they enter the next node at its
    first rank, pass through all other ranks and never come twice.
    """
    node_of_rank = nodes if len(nodes) else (0,) * len(counts)
    order: np.ndarray = np.lexsort((counts, lowest_ranks(node_of_rank)))
    return order


@dataclass(frozen=True)
class PieceQueue:
    """The pieces of a group's blocks in the order of their departure."""

    #: the ranks of the group by their place in the ring
    order: np.ndarray
    #: the places of ranks with a block, the pieces of each block, the longest piece
    owners: np.ndarray
    numbers: np.ndarray
    longest: int

    @property
    def pieces(self) -> int:
        """The number of pieces."""
        return int(self.numbers.sum())

    @property
    def moves(self) -> int:
        """The number of places by which the owner moves on until the last owner."""
        return int(self.owners[-1] - self.owners[0]) if len(self.owners) else 0


def queue(counts: np.ndarray, order: np.ndarray, size: int) -> PieceQueue:
    """The pieces of a group's blocks, none longer than `size`."""
    sorted_counts = counts[order]
    owners = np.flatnonzero(sorted_counts)
    owner_sizes = sorted_counts[owners]
    numbers = -(-owner_sizes // size)
    longest = int((-(-owner_sizes // np.maximum(numbers, 1))).max(initial=0))
    return PieceQueue(order, owners, numbers, longest)


def rounds_of(a: PieceQueue, b: PieceQueue) -> int:
    """The rounds of the slower group.

    A group's rounds are its pieces, one round for each move of the remote group's
    owner, and the way round the ring. Where ranks without a block lie between two
    owners, both groups wait for the entry to pass these ranks.
    """
    gaps = sum(
        piece_queue.moves - max(len(piece_queue.owners) - 1, 0)
        for piece_queue in (a, b)
    )
    ends = []
    for queue, remote_queue in ((a, b), (b, a)):
        if queue.pieces:
            changes = max(len(remote_queue.owners) - 1, 0)
            ends.append(queue.pieces + changes + gaps + len(remote_queue.order) - 1)
    return max(ends, default=0)


def best_size(counts: Sequence[np.ndarray], startup: float) -> int:
    """The size of pieces for which the rounds take the least time, by `rounds_of`."""
    largest = max(
        (int(block_sizes.max(initial=0)) for block_sizes in counts), default=0
    )
    orders = [np.argsort(block_sizes, kind="stable") for block_sizes in counts]
    least_time, fastest_size, size = inf, max(largest, 1), max(largest, 1)
    while True:
        queues = [
            queue(block_sizes, order, size)
            for block_sizes, order in zip(counts, orders, strict=True)
        ]
        rounds = rounds_of(*queues)
        time = rounds * (startup + max(piece_queue.longest for piece_queue in queues))
        if time < least_time:
            least_time, fastest_size = time, size
        if size == 1 or time > 2 * least_time or rounds > MAX_PLANNED_ROUNDS:
            return fastest_size
        size = max(size * 7 // 8, 1)


@dataclass(frozen=True)
class Departures:
    """Of each piece of a group the round of its departure, and its owner's rank.

    `begin` and `size` say its place in the owner's block, `start` that among the blocks
    of the group, `entry` the place of the remote group's ring where the piece enters.
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
class _OwnerTurn:
    """The current owner of a group, and the number of its pieces still to send."""

    queue: PieceQueue
    owner: int
    pieces_left: int

    @property
    def done(self) -> bool:
        """Whether all pieces of the group are sent."""
        return self.owner == len(self.queue.owners)

    @property
    def last(self) -> bool:
        """Whether the owner's next piece is its last, and another owner follows."""
        return self.pieces_left == 1 and self.owner + 1 < len(self.queue.owners)

    @property
    def entry(self) -> int:
        """The place behind the owner, where pieces of the remote group enter.

        Places go on counting beyond the end of the ring.
        """
        if not len(self.queue.owners):
            return 0
        return int(self.queue.owners[min(self.owner, len(self.queue.owners) - 1)]) + 1

    @property
    def free(self) -> int:
        """The pieces that the owner can send before the remote group must pause."""
        follows = self.owner + 1 < len(self.queue.owners)
        return self.pieces_left - 1 if follows else self.pieces_left

    def take(self, n: int) -> int:
        """Send n pieces of the owner, and return the number of rounds to wait then.

        Both groups wait where the owner changes, until the next owner is free to send.
        """
        self.pieces_left -= n
        if self.pieces_left:
            return 0
        self.owner += 1
        if self.done:
            return 0
        previous, current = self.queue.owners[self.owner - 1 : self.owner + 1]
        self.pieces_left = int(self.queue.numbers[self.owner])
        return int(current - previous) - 1


def _first_turn(queue: PieceQueue) -> _OwnerTurn:
    return _OwnerTurn(queue, 0, int(queue.numbers[0]) if len(queue.numbers) else 0)


def _departure_runs(
    a: PieceQueue, b: PieceQueue
) -> Iterator[tuple[int, int, int, int]]:
    """Runs of pieces: group, round of the first piece, number of pieces, entry.

    Both groups send a piece in every round, except that nothing of the remote group
    enters in the round of an owner's last piece, since the entry then moves.
    """
    turns, round_number = (_first_turn(a), _first_turn(b)), 0
    while not all(turn.done for turn in turns):
        going = [i for i in (0, 1) if not turns[i].done]
        n = min(turns[i].free for i in going)
        if n == 0:
            # the second group's owner sends its last piece before the first group's
            going = [max(i for i in going if turns[i].last)]
            n = 1
        for i in going:
            yield i, round_number, n, turns[1 - i].entry
        waits = [turns[i].take(n) for i in going]
        round_number += n + sum(waits)


def departures_of(
    sides: Sequence[Blocks], queues: Sequence[PieceQueue]
) -> tuple[Departures, Departures]:
    """The departures of the pieces of each group."""
    runs = list(_departure_runs(*queues))
    departures = []
    for i, (blocks, piece_queue) in enumerate(zip(sides, queues, strict=True)):
        own_runs = [
            (first_round, n, entry) for j, first_round, n, entry in runs if j == i
        ]
        rounds = [
            np.arange(first_round, first_round + n) for first_round, n, _ in own_runs
        ]
        entries = [np.full(n, entry) for _, n, entry in own_runs]
        owner = np.repeat(piece_queue.order[piece_queue.owners], piece_queue.numbers)
        first = np.cumsum(piece_queue.numbers) - piece_queue.numbers
        number = np.arange(len(owner)) - np.repeat(first, piece_queue.numbers)
        parts = np.repeat(piece_queue.numbers, piece_queue.numbers)
        block_sizes = blocks.size(owner)
        begin = cut(block_sizes, parts, number)
        size = cut(block_sizes, parts, number + 1) - begin
        empty = np.zeros(0, np.int64)
        departures.append(
            Departures(
                round=np.concatenate([*rounds, empty]),
                owner=owner,
                begin=begin,
                size=size,
                start=blocks.offset(owner) + begin,
                entry=np.concatenate([*entries, empty]) % len(queues[1 - i].order),
            )
        )
    return departures[0], departures[1]


@dataclass(frozen=True)
class PieceTimetable:
    """The pieces that come to a rank, go on and leave, round by round.

    Where r is an array, all values have an element for each of its ranks.
    """

    rounds: int
    #: in each round the arriving piece, or -1, and its sender
    arriving: Any
    source: Any
    #: whether the piece of the round before goes on, and the next rank of the ring
    goes_on: Any
    right: Index
    #: in each round the departing piece of the local group, or -1; of each piece its
    #: owner, and the rank of the remote group where it enters
    departing: list[int]
    owner: list[int]
    target: list[int]
    #: the place of a remote piece among its group's blocks, and of a local piece in
    #: its block
    remote_piece: Callable[[str, Index], Spans]
    local_piece: Callable[[str, int], Spans]
    #: the elements of the longest piece of the remote group
    longest: int


def timetable(
    r: Index,
    here: Side,
    there: Side,
    nodes: Sequence[Hashable],
    size: int,
    startup: float,
) -> PieceTimetable:
    """The timetable of rank r, or of all ranks of an array, of the local group."""
    first, second = sorted((here, there), key=lambda side: side.base)
    counts = [sizes(side.blocks) for side in (first, second)]
    size = size or best_size(counts, startup)
    orders = [
        ring_order(k, nodes[side.base : side.base + side.n])
        for k, side in zip(counts, (first, second), strict=True)
    ]
    queues = [queue(k, o, size) for k, o in zip(counts, orders, strict=True)]
    departures = departures_of([first.blocks, second.blocks], queues)
    local, remote = departures if here is first else departures[::-1]
    order, remote_order = orders if here is first else orders[::-1]
    place = np.argsort(order)[r]
    ends = [
        int(stream.round[-1]) + ring.n
        for stream, ring in ((local, there), (remote, here))
        if stream.n
    ]
    rounds = max(ends, default=0)
    column = -1, *[1] * np.ndim(r)
    hops = (place - remote.entry.reshape(column)) % here.n
    arrival = remote.round.reshape(column) + hops
    number = np.arange(remote.n).reshape(column)
    arriving = np.full((rounds + 1, *np.shape(r)), -1)
    distance = np.zeros_like(arriving)
    rank_index = (arrival, np.arange(np.size(r))) if np.ndim(r) else (arrival,)
    arriving[rank_index] = number
    distance[rank_index] = hops
    predecessor = here.base + order[place - 1]
    origin = there.base + remote.owner
    if remote.n:
        source = np.where(distance == 0, origin[arriving], predecessor)
    else:
        source = np.zeros_like(arriving)
    departing = np.full(rounds, -1)
    departing[local.round] = np.arange(local.n)
    # index -1, of no piece, finds the appended zero
    start, length = (
        table(np.append(column_values, 0), r)
        for column_values in (remote.start, remote.size)
    )
    begin, own_size = local.begin.tolist(), local.size.tolist()
    on_way = (arriving >= 0) & (distance < here.n - 1)
    return PieceTimetable(
        rounds=rounds,
        arriving=table(arriving, r),
        source=table(source, r),
        goes_on=table(on_way, r),
        right=here.base + table(order, r)[(place + 1) % here.n],
        departing=departing.tolist(),
        owner=local.owner.tolist(),
        target=(there.base + remote_order[local.entry]).tolist(),
        remote_piece=lambda buf, n: (Span(buf, start[n], length[n]),),
        local_piece=lambda buf, n: (Span(buf, begin[n], own_size[n]),),
        longest=int(remote.size.max(initial=0)),
    )


def _time(p: int, q: int, ka: float, kb: float, startup: float) -> tuple[int, int]:
    """The rounds and the longest piece for equal blocks."""
    counts = [np.full(p, int(ka)), np.full(q, int(kb))]
    size = best_size(counts, startup)
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

    Everyone sends and receives at most one piece in a round, so the transfer time is M
    and a few pieces for all blocks, also for a giant. About M/size + 3 max(p, q)
    rounds.
    """
    pieces = timetable(r, here, there, nodes, size, startup)
    previous, goes_on = -1, False
    for t in range(pieces.rounds):
        arriving, departing = pieces.arriving[t], pieces.departing[t]
        comm: list[Recv | Send] = [
            Recv(
                pieces.source[t], pieces.remote_piece("recv", arriving), arriving >= 0
            ),
            Send(pieces.right, pieces.remote_piece("recv", previous), goes_on),
        ]
        if departing >= 0:
            (part,) = pieces.local_piece("send", departing)
            comm.append(
                Send(pieces.target[departing], (part,), r == pieces.owner[departing])
            )
        yield Round(tuple(comm))
        previous, goes_on = arriving, pieces.goes_on[t]


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
    pieces = timetable(r, here, there, nodes, size, startup)
    for t in reversed(range(pieces.rounds)):
        previous = pieces.arriving[t - 1] if t else -1
        grows = pieces.goes_on[t - 1] if t else False
        arriving, departing = pieces.arriving[t], pieces.departing[t]
        (own_part,), (previous_part,) = (
            pieces.remote_piece("send", arriving),
            pieces.remote_piece("send", previous),
        )
        has_sum = pieces.goes_on[t]
        incoming = Span("tmp", t % 2 * pieces.longest, previous_part.size)
        partial_sum = Span("tmp", (t + 1) % 2 * pieces.longest, own_part.size)
        comm: list[Recv | Send] = [
            Recv(pieces.right, (incoming,), grows),
            Send(pieces.source[t], (partial_sum,), (arriving >= 0) & has_sum),
            Send(pieces.source[t], (own_part,), (arriving >= 0) & (has_sum ^ True)),
        ]
        if departing >= 0:
            (part,) = pieces.local_piece("recv", departing)
            comm.insert(
                0, Recv(pieces.target[departing], (part,), r == pieces.owner[departing])
            )
        yield Round(tuple(comm), (Reduce(previous_part, incoming, grows),))
