"""Setting a redistribution up: what all ranks gave is checked, and each finds what it
sends to whom."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

import numpy as np
from mpi4py import MPI

from ...redistribution.directory import (
    Rows,
    addressed,
    block_size,
    located,
    match,
    meet,
    messages,
    split_by,
)
from ...redistribution.exchange import Exchange, crossing, received, regular
from ...redistribution.layouts import Layout
from ...redistribution.messages import Message, wanted_runs
from ...redistribution.order import LEAST, MOST, turns
from ...redistribution.runs import Runs
from ...schedules.ir import Round
from ..context.context import Context
from ..waiting.errors import MismatchError
from .agreement import NAME, agree, sparse_exchange, without_error

#: runs of all sources together that every rank may hear of: a megabyte
MOST_ANNOUNCED_RUNS = 1 << 16
_NONE = np.empty(0, np.int64)
#: what a group knows of a layout: all of it, or that each rank has its own
Known: TypeAlias = Layout | str | None
#: what the ranks of a group agree on: source, target, how to combine, global shapes
Given: TypeAlias = tuple[Known, Known, str | None, tuple[tuple[int, ...], ...]]
#: from a layout, on ranks from a number on, to another on ranks from a number on
Flow: TypeAlias = tuple[Known, int, Known, int]
Combine: TypeAlias = MPI.Op | str | None


@dataclass(frozen=True, eq=False)
class Setup:
    """What a rank knows of a redistribution."""

    exchange: Exchange
    #: all messages of all ranks, if they are few: from, to, elements
    table: list[tuple[int, int, int]] | None
    #: what goes from where to where: one, or between groups one each way
    flows: tuple[Flow, ...]

    def crossing(self, unit: int) -> list[Round]:
        """The rounds from sources to targets, for elements of so many bytes."""
        least = max(LEAST // max(unit, 1), 1)
        order = None if self.table is None else turns(self.table, least)
        return crossing(self.exchange, order)


def set_up(
    c: Context, same: bool, source: Layout | None, target: Layout | None, by: Combine
) -> Setup:
    """Set up with all ranks; what is wrong, all raise alike."""
    mine = without_error(c, lambda: _given(c, same, source, target, by))
    agree(c, c.local, mine, _words)
    firsts = [0] if same else [0, c.p]  # type: ignore[attr-defined]
    every = [c.comm.bcast(mine if c.number == r else None, r) for r in firsts]
    shape, flows = _checked(every, firsts)
    found = _found(c, same, source, target, by is not None, shape, flows)
    return Setup(found, table_of(c, found), tuple(flows))


def _given(
    c: Context, same: bool, source: Layout | None, target: Layout | None, by: Combine
) -> Given:
    """What a rank gave, checked by itself."""
    both = [x for x in (source, target) if x is not None]
    for x in both:
        if not isinstance(x, Layout):
            raise TypeError(f"source and target must be a Layout, not {x!r}")
        if x.ranks > c.local.size and x.is_regular:
            raise ValueError(
                f"a layout of {x.ranks} ranks for a group of {c.local.size}"
            )
    if not both:
        raise ValueError("give a source, a target, or both")
    if same and len(both) < 2:
        raise ValueError("inside one group, every rank gives a source and a target")
    op = _operator(by)
    if op is not None and source is not None and len(twice := source.repeats[0]):
        assert source.points is not None
        raise ValueError(
            f"index {source.points[twice[0]]} is twice in the source of one rank: it "
            "would count twice"
        )
    shapes = tuple(sorted({x.shape for x in both}))
    return _known(source), _known(target), op, shapes


def _operator(by: Combine) -> str | None:
    """How to combine, in words; operators of users are all alike."""
    if not isinstance(by, MPI.Op):
        if by not in (None, "mean"):
            raise ValueError(f'combine must be an MPI.Op, "mean" or None, not {by!r}')
        return by
    if by == MPI.OP_NULL:
        raise ValueError("combine must be an operator, not MPI.OP_NULL")
    if not by.is_predefined:
        return "an operator of its own"
    every = (x for x, value in vars(MPI).items() if isinstance(value, MPI.Op))
    return "MPI." + next(x for x in every if getattr(MPI, x) == by)


def _known(layout: Layout | None) -> Known:
    return layout if layout is None or layout.is_regular else "of its own"


def _words(given: Given) -> str:
    source, target, op, shapes = given
    return (
        f"gives source {source}, target {target}, combine {op}, global shape "
        f"{', '.join(map(str, shapes))}"
    )


def _checked(
    every: list[Given], firsts: list[int]
) -> tuple[tuple[int, ...], list[Flow]]:
    """The global shape, and what goes from where to where. All ranks look at the same
    here, and raise the same."""
    shapes = sorted({shape for x in every for shape in x[3]})
    if len(shapes) > 1:
        raise MismatchError(
            f"{NAME}: the global shapes differ: {', '.join(map(str, shapes))}"
        )
    if len({x[2] for x in every}) > 1:
        raise MismatchError(
            f"{NAME}: group A gives combine {every[0][2]}, group B {every[1][2]}"
        )
    if len(every) == 1:
        return shapes[0], [(every[0][0], 0, every[0][1], 0)]
    flows: list[Flow] = []
    for a, b in ((0, 1), (1, 0)):
        source, target = every[a][0], every[b][1]
        if (source is None) != (target is None):
            words = (
                ("no source", "a target")
                if source is None
                else ("a source", "no target")
            )
            raise MismatchError(
                f"{NAME}: group {'AB'[a]} gives {words[0]}, group {'AB'[b]} {words[1]}"
            )
        if source is not None:
            flows.append((source, firsts[a], target, firsts[b]))
    return shapes[0], flows


def _found(
    c: Context,
    same: bool,
    source: Layout | None,
    target: Layout | None,
    every: bool,
    shape: tuple[int, ...],
    flows: list[Flow],
) -> Exchange:
    """What this rank sends and receives: found by itself if all layouts are regular,
    else by a directory."""
    closed = [
        (x, s, y, t)
        for x, s, y, t in flows
        if isinstance(x, Layout) and isinstance(y, Layout)
    ]
    if len(closed) == len(flows):
        return regular(c.number, c.comm.size, closed, same, every)
    found = Exchange(c.number, c.comm.size, every=every)
    mine = 0 if same else c.number - c.index
    for _, s, _, t in flows:
        gives = source if mine == s else None
        takes = target if mine == t else None
        found = _by_directory(c, found, gives, takes, same, shape)
    return found


def _by_directory(
    c: Context,
    x: Exchange,
    source: Layout | None,
    target: Layout | None,
    same: bool,
    shape: tuple[int, ...],
) -> Exchange:
    """What a rank that gives a source, or a target, sends and receives."""
    n, base = c.comm.size, 0 if same else c.number - c.index
    block = block_size(prod(shape), n)
    held = None if source is None else source.flat_runs(c.index)
    wanted = None if target is None else wanted_runs(target, c.index)
    count = np.array(0 if held is None else len(held[0]))
    c.comm.Allreduce(MPI.IN_PLACE, count, MPI.SUM)
    if int(count) <= MOST_ANNOUNCED_RUNS:
        sends, receives = _announced(c, held, wanted, block, same, x.every, shape)
        x = replace(x, sends=(*x.sends, *sends))
        return x if target is None else received(x, target, c.index, receives, base)
    rows = _packed(
        {} if held is None else addressed(held[0], block, n),
        {} if wanted is None else addressed(wanted[0], block, n),
        2,
    )
    came = _unpacked(sparse_exchange(c.comm, rows, c.persistent_tag()), 2)
    met = meet(*came, block, same, x.every)
    _check_holes(c, met.hole, shape)
    rows = _packed(met.to_source, met.to_target, 3)
    to_source, to_target = _unpacked(
        sparse_exchange(c.comm, rows, c.persistent_tag()), 3
    )
    if source is not None and held is not None:
        some = messages([*to_source.values()], *held)
        x = replace(x, sends=tuple(some))
    if target is not None and wanted is not None:
        some = messages([*to_target.values()], *wanted)
        x = received(x, target, c.index, tuple(some), base)
    return x


def _announced(
    c: Context,
    held: tuple[Runs, np.ndarray] | None,
    wanted: tuple[Runs, np.ndarray] | None,
    block: int,
    same: bool,
    every: bool,
    shape: tuple[int, ...],
) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """What a rank sends and receives, where all hear what the sources have.

    Each finds by itself from whom it gets what it wants, and tells them. So what is
    wanted goes to nobody else, which takes a third of the time of a directory: blocks
    to cyclic lists of a million, 2 + 2 ranks on two cores.
    """
    sources: Rows = {}
    own = np.empty((0, 2), np.int64)
    if held is not None:
        own = np.stack((held[0].start, held[0].size), 1)
    for r, rows in enumerate(c.comm.allgather(own)):
        if len(rows):
            sources[r] = rows
    runs, places = (Runs(_NONE, _NONE), _NONE) if wanted is None else wanted
    by = np.full(len(runs), c.number)
    m = match(sources, runs, by, block=block, same=same, every=every)
    _check_holes(c, m.hole, shape)
    place = (places - runs.start).take(m.wanted) + m.start
    rows_of = split_by(m.owner, np.stack((m.start, m.size, place), 1))
    receives = [Message(r, rows[:, 2], rows[:, 1]) for r, rows in rows_of.items()]
    asked = {r: np.ascontiguousarray(rows[:, :2]) for r, rows in rows_of.items()}
    came = sparse_exchange(c.comm, asked, c.persistent_tag())
    sends = []
    for r in sorted(came):
        assert held is not None  # since somebody takes something from this rank
        start, size = came[r].reshape(-1, 2).T
        sends += [_sent(r, start, size, *held)]
    return tuple(sends), tuple(receives)


def _sent(
    peer: int, start: np.ndarray, size: np.ndarray, runs: Runs, places: np.ndarray
) -> Message:
    return Message(peer, located(start, runs, places), size)


def _check_holes(
    c: Context, hole: tuple[int, int] | None, shape: tuple[int, ...]
) -> None:
    """Raise on all ranks if somebody wants what nobody has: the first index."""
    nothing = prod(shape)
    first = np.array(nothing if hole is None else hole[0])
    c.comm.Allreduce(MPI.IN_PLACE, first, MPI.MIN)
    if int(first) == nothing:
        return
    mine = hole is not None and hole[0] == int(first)
    who = np.array(hole[1] if hole is not None and mine else c.comm.size)
    c.comm.Allreduce(MPI.IN_PLACE, who, MPI.MIN)
    index = tuple(int(i) for i in np.unravel_index(int(first), shape))
    raise MismatchError(
        f"{NAME}: no source has element {index if len(index) > 1 else index[0]}, "
        f"which {c.who(int(who))} wants"
    )


def table_of(c: Context, x: Exchange) -> list[tuple[int, int, int]] | None:
    """All messages of all ranks, if they are few; collective."""
    own = x.table
    total = np.array(len(own))
    c.comm.Allreduce(MPI.IN_PLACE, total, MPI.SUM)
    if total > MOST:
        return None
    return [m for row in c.comm.allgather(own) for m in row]


def _packed(x: Rows, y: Rows, width: int) -> Rows:
    """Two sets of rows for each rank as one array: how many there are of the first."""
    none, found = np.empty((0, width), np.int64), {}
    for r in {*x, *y}:
        a, b = x.get(r, none), y.get(r, none)
        found[r] = np.concatenate(([len(a)], a.ravel(), b.ravel())).astype(np.int64)
    return found


def _unpacked(got: Rows, width: int) -> tuple[Rows, Rows]:
    first: Rows = {}
    second: Rows = {}
    for r, x in sorted(got.items()):
        n, rows = int(x[0]), x[1:].reshape(-1, width)
        if n:
            first[r] = rows[:n]
        if n < len(rows):
            second[r] = rows[n:]
    return first, second
