"""The time of node-aware collectives: closed forms, exact where sizes divide.

A node has `ranks` processes, or fewer if a group is smaller; two groups share no node,
unless all of both fit on one node. Every byte crosses a port once, one chunk after the
other, while the processes copy the chunks before and behind: the longer of the two
counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import zip_longest
from math import ceil

from .parts.nodes import NODE_CHUNK_ELEMENTS, Amount, long_messages, shape
from .parts.patterns import log2
from .parts.streams import stream_shape


@dataclass(frozen=True)
class Cluster:
    """Nodes of `ranks` processes behind one port each.

    Between nodes a message takes alpha, and beta a byte. In a node, a byte takes
    `alone` if a process copies it, `gamma` if a process reduces it, and `together` for
    all processes at once; a meeting takes `meeting`. Chunks take up to `size` bytes.
    """

    ranks: int
    alpha: float
    beta: float
    alone: float = 0.0
    together: float = 0.0
    gamma: float = 0.0
    meeting: float = 0.0
    size: float = NODE_CHUNK_ELEMENTS

    @property
    def startup(self) -> float:
        """The bytes that pass in the time of a start-up."""
        return self.alpha / self.beta

    def work(self, copied: float, reduced: float, active: int) -> float:
        """The time for `active` processes of a node to copy and reduce so many bytes.

        Either each process by itself is the limit, or the memory that all of them
        share.
        """
        alone = self.alone * copied + self.gamma * reduced
        return max(alone, self.together * active * (copied + reduced))


@dataclass(frozen=True)
class NodeGroup:
    """The processes of a group: the number of nodes, and of ranks on each."""

    nodes: int
    ranks: int

    @property
    def size(self) -> int:
        """The number of processes."""
        return self.nodes * self.ranks


def group(p: int, cluster: Cluster) -> NodeGroup:
    """The group of p processes, which fill nodes."""
    nodes = ceil(p / cluster.ranks)
    return NodeGroup(nodes, ceil(p / nodes))


@dataclass(frozen=True)
class Hop:
    """A round across nodes: messages of each lane, bytes of all lanes together.

    So many bytes of all lanes are copied and reduced, after the messages or, if nothing
    waits for the result, beside them.
    """

    messages: int
    size: float
    copied: float = 0.0
    reduced: float = 0.0
    beside: bool = False


#: the bytes that a process copies of a chunk, by the number of chunks
BytesOfChunk = Callable[[int], float]


def even(size: float) -> BytesOfChunk:
    """Equally many bytes of each chunk."""
    return lambda chunks: size / chunks


def in_turns(k: float, n: int) -> BytesOfChunk:
    """A block of each of n processes of a node, in turn."""
    return lambda chunks: k * min(n / chunks, 1)


@dataclass(frozen=True)
class Stages:
    """The work of the busiest node, for each number of chunks and lanes.

    Each of its n processes copies bytes in and out, with rounds across between. If data
    are summed, each of `vectors` processes brings a vector. There are up to `max_lanes`
    lanes. On the node of a root, the root alone drives all lanes.
    """

    n: int
    amount: Amount
    bring: BytesOfChunk
    take: BytesOfChunk
    across: Callable[[int, int], Iterable[Hop]] | None = None
    vectors: int = 1
    max_lanes: int = 1
    root: bool = False

    def time(self, cluster: Cluster) -> float:
        """The time of all steps: in each step every stage does one chunk."""
        chunks, lanes = shape(
            self.amount, self.max_lanes, cluster.size, cluster.startup
        )
        hops = [] if self.across is None else list(self.across(chunks, lanes))
        bring, take = (Hop(0, 0.0, x(chunks)) for x in (self.bring, self.take))
        combined = bring.copied * (self.vectors - 1)
        stages = [bring, take]
        if self.vectors > 1 and chunks > 1:
            stages.insert(1, Hop(0, 0.0, 0.0, combined / self.vectors))
        elif hops and combined:  # the driver of a lane combines
            hops.insert(0, Hop(0, 0.0, 0.0, combined * chunks))
        elif combined:  # the ranks that take the sum combine
            stages[-1] = Hop(0, 0.0, take.copied, take.copied * (self.vectors - 1))
        if hops:
            stages.insert(-1, Hop(len(hops), 0.0))
        # further chunks repeat the step in which all stages work
        modelled_chunks = min(chunks, len(stages))
        total = (chunks + len(stages) - 2) * cluster.meeting
        for t in range(modelled_chunks + len(stages) - 1):
            active = [x for s, x in enumerate(stages) if 0 <= t - s < modelled_chunks]
            copied, reduced = (
                sum(x.copied for x in active),
                sum(x.reduced for x in active),
            )
            rounds = hops if any(x.messages for x in active) else [Hop(0, 0.0)]
            step = self._step(cluster, chunks, lanes, copied, reduced, rounds)
            total += step * (
                1 + chunks - modelled_chunks if t == len(stages) - 1 else 1
            )
        return total

    def _step(
        self,
        cluster: Cluster,
        chunks: int,
        lanes: int,
        copied: float,
        reduced: float,
        hops: Sequence[Hop],
    ) -> float:
        """The time of one step: rounds across, while the processes copy and reduce.

        Lane after lane sends; the last lane begins when the port has served the others.
        From then on a round takes the time of the port, or of a lane by itself.
        """
        lanes = 1 if self.root else lanes
        total, work_after, port_served, lane_chunks = 0.0, 0.0, False, chunks * lanes
        copied, reduced = copied / len(hops), reduced / len(hops)
        for hop in hops:
            hop_work = hop.copied / lane_chunks, hop.reduced / lane_chunks
            work_meanwhile = cluster.work(copied, reduced, self.n)
            if hop.beside:
                work_meanwhile = cluster.work(
                    copied + hop_work[0], reduced + hop_work[1], self.n
                )
            count = max(hop.messages, 1)
            transfer = hop.size / (lane_chunks * count) * cluster.beta
            message_time = cluster.alpha * bool(hop.messages) + transfer
            cycle = max(lanes * transfer, message_time)
            if hop.messages and not port_served:
                comm = (lanes - 1) * transfer + message_time + (count - 1) * cycle
                total, port_served = (
                    total + work_after + max(comm, work_meanwhile),
                    True,
                )
            else:
                comm = message_time + (count - 1) * cycle
                total += max(
                    lanes * count * transfer, work_after + max(comm, work_meanwhile)
                )
            work_after = (
                0.0 if hop.beside else cluster.work(*hop_work, min(lanes, self.n))
            )
        return total + work_after


def collected(n: int, total: float, long: bool) -> Iterator[Hop]:
    """An allgather of all bytes among n nodes."""
    blocks_held = 1
    while blocks_held < n:
        size = 1 if long else min(blocks_held, n - blocks_held)
        yield Hop(1, size * total / n)
        blocks_held += size


def summed(n: int, total: float, long: bool) -> Iterator[Hop]:
    """A reduce_scatter of all bytes among n nodes."""
    if long:
        yield Hop(1, total / n, copied=total / n, beside=True)
        for _ in range(2, n):
            yield Hop(1, total / n, reduced=total / n, beside=True)
        yield Hop(0, 0.0, reduced=total / n, beside=True)
        return
    sizes = [hop.size for hop in collected(n, total, long=False)]
    first_copied = total - (sizes[-1] if sizes else 0)
    yield Hop(0, 0.0, copied=first_copied)
    for size in reversed(sizes):
        yield Hop(1, size, reduced=size)
    yield Hop(0, 0.0, copied=total / n)


def swapped(a: NodeGroup, b: NodeGroup, total: float) -> Hop:
    """The round in which the nodes of each group send all bytes across, in shares."""
    smaller, larger = sorted((a.nodes, b.nodes))
    return Hop(ceil(larger / smaller), total / smaller)


def _longer(*directions: Iterator[Hop]) -> Iterator[Hop]:
    """Rounds of both directions at once: the longer ones count."""
    for hops in zip_longest(*directions, fillvalue=Hop(0, 0.0)):
        yield Hop(*(max(getattr(h, f.name) for h in hops) for f in fields(Hop)))


# -- between two groups


@dataclass(frozen=True)
class _GroupPair:
    """Two groups, perhaps together on one node."""

    a: NodeGroup
    b: NodeGroup
    together: bool

    def stages(
        self,
        amount: Amount,
        copied: tuple[BytesOfChunk, BytesOfChunk],
        across: Callable[[int, int], Iterable[Hop]],
        summed: bool = False,
    ) -> Stages:
        """The stages of both groups, with the bytes copied in and out by a process."""
        ranks = max(self.a.ranks, self.b.ranks)
        n = self.a.size + self.b.size if self.together else ranks
        if self.together:
            amount = replace(amount, messages=0)
        hops = None if self.together else across
        return Stages(
            n, amount, *copied, hops, vectors=ranks if summed else 1, max_lanes=ranks
        )


def _pair(p: int, q: int, cluster: Cluster) -> _GroupPair:
    """Two groups together on one node if all processes fit, else on their own nodes."""
    if p + q <= cluster.ranks:
        return _GroupPair(NodeGroup(1, p), NodeGroup(1, q), True)
    return _GroupPair(group(p, cluster), group(q, cluster), False)


def inter_allgather(p: int, q: int, ka: float, kb: float, cluster: Cluster) -> float:
    """The time to copy all blocks in, across, and the remote group's blocks out."""
    pair = _pair(p, q, cluster)
    a, b = pair.a, pair.b

    def across(chunks: int, lanes: int) -> Iterator[Hop]:
        def direction(sources: NodeGroup, sinks: NodeGroup, k: float) -> Iterator[Hop]:
            long = long_messages(sources.ranks * k, chunks, lanes, cluster.startup)
            yield swapped(sources, sinks, sources.size * k)
            yield from collected(sinks.nodes, sources.size * k, long)

        return _longer(direction(a, b, ka), direction(b, a, kb))

    bring = in_turns(max(ka, kb), min(a.ranks, b.ranks))
    need = max(a.ranks * ka + q * kb, b.ranks * kb + p * ka)
    volume, part = max(p * ka, q * kb), max(a.ranks * ka, b.ranks * kb)
    messages = swapped(a, b, volume).messages + log2(max(a.nodes, b.nodes))
    amount = Amount(need=need, volume=volume, messages=messages, part=part)
    return pair.stages(amount, (bring, even(volume)), across).time(cluster)


def _inter_sum(p: int, q: int, m: float, cluster: Cluster, everything: bool) -> float:
    """The time to copy all vectors in, add them, swap shares, and copy sums out."""
    pair = _pair(p, q, cluster)
    a, b, n = pair.a, pair.b, max(pair.a.ranks, pair.b.ranks)

    def across(chunks: int, lanes: int) -> Iterator[Hop]:
        def direction(sources: NodeGroup, sinks: NodeGroup) -> Iterator[Hop]:
            long = long_messages(m / sources.nodes, chunks, lanes, cluster.startup)
            yield from summed(sources.nodes, m, long)
            yield swapped(sources, sinks, m)
            if everything:
                yield from collected(sinks.nodes, m, long)

        return _longer(direction(a, b), direction(b, a))

    take = even(m) if everything else in_turns(m / min(p, q), n)
    need = n * m + (m if everything else m / min(a.nodes, b.nodes))
    if pair.together:
        need = (p + q) * m
    smaller, larger = sorted((a.nodes, b.nodes))
    messages = swapped(a, b, m).messages + log2(larger) + log2(smaller) * everything
    amount = Amount(need=need, volume=m, messages=messages, part=m / larger)
    return pair.stages(amount, (even(m), take), across, summed=True).time(cluster)


def inter_allreduce(p: int, q: int, m: float, cluster: Cluster) -> float:
    """The time of sums of shares, swapped and collected."""
    return _inter_sum(p, q, m, cluster, everything=True)


def inter_reduce_scatter(p: int, q: int, n: float, cluster: Cluster) -> float:
    """The time of sums of shares, swapped."""
    return _inter_sum(p, q, n, cluster, everything=False)


def inter_alltoall(p: int, q: int, ka: float, kb: float, cluster: Cluster) -> float:
    """The time for nodes to exchange the blocks of all their ranks in one round."""
    pair = _pair(p, q, cluster)
    a, b, own_bytes = pair.a, pair.b, max(q * ka, p * kb)
    hop = Hop(max(a.nodes, b.nodes), max(a.ranks, b.ranks) * own_bytes)
    need = max(a.ranks * q, b.ranks * p) * (ka + kb)
    volume, part = max(a.ranks * q * ka, b.ranks * p * kb), a.ranks * b.ranks
    amount = Amount(
        need=need, volume=volume, messages=hop.messages, part=part * max(ka, kb)
    )
    return pair.stages(
        amount, (even(own_bytes), even(own_bytes)), lambda *_: [hop]
    ).time(cluster)


def inter_barrier(p: int, q: int, cluster: Cluster) -> float:
    """The time of a meeting, a circle of all nodes, a meeting."""
    pair = _pair(p, q, cluster)
    return _circle(1 if pair.together else pair.a.nodes + pair.b.nodes, cluster)


def _circle(nodes: int, cluster: Cluster) -> float:
    """The time of the meetings, and of a circle of nodes."""
    return (2 if nodes > 1 else 1) * cluster.meeting + log2(nodes) * cluster.alpha


# -- between a root and p - 1 leaves


def _streamed(p: int, m: float, cluster: Cluster, sums: bool) -> float:
    """The time of a circulant pipeline of nodes, a few rounds to a meeting.

    The pipeline never pauses: parts that arrive in a step are put into "node" in the
    next step and taken in the step after; departing parts are brought and combined in
    the steps before.
    """
    leaves = group(p - 1, cluster)
    vertices, n = leaves.nodes + 1, leaves.ranks
    stream = stream_shape(m, vertices, n, cluster.startup, cluster.size, sums)
    rounds, piece = stream.parts - 1 + log2(vertices), m / stream.parts
    between, lanes = stream.between, min(stream.lanes, stream.parts)
    steps, size = ceil(rounds / between), min(between * piece, m)
    # of the few parts of a step, a lane may have more than its share
    driven = size * (1 + (lanes - 1) / between**0.5) / lanes
    if sums:
        work = [(size, 0.0), (0.0, size * (n - 1) / n)]
    elif n == 1:
        work = [(0.0, 0.0)] * 2
    else:
        work = [(driven, 0.0), (driven if n <= lanes else size, 0.0)]
    copied, reduced = (sum(x) / between for x in zip(*work, strict=True))
    if n > lanes and not sums:
        # ranks without a lane only take; drivers put more and take less
        copied = size / between
    beside = cluster.work(copied, reduced, n) if steps > 1 else 0.0
    work_after = cluster.work(0, piece, lanes) if sums else 0.0
    meetings = steps + 1 - (steps == 1 and not sums)
    if sums and stream.shared:
        work_after, meetings = cluster.work(0, piece / n, n), meetings + steps - 1
    message_time = cluster.alpha + piece * cluster.beta
    total = (
        stream.parts * max(message_time, beside)
        + (rounds - stream.parts) * message_time
    )
    # an arrived part is combined in the next round, or before if it is sent on at once
    total += (rounds + 1) * work_after / 2
    # the work before the first rounds, or after the last, has no messages beside
    total += sum(cluster.work(*x, n) for x in work)
    return total + meetings * cluster.meeting


def _inside(need: float) -> Amount:
    """The amount of data without messages, on a single node."""
    return Amount(need=need, volume=0.0, messages=0, part=0.0)


def inter_bcast(p: int, m: float, cluster: Cluster) -> float:
    """The time of a pipeline of nodes; on one node, of copies in and out."""
    if p <= cluster.ranks:
        return Stages(p, _inside(m), even(m), even(m), max_lanes=p - 1).time(cluster)
    return _streamed(p, m, cluster, sums=False)


def inter_reduce(p: int, m: float, cluster: Cluster) -> float:
    """The time of a pipeline of nodes; on one node, of copies and sums."""
    if p <= cluster.ranks:
        n = p - 1
        whole = _inside(n * m)
        return Stages(n, whole, even(m), even(m), vectors=n, max_lanes=n).time(cluster)
    return _streamed(p, m, cluster, sums=True)


def _rooted(p: int, k: float, cluster: Cluster, to_root: bool) -> float:
    """The time of blocks of p - 1 leaves, to the root or from it.

    The memory of the root's node is the busiest.
    """
    total, leaves = (p - 1) * k, group(p - 1, cluster)

    def across(chunks: int, lanes: int) -> Iterator[Hop]:
        yield Hop(lanes * leaves.nodes, total)

    one_node = p <= cluster.ranks
    blocks = in_turns(k, p - 1) if one_node else even(0.0)
    bring, take = (blocks, even(total)) if to_root else (even(total), blocks)
    if one_node:
        inside = _inside(total)
        return Stages(p, inside, bring, take, max_lanes=leaves.ranks).time(cluster)
    amount = Amount(
        need=total, volume=total, messages=leaves.nodes, part=leaves.ranks * k
    )
    return Stages(
        1, amount, bring, take, across, max_lanes=leaves.ranks, root=True
    ).time(cluster)


def inter_gather(p: int, k: float, cluster: Cluster) -> float:
    """The time for all nodes to send their ranks' data to the root, in one round."""
    return _rooted(p, k, cluster, to_root=True)


def inter_scatter(p: int, k: float, cluster: Cluster) -> float:
    """The time for the root to send every node the blocks of its ranks in a round."""
    return _rooted(p, k, cluster, to_root=False)


# -- inside one group


def allgatherv(p: int, k: float, cluster: Cluster) -> float:
    """The time for nodes to collect their ranks' blocks, and all ranks to copy all."""
    all_ranks, total = group(p, cluster), p * k
    n, nodes = all_ranks.ranks, all_ranks.nodes

    def across(chunks: int, lanes: int) -> Iterator[Hop]:
        long = long_messages(n * k, chunks, lanes, cluster.startup)
        return collected(nodes, total, long)

    hops, copied = across if nodes > 1 else None, (in_turns(k, n), even(total))
    amount = Amount(need=total, volume=total, messages=log2(nodes), part=n * k)
    return Stages(n, amount, *copied, hops, max_lanes=n).time(cluster)


def _sum(p: int, m: float, cluster: Cluster, everything: bool) -> float:
    """The time of sums of shares, collected if every rank needs everything."""
    all_ranks = group(p, cluster)
    n, nodes = all_ranks.ranks, all_ranks.nodes

    def across(chunks: int, lanes: int) -> Iterator[Hop]:
        long = long_messages(m / nodes, chunks, lanes, cluster.startup)
        yield from summed(nodes, m, long)
        if everything:
            yield from collected(nodes, m, long)

    copied = even(m), even(m) if everything else in_turns(m / p, n)
    out = 0.0 if nodes == 1 else m if everything else m / nodes
    hops = across if nodes > 1 else None
    messages = log2(nodes) * (2 if everything else 1)
    amount = Amount(need=n * m + out, volume=m, messages=messages, part=m / nodes)
    return Stages(n, amount, *copied, hops, vectors=n, max_lanes=n).time(cluster)


def allreduce(p: int, m: float, cluster: Cluster) -> float:
    """The time of sums of shares, collected."""
    return _sum(p, m, cluster, everything=True)


def reduce_scatter(p: int, n: float, cluster: Cluster) -> float:
    """The time of sums of shares."""
    return _sum(p, n, cluster, everything=False)


def alltoall(p: int, k: float, cluster: Cluster) -> float:
    """The time for nodes to exchange the blocks of all their ranks in one round."""
    all_ranks, own_bytes = group(p, cluster), p * k
    n, nodes = all_ranks.ranks, all_ranks.nodes
    hop = Hop(nodes - 1, n * own_bytes * (nodes - 1) / nodes)
    need = n * own_bytes * (1 if nodes == 1 else 2)
    across = (lambda *_: [hop]) if nodes > 1 else None
    amount = Amount(need=need, volume=n * own_bytes, messages=nodes - 1, part=n * n * k)
    return Stages(
        n, amount, even(own_bytes), even(own_bytes), across, max_lanes=n
    ).time(cluster)


def barrier(p: int, cluster: Cluster) -> float:
    """The time of a meeting, a circle of all nodes, a meeting."""
    return _circle(group(p, cluster).nodes, cluster)


# -- inside one group, with a root that is on one of the nodes: as from another group


def bcast(p: int, m: float, cluster: Cluster) -> float:
    """The time of a broadcast between a root and a group, 0 for a single rank."""
    return inter_bcast(p, m, cluster) if p > 1 else 0.0


def reduce(p: int, m: float, cluster: Cluster) -> float:
    """The time of sums of shares, which the root collects."""
    return _sum(p, m, cluster, everything=True)


def gatherv(p: int, k: float, cluster: Cluster) -> float:
    """The time of a gather between a root and a group, 0 for a single rank."""
    return inter_gather(p, k, cluster) if p > 1 else 0.0


def scatterv(p: int, k: float, cluster: Cluster) -> float:
    """The time of a scatter between a root and a group, 0 for a single rank."""
    return inter_scatter(p, k, cluster) if p > 1 else 0.0
