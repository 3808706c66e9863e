"""Every collective made node-aware: the flows that it consists of (see `nodes`)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from itertools import pairwise

import numpy as np

from ..ir import Copy, Program, Round, Span
from ..layout import Blocks, Rows, Side, Uneven, cut
from ..program import renumber, then
from ..registry import Stage, algorithm
from . import node_costs
from .inter_barrier import circle
from .nodes import (
    SIZE,
    Exchange,
    Flow,
    Parts,
    Team,
    Window,
    flowing,
    long_messages,
    merged,
    parts,
    pipeline,
    shape,
    team,
)
from .patterns import STARTUP
from .streams import Stream, stream_shape

PAPER = "Träff, Hunold 2020"
Nodes = Sequence[Hashable]
#: where a rank's block begins in the vector of all blocks, and its size
Block = Callable[[int], tuple[int, int]]
#: the flows of a collective, in so many chunks and lanes
Make = Callable[[int, int, float], Sequence[Flow | Exchange]]


node_aware = partial(algorithm, name="node_aware", paper=PAPER, node_memory=True)


def placed(nodes: Nodes, n: int) -> tuple[Hashable, ...]:
    """The nodes of n ranks; where none are given, all are on one."""
    if len(nodes) not in (0, n):
        raise ValueError(f"nodes names the nodes of {len(nodes)} ranks; there are {n}")
    return tuple(nodes) or (0,) * n


def planned(
    r: int, nodes: Nodes, make: Make, lanes: int, size: int, startup: float
) -> Program:
    """What rank r does, in chunks that take up to `size` elements of a node's memory,
    and in so many lanes; where nobody says, in as many as still send long messages."""
    once = make(1, 1, startup)
    need = max(sum(flow.room(node) for flow in once) for node in set(nodes))
    most = max(max(x.sources.most, x.sinks.most) for x in once)
    part = max(flow.part for flow in once)
    chunks, lanes = shape(need, part, most, size, startup, lanes)
    return flowing(r, nodes[r], make(chunks, lanes, startup))


def _block(blocks: Blocks, base: int = 0) -> Block:
    """The blocks of ranks that are numbered from `base` on."""
    ends = np.asarray(blocks.offset(np.arange(blocks.n + 1))).tolist()
    return lambda r: (ends[r - base], ends[r - base + 1] - ends[r - base])


def _whole(m: int, buf: str = "recv") -> Callable[[int], Window]:
    """All of a vector."""
    return lambda r: Window(buf, 0, m, 0)


def _own(block: Block, buf: str) -> Callable[[int], Window]:
    """A rank's block of a vector."""

    def window(r: int) -> Window:
        start, size = block(r)
        return Window(buf, start, size, start)

    return window


def _parts(who: Team, block: Block, chunks: int, lanes: int) -> Parts:
    """A vector as the blocks of the ranks of each vertex."""
    runs = tuple(merged(block(r) for r in ranks) for ranks in who.ranks)
    return parts(runs, chunks, lanes)


def _gathered(
    sources: Team, sinks: Team, block: Block, gives: Callable[[int], Window], total: int
) -> Callable[[int, int, float], Flow]:
    """The blocks of the sources, to all sinks."""

    def make(chunks: int, lanes: int, startup: float) -> Flow:
        every = _parts(sources, block, chunks, lanes)
        takes = _whole(total)
        long = long_messages(max(every.totals), chunks, lanes, startup)
        return Flow(sources, sinks, every, "sources", gives, takes, long=long)

    return make


def _scattered(
    sources: Team, sinks: Team, block: Block, total: int, summed: bool = False
) -> Callable[[int, int, float], Flow]:
    """To each sink its block, of what the source has or of the sum of the sources."""

    def make(chunks: int, lanes: int, startup: float) -> Flow:
        every = _parts(sinks, block, chunks, lanes)
        windows = _whole(total, "send"), _own(block, "recv")
        long = long_messages(total / sources.n, chunks, lanes, startup)
        return Flow(sources, sinks, every, "sinks", *windows, summed, long)

    return make


def _reduced(sources: Team, sinks: Team, m: int) -> Callable[[int, int, float], Flow]:
    """The sum of the sources, to all sinks."""

    def make(chunks: int, lanes: int, startup: float) -> Flow:
        whole = parts((((0, m),),), chunks, lanes)
        windows = _whole(m, "send"), _whole(m)
        long = long_messages(m / sources.n, chunks, lanes, startup)
        return Flow(sources, sinks, whole, "nobody", *windows, True, long)

    return make


def _all(*flows: Callable[[int, int, float], Flow | Exchange]) -> Make:
    return lambda *how: [flow(*how) for flow in flows]


# -- between two groups


class _Pair:
    """Both groups in the order of their numbers, by node."""

    def __init__(self, r: int, here: Side, there: Side, nodes: Nodes) -> None:
        self.r = here.base + r
        self.sides = (here, there) if here.base < there.base else (there, here)
        self.nodes = placed(nodes, here.n + there.n)
        self.teams = [
            team(range(side.base, side.base + side.n), self.nodes)
            for side in self.sides
        ]

    @property
    def ways(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """From which group to which."""
        return (0, 1), (1, 0)


@node_aware(
    "inter_allgather",
    "inter_allgatherv",
    own_counts=True,
    cost=node_costs.inter_allgather,
)
def inter_allgatherv(
    r: int,
    here: Side,
    there: Side,
    stage: Stage,
    nodes: Nodes = (),
    lanes: int = 0,
    size: int = SIZE,
    startup: float = STARTUP,
) -> Program:
    """Nodes exchange what their ranks have, lane by lane; all ranks read it there."""
    pair = _Pair(r, here, there, nodes)
    flows = []
    for x, y in pair.ways:
        side = pair.sides[x]
        block = _block(side.blocks, side.base)
        teams = pair.teams[x], pair.teams[y]
        flows.append(_gathered(*teams, block, _own(block, "send"), side.blocks.total))
    return planned(pair.r, pair.nodes, _all(*flows), lanes, size, startup)


@node_aware("inter_allreduce", commutative=True, cost=node_costs.inter_allreduce)
def inter_allreduce(
    r: int,
    here: Side,
    there: Side,
    m: int,
    nodes: Nodes = (),
    lanes: int = 0,
    size: int = SIZE,
    startup: float = STARTUP,
) -> Program:
    """Sums inside each node, then lane by lane across; all ranks read the result."""
    pair = _Pair(r, here, there, nodes)
    flows = [_reduced(pair.teams[x], pair.teams[y], m) for x, y in pair.ways]
    return planned(pair.r, pair.nodes, _all(*flows), lanes, size, startup)


@node_aware(
    "inter_reduce_scatter",
    "inter_reduce_scatter_block",
    commutative=True,
    other_counts=True,
    cost=node_costs.inter_reduce_scatter,
)
def inter_reduce_scatter(
    r: int,
    here: Side,
    there: Side,
    nodes: Nodes = (),
    lanes: int = 0,
    size: int = SIZE,
    startup: float = STARTUP,
) -> Program:
    """Sums inside each node, then lane by lane to the nodes that want them."""
    pair = _Pair(r, here, there, nodes)
    flows = []
    for x, y in pair.ways:
        side = pair.sides[y]
        block = _block(side.blocks, side.base)
        teams = pair.teams[x], pair.teams[y]
        flows.append(_scattered(*teams, block, side.blocks.total, summed=True))
    return planned(pair.r, pair.nodes, _all(*flows), lanes, size, startup)


@node_aware(
    "inter_alltoall", "inter_alltoallv", own_counts=True, cost=node_costs.inter_alltoall
)
def inter_alltoallv(
    r: int,
    here: Side,
    there: Side,
    send: Blocks,
    recv: Blocks,
    nodes: Nodes = (),
    lanes: int = 0,
    size: int = SIZE,
    startup: float = STARTUP,
) -> Program:
    """Nodes exchange the blocks of all their ranks, lane by lane, as one."""
    pair = _Pair(r, here, there, nodes)
    mine = int(here.base > there.base)

    def of(x: int, sends: bool, rank: int) -> Blocks:
        """What a rank of group x sends or receives; of the other group, by what the
        ranks of the own one know."""
        i = rank - pair.sides[x].base
        if x == mine:
            return _row(send if sends else recv, i)
        table = recv if sends else send
        return Uneven([int(_row(table, j).size(i)) for j in range(here.n)])

    flows = []
    for x, y in pair.ways:
        source = _Ends(pair.teams[x], partial(of, x, True), pair.sides[y].base, "send")
        sink = _Ends(pair.teams[y], partial(of, y, False), pair.sides[x].base, "recv")
        flows.append(_exchanged(source, sink))
    return planned(pair.r, pair.nodes, _all(*flows), lanes, size, startup)


@node_aware("inter_barrier", cost=node_costs.inter_barrier)
def inter_barrier(r: int, here: Side, there: Side, nodes: Nodes = ()) -> Program:
    """The ranks of a node meet, one rank of each node tells the others, they meet."""
    return barrier(here.n + there.n, here.base + r, nodes)


# -- between a root, vertex 0, and the leaves of another group


def _star(p: int, nodes: Nodes, root: int = 0) -> tuple[Team, Team]:
    """The root, and the others."""
    return _stars(p, placed(nodes, p), root)


@lru_cache(maxsize=8)
def _stars(p: int, nodes: tuple[Hashable, ...], root: int) -> tuple[Team, Team]:
    # the same for all ranks
    return team([root], nodes), team((r for r in range(p) if r != root), nodes)


def _streamed(
    root: Team,
    leaves: Team,
    m: int,
    lanes: int,
    size: int,
    startup: float,
    n: int,
    sums: bool,
) -> Stream:
    """A stream in n parts, or as many as are fastest."""
    ((first,),), ranks = root.ranks, leaves.most
    how = stream_shape(m, leaves.n + 1, ranks, startup, size, sums, lanes, n)
    return Stream(first, leaves, m, how)


def _down(
    r: int,
    root: Team,
    leaves: Team,
    m: int,
    nodes: Nodes,
    lanes: int,
    size: int,
    startup: float,
    n: int,
) -> Program:
    if root.nodes == leaves.nodes:
        flow = _gathered(root, leaves, lambda r: (0, m), _whole(m), m)
        return planned(r, nodes, _all(flow), lanes, size, startup)
    return _streamed(root, leaves, m, lanes, size, startup, n, sums=False).down(r)


def _up(
    r: int,
    root: Team,
    leaves: Team,
    m: int,
    nodes: Nodes,
    lanes: int,
    size: int,
    startup: float,
    n: int,
) -> Program:
    if root.nodes == leaves.nodes:
        return planned(r, nodes, _all(_reduced(leaves, root, m)), lanes, size, startup)
    return _streamed(root, leaves, m, lanes, size, startup, n, sums=True).up(r)


@node_aware("inter_bcast", cost=node_costs.inter_bcast)
def inter_bcast(
    p: int,
    v: int,
    m: int,
    nodes: Nodes = (),
    lanes: int = 0,
    size: int = SIZE,
    startup: float = STARTUP,
    n: int = 0,
) -> Program:
    """A pipeline of nodes, lane by lane; all ranks of a node read what arrives."""
    return _down(v, *_star(p, nodes), m, placed(nodes, p), lanes, size, startup, n)


@node_aware("inter_reduce", commutative=True, cost=node_costs.inter_reduce)
def inter_reduce(
    p: int,
    v: int,
    m: int,
    nodes: Nodes = (),
    lanes: int = 0,
    size: int = SIZE,
    startup: float = STARTUP,
    n: int = 0,
) -> Program:
    """Sums inside each node, a few rounds ahead of a pipeline of nodes to the root."""
    return _up(v, *_star(p, nodes), m, placed(nodes, p), lanes, size, startup, n)


@node_aware(
    "inter_gather", "inter_gatherv", own_counts=True, cost=node_costs.inter_gather
)
def inter_gatherv(
    p: int,
    v: int,
    blocks: Blocks,
    nodes: Nodes = (),
    lanes: int = 0,
    size: int = SIZE,
    startup: float = STARTUP,
) -> Program:
    """Nodes send what their ranks have to the root, lane by lane."""
    root, leaves = _star(p, nodes)
    nodes = placed(nodes, p)
    block = _block(blocks)
    flow = _gathered(leaves, root, block, _own(block, "send"), blocks.total)
    return planned(v, nodes, _all(flow), lanes, size, startup)


@node_aware(
    "inter_scatter", "inter_scatterv", own_counts=True, cost=node_costs.inter_scatter
)
def inter_scatterv(
    p: int,
    v: int,
    blocks: Blocks,
    nodes: Nodes = (),
    lanes: int = 0,
    size: int = SIZE,
    startup: float = STARTUP,
) -> Program:
    """The root sends every node what its ranks get, lane by lane."""
    root, leaves = _star(p, nodes)
    nodes = placed(nodes, p)
    flow = _scattered(root, leaves, _block(blocks), blocks.total)
    return planned(v, nodes, _all(flow), lanes, size, startup)


# -- inside one group


@node_aware("allgatherv", cost=node_costs.allgatherv)
def allgatherv(
    p: int,
    r: int,
    blocks: Blocks,
    nodes: Nodes = (),
    lanes: int = 0,
    size: int = SIZE,
    startup: float = STARTUP,
) -> Program:
    """Nodes collect what their ranks have, lane by lane; all ranks read it there."""
    nodes = placed(nodes, p)
    every, block = team(range(p), nodes), _block(blocks)

    def gives(r: int) -> Window:
        return Window(blocks.buf, *block(r), 0)

    flow = _gathered(every, every, block, gives, blocks.total)
    return planned(r, nodes, _all(flow), lanes, size, startup)


@node_aware("bcast", cost=node_costs.bcast)
def bcast(
    p: int,
    r: int,
    total: int,
    root: int,
    nodes: Nodes = (),
    lanes: int = 0,
    size: int = SIZE,
    startup: float = STARTUP,
    n: int = 0,
) -> Program:
    """A pipeline of nodes, lane by lane; all ranks of a node read what arrives."""
    nodes = placed(nodes, p)
    if p == 1:
        return iter(())
    star = _star(p, nodes, root)
    return _down(r, *star, total, nodes, lanes, size, startup, n)


@node_aware("reduce", commutative=True, cost=node_costs.reduce)
def reduce(
    p: int,
    r: int,
    total: int,
    root: int,
    nodes: Nodes = (),
    lanes: int = 0,
    size: int = SIZE,
    startup: float = STARTUP,
) -> Program:
    """Sums inside each node, then shares across, which the root gathers."""
    nodes = placed(nodes, p)
    flow = _reduced(team(range(p), nodes), team([root], nodes), total)
    return planned(r, nodes, _all(flow), lanes, size, startup)


@node_aware("reduce_scatter", commutative=True, cost=node_costs.reduce_scatter)
def reduce_scatter(
    p: int,
    r: int,
    blocks: Blocks,
    nodes: Nodes = (),
    lanes: int = 0,
    size: int = SIZE,
    startup: float = STARTUP,
) -> Program:
    """Sums inside each node, then lane by lane to the nodes that want them."""
    nodes = placed(nodes, p)
    every = team(range(p), nodes)
    flow = _scattered(every, every, _block(blocks), blocks.total, summed=True)
    return planned(r, nodes, _all(flow), lanes, size, startup)


@node_aware("allreduce", commutative=True, cost=node_costs.allreduce)
def allreduce(
    p: int,
    r: int,
    m: int,
    nodes: Nodes = (),
    lanes: int = 0,
    size: int = SIZE,
    startup: float = STARTUP,
) -> Program:
    """Sums inside each node, then lane by lane across; all ranks read the result."""
    nodes = placed(nodes, p)
    every = team(range(p), nodes)
    return planned(r, nodes, _all(_reduced(every, every, m)), lanes, size, startup)


def _at_root(r: int, blocks: Blocks, root: int, send: int, recv: int) -> Program:
    """The root's own block does not leave it: from one element to another."""
    size = int(blocks.size(root))
    own = Copy(Span("send", send, size), Span("recv", recv, size), r == root)
    yield Round(then=(own,))


@node_aware("gatherv", own_counts=True, cost=node_costs.gatherv)
def gatherv(
    p: int,
    r: int,
    blocks: Blocks,
    root: int,
    nodes: Nodes = (),
    lanes: int = 0,
    size: int = SIZE,
    startup: float = STARTUP,
) -> Program:
    """Nodes send what their ranks have to the root, lane by lane."""
    own = _at_root(r, blocks, root, 0, int(blocks.offset(root)))
    if p == 1:
        return own
    (top, others), block = _star(p, nodes, root), _block(blocks)
    flow = _gathered(others, top, block, _own(block, "send"), blocks.total)
    nodes = placed(nodes, p)
    return then(own, planned(r, nodes, _all(flow), lanes, size, startup))


@node_aware("scatterv", own_counts=True, cost=node_costs.scatterv)
def scatterv(
    p: int,
    r: int,
    blocks: Blocks,
    root: int,
    nodes: Nodes = (),
    lanes: int = 0,
    size: int = SIZE,
    startup: float = STARTUP,
) -> Program:
    """The root sends every node what its ranks get, lane by lane."""
    own = _at_root(r, blocks, root, int(blocks.offset(root)), 0)
    if p == 1:
        return own
    (top, others), block = _star(p, nodes, root), _block(blocks)
    flow = _scattered(top, others, block, blocks.total)
    nodes = placed(nodes, p)
    return then(own, planned(r, nodes, _all(flow), lanes, size, startup))


@node_aware("alltoall", "alltoallv", own_counts=True, cost=node_costs.alltoall)
def alltoallv(
    p: int,
    r: int,
    send: Blocks,
    recv: Blocks,
    nodes: Nodes = (),
    lanes: int = 0,
    size: int = SIZE,
    startup: float = STARTUP,
) -> Program:
    """Nodes exchange the blocks of all their ranks, lane by lane, as one."""
    nodes = placed(nodes, p)
    every = team(range(p), nodes)
    ends = (
        _Ends(every, partial(_row, blocks), 0, buf)
        for blocks, buf in ((send, "send"), (recv, "recv"))
    )
    return planned(r, nodes, _all(_exchanged(*ends)), lanes, size, startup)


@node_aware("barrier", cost=node_costs.barrier)
def barrier(p: int, r: int, nodes: Nodes = ()) -> Program:
    """The ranks of a node meet, one rank of each node tells the others, they meet."""
    nodes = placed(nodes, p)
    every = team(range(p), nodes)
    x, i = every.places[r]

    def nothing(c: int) -> Program:
        return iter(())

    def across(c: int) -> Program:
        if i:
            return iter(())
        return renumber(circle(every.n, x), lambda y: every.driver(y, 0))

    between = [across] if every.n > 1 else []
    return pipeline([nothing, *between, nothing], 1)


# -- blocks from everyone to everyone


def _row(blocks: Blocks, i: int) -> Blocks:
    """The blocks of rank i of the own group: its row of the table, if there is one."""
    return replace(blocks, r=i) if isinstance(blocks, Rows) else blocks


@dataclass(frozen=True)
class _Ends:
    """One end of an exchange: the ranks `who` and the blocks `of(r)` that each has in
    `buf` for every rank of the other end, numbered from `base` on."""

    who: Team
    of: Callable[[int], Blocks]
    base: int
    buf: str

    def window(self, r: int) -> Window:
        """The buffer of a rank, in the vector of all buffers of its vertex."""
        x, i = self.who.places[r]
        start = sum(self.of(other).total for other in self.who.ranks[x][:i])
        return Window(self.buf, start, self.of(r).total, start)

    def run(self, r: int, other: int) -> tuple[int, int]:
        """The block of rank r for another, in the vector of its vertex."""
        blocks, i = self.of(r), other - self.base
        return self.window(r).start + int(blocks.offset(i)), int(blocks.size(i))


def _blocks(
    source: _Ends, sink: _Ends, x: int, y: int
) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """The blocks from vertex x to vertex y, where they are sent from and received to:
    by diagonals, so that any few of them are of many sources and for many sinks."""
    senders, receivers = source.who.ranks[x], sink.who.ranks[y]
    for d in range(len(receivers)):
        for i, a in enumerate(senders):
            b = receivers[(i + d) % len(receivers)]
            yield source.run(a, b), sink.run(b, a)


def _slices(run: tuple[int, int], n: int) -> list[tuple[int, int]]:
    """A run in n parts."""
    start, size = run
    cuts = [int(cut(size, n, i)) for i in range(n + 1)]
    return [(start + low, high - low) for low, high in pairwise(cuts)]


def _exchanged(source: _Ends, sink: _Ends) -> Callable[[int, int, float], Exchange]:
    """From every source to every sink a block. If there are more chunks than ranks on a
    node, blocks are cut, so that all ranks of a node have a part in every chunk."""

    def make(chunks: int, lanes: int, startup: float) -> Exchange:
        n = -(-chunks // source.who.most)

        def runs(x: int, y: int, end: int) -> tuple[tuple[int, int], ...]:
            cut_ = (_slices(both[end], n) for both in _blocks(source, sink, x, y))
            return tuple(run for part in zip(*cut_, strict=True) for run in part)

        @cache
        def sent(x: int) -> Parts:
            every = tuple(runs(x, y, 0) for y in range(sink.who.n))
            return Parts(every, chunks, lanes)

        @cache
        def received(y: int) -> Parts:
            every = tuple(runs(x, y, 1) for x in range(source.who.n))
            return Parts(every, chunks, lanes)

        windows = source.window, sink.window
        return Exchange(source.who, sink.who, sent, received, *windows)

    return make
