"""The messages of a rank in a redistribution, and the rank's rounds."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from ..algorithms.allgatherv_node_ring import node_ring
from ..algorithms.parts.stages import stage_by_size, stage_for
from ..algorithms.parts.turns import piece_size
from ..schedules.ir import (
    Comm,
    Copy,
    Library,
    Local,
    Pieces,
    Recv,
    Reduce,
    Round,
    Send,
    Span,
    Steps,
)
from ..schedules.layout import Shares
from ..schedules.program import renumber, trim
from .layouts import Layout
from .messages import Message, incoming, outgoing, spread_to
from .order import Turn, shifted
from .runs import elements_of, joined, spread

_NO_INDICES = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Exchange:
    """The messages of a rank; peers are numbered among all ranks."""

    number: int
    #: the number of all ranks
    n: int
    sends: tuple[Message, ...] = ()
    receives: tuple[Message, ...] = ()
    #: the number of elements in the target array of the rank
    wanted: int = 0
    #: the replicas that gather the target, the place of the rank, and the shares
    replicas: tuple[list[int], int, Shares] | None = None
    #: elements repeated in the target: the first place, and the place of the copy
    repeats: tuple[np.ndarray, np.ndarray] = (_NO_INDICES, _NO_INDICES)
    #: whether the values of all sources of an element are combined
    combine: bool = False

    @property
    def table(self) -> list[tuple[int, int, int]]:
        """The messages to further ranks: source, target, elements."""
        messages = (m for m in self.sends if m.peer != self.number)
        return [(self.number, m.peer, m.total) for m in messages]


def numbered(messages: Iterable[Message], base: int) -> tuple[Message, ...]:
    """Messages with peers numbered among all ranks; their group begins at `base`."""
    return tuple(replace(m, peer=m.peer + base) for m in messages)


def regular(
    number: int,
    n: int,
    flows: Sequence[tuple[Layout, int, Layout, int]],
    one_group: bool,
    combine: bool,
) -> Exchange:
    """The exchange of a rank between regular layouts.

    A flow is a source layout, the number of its first rank, a target layout, and the
    number of its first rank.
    """
    exchange = Exchange(number, n, combine=combine)
    for source, s, target, t in flows:
        if 0 <= (i := number - s) < source.ranks:
            messages = outgoing(source, target, i, one_group, combine)
            exchange = replace(exchange, sends=numbered(messages, t))
        if 0 <= (j := number - t) < target.ranks:
            messages = incoming(source, target, j, one_group, combine)
            exchange = received(exchange, target, j, numbered(messages, s), t)
    return exchange


def received(
    exchange: Exchange,
    layout: Layout,
    rank: int,
    messages: tuple[Message, ...],
    base: int,
) -> Exchange:
    """The exchange with the messages of the target, whose group begins at `base`."""
    return replace(
        exchange,
        receives=messages,
        wanted=prod(layout.local_shape(rank if layout.is_regular else None)),
        replicas=spread_to(layout, rank, base),
        repeats=layout.repeats,
    )


def _part(m: Message, buf: str, low: int, high: int) -> Pieces:
    """The elements low to high - 1 of a message, in the local array."""
    start, size = elements_of(m.start, m.size, low, high)
    size, start = joined(size, [start])
    return Pieces(buf, start, size)


def _tmp(exchange: Exchange) -> dict[int, int]:
    """The offsets in "tmp" of messages to combine, by peer."""
    offset, offsets = 0, {}
    for m in exchange.receives:
        if m.peer != exchange.number:
            offsets[m.peer] = offset
            offset += m.total
    return offsets


def _ordered(exchange: Exchange, order: Sequence[Turn] | None) -> Iterator[Turn]:
    """The turns of a rank: from the order of all messages, or by a shift."""
    if order is not None:
        yield from (
            turn for turn in order if exchange.number in (turn.source, turn.target)
        )
        return
    for m in exchange.sends:
        if m.peer != exchange.number:
            number = shifted(exchange.number, m.peer, exchange.n)
            yield Turn(number, exchange.number, m.peer, 0, m.total)
    for m in exchange.receives:
        if m.peer != exchange.number:
            number = shifted(m.peer, exchange.number, exchange.n)
            yield Turn(number, m.peer, exchange.number, 0, m.total)


def transfer_rounds(
    exchange: Exchange, order: Sequence[Turn] | None = None
) -> list[Round]:
    """The rounds from sources to targets: messages in order, then copies or reductions.

    All messages are in a single round, so that a late message delays no further ones.
    """
    sends = {m.peer: m for m in exchange.sends}
    receives = {m.peer: m for m in exchange.receives}
    tmp = _tmp(exchange)
    out, into = list[Send](), list[Recv]()
    for turn in sorted(_ordered(exchange, order), key=lambda turn: turn.turn):
        if turn.source == exchange.number:
            out.append(
                Send(
                    turn.target, _part(sends[turn.target], "send", turn.low, turn.high)
                )
            )
        elif exchange.combine:
            start = np.array([tmp[turn.source] + turn.low])
            data = Pieces("tmp", start, np.array([turn.high - turn.low]))
            into.append(Recv(turn.source, data))
        else:
            data = _part(receives[turn.source], "recv", turn.low, turn.high)
            into.append(Recv(turn.source, data))
    comm: tuple[Comm, ...] = (*into, *out)
    if exchange.combine:
        result = [Round(comm), *_combined(exchange, tmp)]
    else:
        result = [Round(comm, _own(exchange))]
    return [r for r in result if r.comm or r.then]


def replication_rounds(
    exchange: Exchange, unit: int = 1, nodes: Sequence[Hashable] = ()
) -> list[Round]:
    """The rounds after the transfer: replicas gather shares, and repeats are copied.

    `unit` is the bytes of an element, `nodes` has the node of each rank. Long shares go
    from node to node, so that no share enters a node twice.
    """
    program: list[Round] = []
    if exchange.replicas is not None:
        ranks, place, shares = exchange.replicas
        n, piece_elements = len(ranks), max(piece_size() // max(unit, 1), 1)
        nodes_of_replicas = [nodes[r] for r in ranks] if nodes else ranks
        is_long = stage_for(n, shares.total * unit) == "ring"
        if is_long and 1 < len(set(nodes_of_replicas)) < n:
            stage = node_ring(
                n, place, shares, nodes_of_replicas, "fixed", piece_elements
            )
        else:
            stage = stage_by_size(unit)(n, place, shares)
        stage_rounds = renumber(stage, lambda i: ranks[i])
        program += (
            piece for r in stage_rounds for piece in _in_pieces(r, piece_elements)
        )
    return trim([*program, Round((), _steps(Copy, "recv", *exchange.repeats))])


def _in_pieces(r: Round, piece_elements: int) -> Iterator[Round]:
    """A round of a span to send and a span to receive, in pieces of `piece_elements`.

    A piece goes when a piece of the opposite direction has come, because a whole
    message would queue before the answers (see `algorithms/parts/turns.py`).
    """
    ends = [c for c in r.comm if not isinstance(c, Library) and len(c.data) == 1]
    longest = max((span.size for c in ends for span in c.data), default=0)
    if len(ends) != len(r.comm) or len(ends) > 2 or longest <= piece_elements:
        yield r
        return
    for low in range(0, longest, piece_elements):
        messages: list[Comm] = []
        for c in ends:
            (span,) = c.data
            size = min(span.size - low, piece_elements)
            if size > 0:
                data = (Span(span.buf, span.start + low, size),)
                messages.append(replace(c, data=data))
        last = low + piece_elements >= longest
        yield Round(tuple(messages), r.then if last else (), r.meet and last)


def rounds(
    exchange: Exchange,
    order: Sequence[Turn] | None = None,
    nodes: Sequence[Hashable] = (),
) -> list[Round]:
    """All rounds of a rank: of the transfer, then of the replication."""
    return [
        *transfer_rounds(exchange, order),
        *replication_rounds(exchange, nodes=nodes),
    ]


def _steps(
    kind: type[Local],
    buf: str,
    start: np.ndarray,
    target: np.ndarray,
    size: np.ndarray | None = None,
) -> Steps:
    """Local steps from runs, or single elements, of a buffer to the target."""
    sizes = np.ones(len(start), np.int64) if size is None else size
    sizes, start, target = joined(sizes, [start, target])
    return Steps(kind, Pieces(buf, start, sizes), Pieces("recv", target, sizes))


def _own(exchange: Exchange) -> Sequence[Local]:
    """The copies within a rank, whose send and receive may be cut differently."""
    sent, taken = (
        next((m for m in messages if m.peer == exchange.number), None)
        for messages in (exchange.sends, exchange.receives)
    )
    if sent is None or taken is None:
        return ()
    ends = [np.cumsum(m.size) for m in (sent, taken)]
    edges = np.sort(np.concatenate(ends), kind="stable")  # merges two sorted arrays
    edges = edges[np.diff(edges, prepend=0) > 0]
    low = np.concatenate(([0], edges[:-1]))
    source, target = (
        m.start[k] + low - before[k]
        for m in (sent, taken)
        for before in (np.cumsum(m.size) - m.size,)
        for k in (np.searchsorted(before, low, side="right") - 1,)
    )
    return _steps(Copy, "send", source, target, edges - low)


def _combined(exchange: Exchange, tmp: dict[int, int]) -> Iterator[Round]:
    """The contributions of all ranks, combined from the last rank to the first.

    The first contribution to an element is copied and later ones combine from the left,
    because an operator that is not commutative needs rank order.
    """
    written = np.zeros(exchange.wanted, bool)
    own = {m.peer: m for m in exchange.sends}
    for m in sorted(exchange.receives, key=lambda m: -m.peer):
        places = spread(m.start, m.size)
        if m.peer == exchange.number:
            buf, elements = "send", spread(own[m.peer].start, own[m.peer].size)
        else:
            buf, elements = "tmp", tmp[m.peer] + np.arange(len(places))
        is_written = written[places]
        written[places] = True
        yield Round((), _steps(Copy, buf, elements[~is_written], places[~is_written]))
        yield Round((), _steps(Reduce, buf, elements[is_written], places[is_written]))
