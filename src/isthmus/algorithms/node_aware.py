"""The node-aware algorithm of every collective, as transfers (`parts.nodes`)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..schedules.ir import Copy, Program, Round, Span
from ..schedules.layout import Blocks, Even, Rows, Side
from ..schedules.program import renumber, then
from ..schedules.registry import Register, Stage, algorithm
from .inter_barrier import circle
from .parts.node_exchange import BlockTable, NodeExchange
from .parts.nodes import (
    NODE_CHUNK_ELEMENTS,
    Flow,
    Holding,
    Nodes,
    Team,
    Transfer,
    pipeline,
    team,
    through_nodes,
)
from .parts.patterns import STARTUP_ELEMENTS
from .parts.streams import Stream, stream_shape

TRAEFF_HUNOLD = "Träff, Hunold 2020"
#: a rank's number, the nodes of all ranks, the transfers, and perhaps the rounds of
#: the rank before the transfers
RankTransfers = (
    tuple[int, Nodes, Sequence[Transfer]]
    | tuple[int, Nodes, Sequence[Transfer], Program]
)

node_aware = partial(
    algorithm, name="node_aware", paper=TRAEFF_HUNOLD, node_memory=True
)


def transfers(
    *collectives: str, **requirements: Any
) -> Callable[..., Callable[..., RankTransfers]]:
    """Register the transfers returned by a function as a program with four options.

    The options are the nodes of the ranks, the number of lanes, the elements of "node"
    that a chunk takes, and the elements that pass in the time of a start-up.
    """
    register: Register = node_aware(*collectives, **requirements)

    def add(transfers_of: Callable[..., RankTransfers]) -> Callable[..., RankTransfers]:
        def program(
            *values: object,
            nodes: Sequence[Hashable] = (),
            lanes: int = 0,
            size: int = NODE_CHUNK_ELEMENTS,
            startup: float = STARTUP_ELEMENTS,
        ) -> Program:
            r, nodes_of_ranks, transfer_list, *first_steps = transfers_of(
                *values, tuple(nodes)
            )
            if not transfer_list:
                return then(*first_steps)
            moved = through_nodes(
                r, nodes_of_ranks, transfer_list, lanes, size, startup
            )
            return then(*first_steps, moved)

        program.__doc__ = transfers_of.__doc__
        register(program)
        return transfers_of

    return add


def placed(nodes: Sequence[Hashable], n: int) -> Nodes:
    """The nodes of n ranks; without a placement all ranks are on one node."""
    if len(nodes) not in (0, n):
        raise ValueError(f"nodes names the nodes of {len(nodes)} ranks; there are {n}")
    return tuple(nodes) or (0,) * n


def _blocks(buf: str, blocks: Blocks, base: int = 0, in_place: bool = False) -> Holding:
    """The blocks of the ranks from `base` on, in a buffer of each rank."""
    ends = np.asarray(blocks.offset(np.arange(blocks.n + 1))).tolist()
    return Holding(buf, ends[-1], tuple(ends), base, in_place)


# -- between two groups


def _groups(
    here: Side, there: Side, nodes: Nodes
) -> tuple[Nodes, tuple[tuple[Side, Team], tuple[Side, Team]]]:
    """The nodes of all ranks; and both groups, in the order of their numbers."""
    nodes = placed(nodes, here.n + there.n)
    first, last = sorted((here, there), key=lambda side: side.base)
    a, b = (
        (side, team(range(side.base, side.base + side.n), nodes))
        for side in (first, last)
    )
    return nodes, (a, b)


@transfers("inter_allgather", "inter_allgatherv", own_counts=True)
def inter_allgatherv(
    r: int, here: Side, there: Side, stage: Stage, nodes: Nodes
) -> RankTransfers:
    """Nodes exchange their ranks' data, lane by lane; all ranks read node memory."""
    nodes, (a, b) = _groups(here, there, nodes)
    flows = []
    for (side, sources), (_, sinks) in ((a, b), (b, a)):
        held = _blocks("send", side.blocks, side.base)
        flows.append(Flow(sources, sinks, "sources", held, Holding("recv", held.total)))
    return here.base + r, nodes, flows


@transfers("inter_allreduce", commutative=True)
def inter_allreduce(
    r: int, here: Side, there: Side, m: int, nodes: Nodes
) -> RankTransfers:
    """Sums inside each node, then lane by lane across; all ranks read the result."""
    nodes, ((_, a), (_, b)) = _groups(here, there, nodes)
    return here.base + r, nodes, [_sum(a, b, m), _sum(b, a, m)]


def _sum(sources: Team, sinks: Team, m: int) -> Flow:
    """The flow of the sum of the sources to all sinks."""
    held = Holding("send", m), Holding("recv", m)
    return Flow(sources, sinks, "nobody", *held, summed=True)


@transfers(
    "inter_reduce_scatter",
    "inter_reduce_scatter_block",
    commutative=True,
    other_counts=True,
)
def inter_reduce_scatter(
    r: int, here: Side, there: Side, nodes: Nodes
) -> RankTransfers:
    """Sums inside each node, then lane by lane to the nodes of the result blocks."""
    nodes, (a, b) = _groups(here, there, nodes)
    flows = []
    for (_, sources), (side, sinks) in ((a, b), (b, a)):
        takes = _blocks("recv", side.blocks, side.base)
        held = Holding("send", takes.total), takes
        flows.append(Flow(sources, sinks, "sinks", *held, summed=True))
    return here.base + r, nodes, flows


@transfers("inter_alltoall", "inter_alltoallv", own_counts=True)
def inter_alltoallv(
    r: int, here: Side, there: Side, send: Blocks, recv: Blocks, nodes: Nodes
) -> RankTransfers:
    """Nodes exchange the blocks of all their ranks as one, lane by lane."""
    nodes, groups = _groups(here, there, nodes)
    teams = {side.base: members for side, members in groups}
    local = partial(BlockTable, teams[here.base], base=here.base, other=there.base)
    remote = partial(BlockTable, teams[there.base], base=there.base, other=here.base)
    # the remote group's tables follow from the blocks of the local ranks
    outgoing = (
        local(rows=_rows(send), buf="send"),
        remote(rows=_columns(send, here.n), buf="recv"),
    )
    incoming = (
        remote(rows=_columns(recv, here.n), buf="send"),
        local(rows=_rows(recv), buf="recv"),
    )
    exchanges = (outgoing, incoming) if here.base < there.base else (incoming, outgoing)
    return here.base + r, nodes, [NodeExchange(*tables) for tables in exchanges]


def _rows(blocks: Blocks) -> tuple[tuple[int, ...], ...]:
    """The edges of the blocks of each rank; a single row if all have equal blocks."""
    if isinstance(blocks, Rows):
        return tuple(map(tuple, blocks.offsets.tolist()))
    return (tuple(np.asarray(blocks.offset(np.arange(blocks.n + 1))).tolist()),)


def _columns(blocks: Blocks, n: int) -> tuple[tuple[int, ...], ...]:
    """The edges of the blocks at the far end of an exchange, for n ranks."""
    if isinstance(blocks, Even):
        return _rows(Even(n, blocks.each))
    assert isinstance(blocks, Rows)
    sizes = np.diff(blocks.offsets, axis=1)
    ends = np.cumsum(np.pad(sizes.T, ((0, 0), (1, 0))), axis=1)
    return tuple(map(tuple, ends.tolist()))


@node_aware("inter_barrier")
def inter_barrier(
    r: int, here: Side, there: Side, nodes: Sequence[Hashable] = ()
) -> Program:
    """The ranks of a node meet, one rank a node tells the other nodes, all meet."""
    return barrier(here.n + there.n, here.base + r, nodes)


# -- between a root, vertex 0, and the leaves of another group


def _root_and_others(p: int, nodes: Nodes, root: int = 0) -> tuple[Team, Team]:
    """The team of the root, and the team of the other ranks."""
    return team(range(root, root + 1), nodes), team(range(p), nodes, root)


@node_aware("inter_bcast")
def inter_bcast(
    p: int,
    v: int,
    m: int,
    nodes: Sequence[Hashable] = (),
    lanes: int = 0,
    size: int = NODE_CHUNK_ELEMENTS,
    startup: float = STARTUP_ELEMENTS,
    n: int = 0,
) -> Program:
    """A pipeline of nodes, lane by lane; all ranks of a node read node memory."""
    return bcast(p, v, m, 0, nodes, lanes, size, startup, n)


@node_aware("inter_reduce", commutative=True)
def inter_reduce(
    p: int,
    v: int,
    m: int,
    nodes: Sequence[Hashable] = (),
    lanes: int = 0,
    size: int = NODE_CHUNK_ELEMENTS,
    startup: float = STARTUP_ELEMENTS,
    n: int = 0,
) -> Program:
    """Sums inside each node, a few rounds ahead of a pipeline of nodes to the root."""
    nodes = placed(nodes, p)
    root, leaves = _root_and_others(p, nodes)
    if root.nodes == leaves.nodes:
        flow = _sum(leaves, root, m)
        return through_nodes(v, nodes, [flow], lanes, size, startup)
    stream_form = stream_shape(
        m, leaves.n + 1, leaves.max_ranks, startup, size, True, lanes, n
    )
    return Stream(0, leaves, m, stream_form).up(v)


@transfers("inter_gather", "inter_gatherv", own_counts=True)
def inter_gatherv(p: int, v: int, blocks: Blocks, nodes: Nodes) -> RankTransfers:
    """Nodes send their ranks' data to the root, lane by lane."""
    nodes = placed(nodes, p)
    root, leaves = _root_and_others(p, nodes)
    return v, nodes, [_gather(leaves, root, blocks)]


def _gather(sources: Team, sinks: Team, blocks: Blocks) -> Flow:
    """The flow of the blocks of the sources to all sinks."""
    gives = _blocks("send", blocks)
    return Flow(sources, sinks, "sources", gives, Holding("recv", gives.total))


@transfers("inter_scatter", "inter_scatterv", own_counts=True)
def inter_scatterv(p: int, v: int, blocks: Blocks, nodes: Nodes) -> RankTransfers:
    """The root sends every node the blocks of its ranks, lane by lane."""
    nodes = placed(nodes, p)
    root, leaves = _root_and_others(p, nodes)
    return v, nodes, [_scatter(root, leaves, blocks)]


def _scatter(sources: Team, sinks: Team, blocks: Blocks, summed: bool = False) -> Flow:
    """The flow of a block of the source's data, or of a sum, to each sink."""
    takes = _blocks("recv", blocks)
    return Flow(sources, sinks, "sinks", Holding("send", takes.total), takes, summed)


# -- inside one group


@transfers("allgatherv")
def allgatherv(p: int, r: int, blocks: Blocks, nodes: Nodes) -> RankTransfers:
    """Nodes collect their ranks' data, lane by lane; all ranks read node memory."""
    nodes = placed(nodes, p)
    all_ranks, gives = team(range(p), nodes), _blocks(blocks.buf, blocks, in_place=True)
    return (
        r,
        nodes,
        [Flow(all_ranks, all_ranks, "sources", gives, Holding("recv", gives.total))],
    )


@node_aware("bcast")
def bcast(
    p: int,
    r: int,
    total: int,
    root: int,
    nodes: Sequence[Hashable] = (),
    lanes: int = 0,
    size: int = NODE_CHUNK_ELEMENTS,
    startup: float = STARTUP_ELEMENTS,
    n: int = 0,
) -> Program:
    """A pipeline of nodes, lane by lane; all ranks of a node read node memory."""
    nodes = placed(nodes, p)
    if p == 1:
        return iter(())
    top, other_ranks = _root_and_others(p, nodes, root)
    if top.nodes == other_ranks.nodes:
        whole = Holding("recv", total)
        flow = Flow(top, other_ranks, "sources", whole, whole)
        return through_nodes(r, nodes, [flow], lanes, size, startup)
    stream_form = stream_shape(
        total, other_ranks.n + 1, other_ranks.max_ranks, startup, size, False, lanes, n
    )
    return Stream(root, other_ranks, total, stream_form).down(r)


@transfers("reduce", commutative=True)
def reduce(p: int, r: int, total: int, root: int, nodes: Nodes) -> RankTransfers:
    """Sums inside each node, then shares across, which the root gathers."""
    nodes = placed(nodes, p)
    all_ranks, top = team(range(p), nodes), team(range(root, root + 1), nodes)
    return r, nodes, [_sum(all_ranks, top, total)]


@transfers("reduce_scatter", commutative=True)
def reduce_scatter(p: int, r: int, blocks: Blocks, nodes: Nodes) -> RankTransfers:
    """Sums inside each node, then lane by lane to the nodes of the result blocks."""
    nodes = placed(nodes, p)
    all_ranks = team(range(p), nodes)
    return r, nodes, [_scatter(all_ranks, all_ranks, blocks, summed=True)]


@transfers("allreduce", commutative=True)
def allreduce(p: int, r: int, m: int, nodes: Nodes) -> RankTransfers:
    """Sums inside each node, then lane by lane across; all ranks read the result."""
    nodes = placed(nodes, p)
    all_ranks = team(range(p), nodes)
    return r, nodes, [_sum(all_ranks, all_ranks, m)]


def _at_root(r: int, blocks: Blocks, root: int, send: int, recv: int) -> Program:
    """Copy the root's own block from "send" to "recv"."""
    size = int(blocks.size(root))
    own = Copy(Span("send", send, size), Span("recv", recv, size), r == root)
    yield Round(then=(own,))


@transfers("gatherv", own_counts=True)
def gatherv(p: int, r: int, blocks: Blocks, root: int, nodes: Nodes) -> RankTransfers:
    """Nodes send their ranks' data to the root, lane by lane."""
    nodes = placed(nodes, p)
    top, other_ranks = _root_and_others(p, nodes, root)
    own = _at_root(r, blocks, root, 0, int(blocks.offset(root)))
    return r, nodes, [_gather(other_ranks, top, blocks)] if p > 1 else [], own


@transfers("scatterv", own_counts=True)
def scatterv(p: int, r: int, blocks: Blocks, root: int, nodes: Nodes) -> RankTransfers:
    """The root sends every node the blocks of its ranks, lane by lane."""
    nodes = placed(nodes, p)
    top, other_ranks = _root_and_others(p, nodes, root)
    own = _at_root(r, blocks, root, int(blocks.offset(root)), 0)
    return r, nodes, [_scatter(top, other_ranks, blocks)] if p > 1 else [], own


@transfers("alltoall", "alltoallv", own_counts=True)
def alltoallv(
    p: int, r: int, send: Blocks, recv: Blocks, nodes: Nodes
) -> RankTransfers:
    """Nodes exchange the blocks of all their ranks as one, lane by lane."""
    nodes = placed(nodes, p)
    all_ranks = team(range(p), nodes)
    sent, received = (
        BlockTable(all_ranks, _rows(blocks), base=0, other=0, buf=buf)
        for blocks, buf in ((send, "send"), (recv, "recv"))
    )
    return r, nodes, [NodeExchange(sent, received)]


@node_aware("barrier")
def barrier(p: int, r: int, nodes: Sequence[Hashable] = ()) -> Program:
    """The ranks of a node meet, one rank a node tells the other nodes, all meet."""
    all_ranks = team(range(p), placed(nodes, p))
    vertex, index = all_ranks.places[r]

    def nothing(c: int) -> Program:
        return iter(())

    def across(c: int) -> Program:
        if index:
            return iter(())
        return renumber(circle(all_ranks.n, vertex), lambda y: all_ranks.driver(y, 0))

    between = [across] if all_ranks.n > 1 else []
    return pipeline([nothing, *between, nothing], 1)
