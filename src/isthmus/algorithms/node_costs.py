"""What node-aware collectives take: closed forms, exact where sizes divide.

A node has `ranks` processes, or fewer if a group is smaller; two groups share no node,
unless all of both fit on one. Every byte crosses a port once, one chunk after the
other, while the processes copy the chunks before and behind it: the longer of the two
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

    Between nodes a message takes alpha, and beta a byte. In a node, a byte that a
    process copies takes `alone`, one that it reduces `gamma`, and one of all processes
    together `together`; a meeting takes `meeting`. Chunks take up to `size` bytes.
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
        """What so many processes of a node take who each copy and reduce so much."""
        alone = self.alone * copied + self.gamma * reduced
        return max(alone, self.together * active * (copied + reduced))


@dataclass(frozen=True)
class Group:
    """The processes of a group: on how many nodes, and how many on each."""

    nodes: int
    ranks: int

    @property
    def size(self) -> int:
        """All of them."""
        return self.nodes * self.ranks


def group(p: int, c: Cluster) -> Group:
    """p processes that fill nodes."""
    nodes = ceil(p / c.ranks)
    return Group(nodes, ceil(p / nodes))


@dataclass(frozen=True)
class Hop:
    """A round across: the messages that each lane sends, and the bytes that all lanes
    of a node send together. So many bytes of all lanes are copied and reduced, after
    the messages or, if nothing waits for them, beside them."""

    messages: int
    size: float
    copied: float = 0.0
    reduced: float = 0.0
    beside: bool = False


#: the bytes that a process has to copy of a chunk, of so many
Chunk = Callable[[int], float]


def even(size: float) -> Chunk:
    """As many of each chunk."""
    return lambda chunks: size / chunks


def in_turns(k: float, n: int) -> Chunk:
    """A block of each of n processes of a node, one after the other."""
    return lambda chunks: k * min(n / chunks, 1)


@dataclass(frozen=True)
class Stages:
    """What the busiest node does: bytes that each of its n processes copies in and out,
    and the rounds across for each number of chunks and lanes.

    If they are summed, each of so many processes brings a vector. There are up to
    `most` lanes. If it is the node of a root, this process drives all of them.
    """

    n: int
    amount: Amount
    bring: Chunk
    take: Chunk
    across: Callable[[int, int], Iterable[Hop]] | None = None
    vectors: int = 1
    most: int = 1
    root: bool = False

    def time(self, c: Cluster) -> float:
        """The time of all steps: in each of them every stage does one chunk."""
        chunks, lanes = shape(self.amount, self.most, c.size, c.startup)
        hops = [] if self.across is None else list(self.across(chunks, lanes))
        bring, take = (Hop(0, 0.0, x(chunks)) for x in (self.bring, self.take))
        combined = bring.copied * (self.vectors - 1)
        stages = [bring, take]
        if self.vectors > 1 and chunks > 1:
            stages.insert(1, Hop(0, 0.0, 0.0, combined / self.vectors))
        elif hops and combined:  # who drives a lane combines it
            hops.insert(0, Hop(0, 0.0, 0.0, combined * chunks))
        elif combined:  # who takes the sum combines it
            stages[-1] = Hop(0, 0.0, take.copied, take.copied * (self.vectors - 1))
        if hops:
            stages.insert(-1, Hop(len(hops), 0.0))
        few = min(chunks, len(stages))  # more of them repeat the step that has all
        total = (chunks + len(stages) - 2) * c.meeting
        for t in range(few + len(stages) - 1):
            now = [x for s, x in enumerate(stages) if 0 <= t - s < few]
            copied, reduced = sum(x.copied for x in now), sum(x.reduced for x in now)
            rounds = hops if any(x.messages for x in now) else [Hop(0, 0.0)]
            step = self._step(c, chunks, lanes, copied, reduced, rounds)
            total += step * (1 + chunks - few if t == len(stages) - 1 else 1)
        return total

    def _step(
        self,
        c: Cluster,
        chunks: int,
        lanes: int,
        copied: float,
        reduced: float,
        hops: Sequence[Hop],
    ) -> float:
        """One step: the rounds across, beside which the processes copy and reduce.

        Lane after lane sends; the last one begins when the port has served the others.
        From then on a round takes what the port does, or what a lane takes by itself.
        """
        lanes = 1 if self.root else lanes
        total, late, busy, each = 0.0, 0.0, False, chunks * lanes
        copied, reduced = copied / len(hops), reduced / len(hops)
        for hop in hops:
            own = hop.copied / each, hop.reduced / each
            early = c.work(copied, reduced, self.n)
            if hop.beside:
                early = c.work(copied + own[0], reduced + own[1], self.n)
            count = max(hop.messages, 1)
            byte = hop.size / (each * count) * c.beta
            lane = c.alpha * bool(hop.messages) + byte
            cycle = max(lanes * byte, lane)
            if hop.messages and not busy:
                comm = (lanes - 1) * byte + lane + (count - 1) * cycle
                total, busy = total + late + max(comm, early), True
            else:
                comm = lane + (count - 1) * cycle
                total += max(lanes * count * byte, late + max(comm, early))
            late = 0.0 if hop.beside else c.work(*own, min(lanes, self.n))
        return total + late


def collected(n: int, total: float, long: bool) -> Iterator[Hop]:
    """An allgather of all bytes among n nodes."""
    have = 1
    while have < n:
        size = 1 if long else min(have, n - have)
        yield Hop(1, size * total / n)
        have += size


def summed(n: int, total: float, long: bool) -> Iterator[Hop]:
    """A reduce_scatter of all bytes among n nodes."""
    if long:
        yield Hop(1, total / n, copied=total / n, beside=True)
        for _ in range(2, n):
            yield Hop(1, total / n, reduced=total / n, beside=True)
        yield Hop(0, 0.0, reduced=total / n, beside=True)
        return
    sizes = [hop.size for hop in collected(n, total, long=False)]
    kept = total - (sizes[-1] if sizes else 0)
    yield Hop(0, 0.0, copied=kept)
    for size in reversed(sizes):
        yield Hop(1, size, reduced=size)
    yield Hop(0, 0.0, copied=total / n)


def swapped(a: Group, b: Group, total: float) -> Hop:
    """All bytes of one group's nodes to the other's, in equal shares."""
    few, many = sorted((a.nodes, b.nodes))
    return Hop(ceil(many / few), total / few)


def _both(*ways: Iterator[Hop]) -> Iterator[Hop]:
    """Rounds of both directions at once: the longer ones count."""
    for hops in zip_longest(*ways, fillvalue=Hop(0, 0.0)):
        yield Hop(*(max(getattr(h, f.name) for h in hops) for f in fields(Hop)))


# -- between two groups


@dataclass(frozen=True)
class _Pair:
    """Two groups, perhaps together on one node."""

    a: Group
    b: Group
    together: bool

    def stages(
        self,
        amount: Amount,
        copied: tuple[Chunk, Chunk],
        across: Callable[[int, int], Iterable[Hop]],
        summed: bool = False,
    ) -> Stages:
        """The stages of both, of which each process copies so much in and out."""
        ranks = max(self.a.ranks, self.b.ranks)
        n = self.a.size + self.b.size if self.together else ranks
        if self.together:
            amount = replace(amount, messages=0)
        hops = None if self.together else across
        return Stages(n, amount, *copied, hops, ranks if summed else 1, ranks)


def _pair(p: int, q: int, c: Cluster) -> _Pair:
    if p + q <= c.ranks:
        return _Pair(Group(1, p), Group(1, q), True)
    return _Pair(group(p, c), group(q, c), False)


def inter_allgather(p: int, q: int, ka: float, kb: float, c: Cluster) -> float:
    """All ranks copy their block in, and the other group's blocks out."""
    pair = _pair(p, q, c)
    a, b = pair.a, pair.b

    def across(chunks: int, lanes: int) -> Iterator[Hop]:
        def way(x: Group, y: Group, k: float) -> Iterator[Hop]:
            long = long_messages(x.ranks * k, chunks, lanes, c.startup)
            yield swapped(x, y, x.size * k)
            yield from collected(y.nodes, x.size * k, long)

        return _both(way(a, b, ka), way(b, a, kb))

    bring = in_turns(max(ka, kb), min(a.ranks, b.ranks))
    need = max(a.ranks * ka + q * kb, b.ranks * kb + p * ka)
    volume, part = max(p * ka, q * kb), max(a.ranks * ka, b.ranks * kb)
    messages = swapped(a, b, volume).messages + log2(max(a.nodes, b.nodes))
    amount = Amount(need, volume, messages, part)
    return pair.stages(amount, (bring, even(volume)), across).time(c)


def _inter_sum(p: int, q: int, m: float, c: Cluster, everything: bool) -> float:
    """All ranks copy their vector in; the nodes add theirs up and swap shares."""
    pair = _pair(p, q, c)
    a, b, n = pair.a, pair.b, max(pair.a.ranks, pair.b.ranks)

    def across(chunks: int, lanes: int) -> Iterator[Hop]:
        def way(x: Group, y: Group) -> Iterator[Hop]:
            long = long_messages(m / x.nodes, chunks, lanes, c.startup)
            yield from summed(x.nodes, m, long)
            yield swapped(x, y, m)
            if everything:
                yield from collected(y.nodes, m, long)

        return _both(way(a, b), way(b, a))

    take = even(m) if everything else in_turns(m / min(p, q), n)
    need = n * m + (m if everything else m / min(a.nodes, b.nodes))
    if pair.together:
        need = (p + q) * m
    few, many = sorted((a.nodes, b.nodes))
    messages = swapped(a, b, m).messages + log2(many) + log2(few) * everything
    amount = Amount(need, m, messages, m / many)
    return pair.stages(amount, (even(m), take), across, summed=True).time(c)


def inter_allreduce(p: int, q: int, m: float, c: Cluster) -> float:
    """Sums of shares, swapped and collected."""
    return _inter_sum(p, q, m, c, everything=True)


def inter_reduce_scatter(p: int, q: int, n: float, c: Cluster) -> float:
    """Sums of shares, swapped."""
    return _inter_sum(p, q, n, c, everything=False)


def inter_alltoall(p: int, q: int, ka: float, kb: float, c: Cluster) -> float:
    """Nodes exchange the blocks of all their ranks in one round."""
    pair = _pair(p, q, c)
    a, b, mine = pair.a, pair.b, max(q * ka, p * kb)
    hop = Hop(max(a.nodes, b.nodes), max(a.ranks, b.ranks) * mine)
    need = max(a.ranks * q, b.ranks * p) * (ka + kb)
    volume, part = max(a.ranks * q * ka, b.ranks * p * kb), a.ranks * b.ranks
    amount = Amount(need, volume, hop.messages, part * max(ka, kb))
    return pair.stages(amount, (even(mine), even(mine)), lambda *x: [hop]).time(c)


def inter_barrier(p: int, q: int, c: Cluster) -> float:
    """A meeting, a circle of all nodes, a meeting."""
    pair = _pair(p, q, c)
    return _circle(1 if pair.together else pair.a.nodes + pair.b.nodes, c)


def _circle(nodes: int, c: Cluster) -> float:
    return (2 if nodes > 1 else 1) * c.meeting + log2(nodes) * c.alpha


# -- between a root and p - 1 leaves


def _streamed(p: int, m: float, c: Cluster, sums: bool) -> float:
    """A circulant pipeline of nodes that never pauses, a few rounds to a meeting: what
    came in a step is put into "node" in the next and taken in that after it; what goes
    is brought and combined in the steps before."""
    leaves = group(p - 1, c)
    vertices, n = leaves.nodes + 1, leaves.ranks
    how = stream_shape(m, vertices, n, c.startup, c.size, sums)
    rounds, piece = how.parts - 1 + log2(vertices), m / how.parts
    between, lanes = how.between, min(how.lanes, how.parts)
    steps, size = ceil(rounds / between), min(between * piece, m)
    # of the few parts of a step, one lane may have more than another
    driven = size * (1 + (lanes - 1) / between**0.5) / lanes
    if sums:
        work = [(size, 0.0), (0.0, size * (n - 1) / n)]
    elif n == 1:
        work = [(0.0, 0.0)] * 2
    else:
        work = [(driven, 0.0), (driven if n <= lanes else size, 0.0)]
    copied, reduced = (sum(x) / between for x in zip(*work, strict=True))
    if n > lanes and not sums:  # some only take, the others put more and take less
        copied = size / between
    beside = c.work(copied, reduced, n) if steps > 1 else 0.0
    late = c.work(0, piece, lanes) if sums else 0.0
    meetings = steps + 1 - (steps == 1 and not sums)
    if sums and how.shared:
        late, meetings = c.work(0, piece / n, n), meetings + steps - 1
    each = c.alpha + piece * c.beta
    total = how.parts * max(each, beside) + (rounds - how.parts) * each
    # what arrived is combined in the next round, or before it if it goes on at once
    total += (rounds + 1) * late / 2
    # before the first rounds, or after the last ones, there is nothing beside them
    total += sum(c.work(*x, n) for x in work)
    return total + meetings * c.meeting


def _inside(need: float) -> Amount:
    """What stays on one node."""
    return Amount(need, 0.0, 0, 0.0)


def inter_bcast(p: int, m: float, c: Cluster) -> float:
    """A pipeline of nodes; on one node, in and out."""
    if p <= c.ranks:
        return Stages(p, _inside(m), even(m), even(m), most=p - 1).time(c)
    return _streamed(p, m, c, sums=False)


def inter_reduce(p: int, m: float, c: Cluster) -> float:
    """A pipeline of nodes; on one node, in, combined, and out."""
    if p <= c.ranks:
        n = p - 1
        whole = _inside(n * m)
        return Stages(n, whole, even(m), even(m), vectors=n, most=n).time(c)
    return _streamed(p, m, c, sums=True)


def _rooted(p: int, k: float, c: Cluster, in_: bool) -> float:
    """Blocks of p - 1 leaves, to the root or from it: its memory is the busiest."""
    total, leaves = (p - 1) * k, group(p - 1, c)

    def across(chunks: int, lanes: int) -> Iterator[Hop]:
        yield Hop(lanes * leaves.nodes, total)

    one_node = p <= c.ranks
    blocks = in_turns(k, p - 1) if one_node else even(0.0)
    bring, take = (blocks, even(total)) if in_ else (even(total), blocks)
    if one_node:
        inside = _inside(total)
        return Stages(p, inside, bring, take, most=leaves.ranks).time(c)
    amount = Amount(total, total, leaves.nodes, leaves.ranks * k)
    return Stages(1, amount, bring, take, across, 1, leaves.ranks, root=True).time(c)


def inter_gather(p: int, k: float, c: Cluster) -> float:
    """All nodes send what their ranks have to the root, in one round."""
    return _rooted(p, k, c, in_=True)


def inter_scatter(p: int, k: float, c: Cluster) -> float:
    """The root sends every node what its ranks get, in one round."""
    return _rooted(p, k, c, in_=False)


# -- inside one group


def allgatherv(p: int, k: float, c: Cluster) -> float:
    """Nodes collect the blocks of their ranks; all ranks copy them out."""
    every, total = group(p, c), p * k
    n, nodes = every.ranks, every.nodes

    def across(chunks: int, lanes: int) -> Iterator[Hop]:
        long = long_messages(n * k, chunks, lanes, c.startup)
        return collected(nodes, total, long)

    hops, copied = across if nodes > 1 else None, (in_turns(k, n), even(total))
    amount = Amount(total, total, log2(nodes), n * k)
    return Stages(n, amount, *copied, hops, most=n).time(c)


def _sum(p: int, m: float, c: Cluster, everything: bool) -> float:
    every = group(p, c)
    n, nodes = every.ranks, every.nodes

    def across(chunks: int, lanes: int) -> Iterator[Hop]:
        long = long_messages(m / nodes, chunks, lanes, c.startup)
        yield from summed(nodes, m, long)
        if everything:
            yield from collected(nodes, m, long)

    copied = even(m), even(m) if everything else in_turns(m / p, n)
    out = 0.0 if nodes == 1 else m if everything else m / nodes
    hops = across if nodes > 1 else None
    messages = log2(nodes) * (2 if everything else 1)
    amount = Amount(n * m + out, m, messages, m / nodes)
    return Stages(n, amount, *copied, hops, n, n).time(c)


def allreduce(p: int, m: float, c: Cluster) -> float:
    """Sums of shares, collected."""
    return _sum(p, m, c, everything=True)


def reduce_scatter(p: int, n: float, c: Cluster) -> float:
    """Sums of shares."""
    return _sum(p, n, c, everything=False)


def alltoall(p: int, k: float, c: Cluster) -> float:
    """Nodes exchange the blocks of all their ranks in one round."""
    every, mine = group(p, c), p * k
    n, nodes = every.ranks, every.nodes
    hop = Hop(nodes - 1, n * mine * (nodes - 1) / nodes)
    need = n * mine * (1 if nodes == 1 else 2)
    across = (lambda *x: [hop]) if nodes > 1 else None
    amount = Amount(need, n * mine, nodes - 1, n * n * k)
    return Stages(n, amount, even(mine), even(mine), across, most=n).time(c)


def barrier(p: int, c: Cluster) -> float:
    """A meeting, a circle of all nodes, a meeting."""
    return _circle(group(p, c).nodes, c)


# -- inside one group, with a root that is on one of the nodes: as from another group


def bcast(p: int, m: float, c: Cluster) -> float:
    """As between a root and a group."""
    return inter_bcast(p, m, c) if p > 1 else 0.0


def reduce(p: int, m: float, c: Cluster) -> float:
    """Sums of shares, which the root collects."""
    return _sum(p, m, c, everything=True)


def gatherv(p: int, k: float, c: Cluster) -> float:
    """As between a root and a group."""
    return inter_gather(p, k, c) if p > 1 else 0.0


def scatterv(p: int, k: float, c: Cluster) -> float:
    """As between a root and a group."""
    return inter_scatter(p, k, c) if p > 1 else 0.0
