"""The set-up of a redistribution: comparison of arguments, and the messages of a rank.

With regular layouts a rank computes the messages alone. Otherwise ranks exchange runs,
since no rank knows the elements of further ranks.
"""

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
from ...redistribution.exchange import Exchange, received, regular, transfer_rounds
from ...redistribution.layouts import Layout
from ...redistribution.messages import Message, wanted_runs
from ...redistribution.order import MOST_ORDERED_PIECES, WHOLE_MESSAGE_BYTES, turns
from ...redistribution.runs import Runs
from ...schedules.ir import Round
from ..context.context import Context
from ..waiting.errors import MismatchError
from .agreement import REDISTRIBUTION_CLASS, agree, sparse_exchange, without_error

#: up to so many runs of all sources, a megabyte, all ranks get all runs
MOST_ANNOUNCED_RUNS = 1 << 16
_NO_INDICES = np.empty(0, np.int64)
#: the layout of a group: regular, or the words for separate layouts of ranks
GroupLayout: TypeAlias = Layout | str | None
#: the arguments that ranks must agree on: source, target, combine, global shapes
Arguments: TypeAlias = tuple[
    GroupLayout, GroupLayout, str | None, tuple[tuple[int, ...], ...]
]
#: the source, the number of its first rank, the target, the number of its first rank
Flow: TypeAlias = tuple[GroupLayout, int, GroupLayout, int]
Combine: TypeAlias = MPI.Op | str | None


@dataclass(frozen=True, eq=False)
class RedistributionSetup:
    """The result of the set-up on a rank."""

    exchange: Exchange
    #: the messages of all ranks (source, target, elements), or None for too many
    table: list[tuple[int, int, int]] | None
    #: a flow, or between groups perhaps a flow in each direction
    flows: tuple[Flow, ...]

    def transfer_rounds(self, unit: int) -> list[Round]:
        """The rounds from sources to targets, for elements of `unit` bytes."""
        least = max(WHOLE_MESSAGE_BYTES // max(unit, 1), 1)
        order = None if self.table is None else turns(self.table, least)
        return transfer_rounds(self.exchange, order)


def set_up(
    context: Context,
    one_group: bool,
    source: Layout | None,
    target: Layout | None,
    combine: Combine,
) -> RedistributionSetup:
    """Set up with all ranks; an error of a single rank is raised on all."""
    arguments = without_error(
        context, lambda: _own_arguments(context, one_group, source, target, combine)
    )
    agree(context, context.local, arguments, _arguments_in_words)
    firsts = [0] if one_group else [0, context.p]  # type: ignore[attr-defined]
    group_arguments = [
        context.comm.bcast(arguments if context.number == r else None, r)
        for r in firsts
    ]
    shape, flows = _flows_of(group_arguments, firsts)
    exchange = _exchange_of(
        context, one_group, source, target, combine is not None, shape, flows
    )
    return RedistributionSetup(exchange, table_of(context, exchange), tuple(flows))


def _own_arguments(
    context: Context,
    one_group: bool,
    source: Layout | None,
    target: Layout | None,
    combine: Combine,
) -> Arguments:
    """The arguments of a rank, after the checks that a rank can do alone."""
    layouts = [x for x in (source, target) if x is not None]
    for layout in layouts:
        if not isinstance(layout, Layout):
            raise TypeError(f"source and target must be a Layout, not {layout!r}")
        if layout.ranks > context.local.size and layout.is_regular:
            raise ValueError(
                f"a layout of {layout.ranks} ranks for a group of {context.local.size}"
            )
    if not layouts:
        raise ValueError("give a source, a target, or both")
    if one_group and len(layouts) < 2:
        raise ValueError("inside one group, every rank gives a source and a target")
    op = _operator_in_words(combine)
    if op is not None and source is not None and len(repeated := source.repeats[0]):
        assert source.points is not None
        raise ValueError(
            f"index {source.points[repeated[0]]} is twice in the source of one rank: "
            "it would count twice"
        )
    shapes = tuple(sorted({x.shape for x in layouts}))
    return _group_layout(source), _group_layout(target), op, shapes


def _operator_in_words(combine: Combine) -> str | None:
    """The way to combine, in words that all ranks can compare.

    Operators of users have equal words, since ranks cannot compare functions.
    """
    if not isinstance(combine, MPI.Op):
        if combine not in (None, "mean"):
            raise ValueError(
                f'combine must be an MPI.Op, "mean" or None, not {combine!r}'
            )
        return combine
    if combine == MPI.OP_NULL:
        raise ValueError("combine must be an operator, not MPI.OP_NULL")
    if not combine.is_predefined:
        return "an operator of its own"
    names = (name for name, value in vars(MPI).items() if isinstance(value, MPI.Op))
    return "MPI." + next(name for name in names if getattr(MPI, name) == combine)


def _group_layout(layout: Layout | None) -> GroupLayout:
    """A layout in the form that all ranks of the group can compare."""
    return layout if layout is None or layout.is_regular else "of its own"


def _arguments_in_words(arguments: Arguments) -> str:
    source, target, op, shapes = arguments
    return (
        f"gives source {source}, target {target}, combine {op}, global shape "
        f"{', '.join(map(str, shapes))}"
    )


def _flows_of(
    group_arguments: list[Arguments], firsts: list[int]
) -> tuple[tuple[int, ...], list[Flow]]:
    """The global shape, and the flows.

    Errors need no agreement, since all ranks see equal arguments.
    """
    shapes = sorted({shape for arguments in group_arguments for shape in arguments[3]})
    if len(shapes) > 1:
        raise MismatchError(
            f"{REDISTRIBUTION_CLASS}: the global shapes differ: "
            f"{', '.join(map(str, shapes))}"
        )
    operators = [arguments[2] for arguments in group_arguments]
    if len({*operators}) > 1:
        raise MismatchError(
            f"{REDISTRIBUTION_CLASS}: group A gives combine {operators[0]}, "
            f"group B {operators[1]}"
        )
    if len(group_arguments) == 1:
        return shapes[0], [(group_arguments[0][0], 0, group_arguments[0][1], 0)]
    flows: list[Flow] = []
    for a, b in ((0, 1), (1, 0)):
        source, target = group_arguments[a][0], group_arguments[b][1]
        if (source is None) != (target is None):
            words = (
                ("no source", "a target")
                if source is None
                else ("a source", "no target")
            )
            raise MismatchError(
                f"{REDISTRIBUTION_CLASS}: group {'AB'[a]} gives {words[0]}, "
                f"group {'AB'[b]} {words[1]}"
            )
        if source is not None:
            flows.append((source, firsts[a], target, firsts[b]))
    return shapes[0], flows


def _exchange_of(
    context: Context,
    one_group: bool,
    source: Layout | None,
    target: Layout | None,
    combine: bool,
    shape: tuple[int, ...],
    flows: list[Flow],
) -> Exchange:
    """The messages of this rank, computed alone or found by a directory."""
    regular_flows = [
        (x, s, y, t)
        for x, s, y, t in flows
        if isinstance(x, Layout) and isinstance(y, Layout)
    ]
    if len(regular_flows) == len(flows):
        return regular(
            context.number, context.comm.size, regular_flows, one_group, combine
        )
    exchange = Exchange(context.number, context.comm.size, combine=combine)
    own_base = 0 if one_group else context.number - context.index
    for _, s, _, t in flows:
        own_source = source if own_base == s else None
        own_target = target if own_base == t else None
        exchange = _by_directory(
            context, exchange, own_source, own_target, one_group, shape
        )
    return exchange


def _by_directory(
    context: Context,
    exchange: Exchange,
    source: Layout | None,
    target: Layout | None,
    one_group: bool,
    shape: tuple[int, ...],
) -> Exchange:
    """The exchange of a rank with an irregular source or target; collective."""
    n, base = context.comm.size, 0 if one_group else context.number - context.index
    block = block_size(prod(shape), n)
    held = None if source is None else source.flat_runs(context.index)
    wanted = None if target is None else wanted_runs(target, context.index)
    count = np.array(0 if held is None else len(held[0]))
    context.comm.Allreduce(MPI.IN_PLACE, count, MPI.SUM)
    if int(count) <= MOST_ANNOUNCED_RUNS:
        sends, receives = _announced(
            context, held, wanted, block, one_group, exchange.combine, shape
        )
        exchange = replace(exchange, sends=(*exchange.sends, *sends))
        return (
            exchange
            if target is None
            else received(exchange, target, context.index, receives, base)
        )
    rows = _packed(
        {} if held is None else addressed(held[0], block, n),
        {} if wanted is None else addressed(wanted[0], block, n),
        2,
    )
    reports = _unpacked(
        sparse_exchange(context.comm, rows, context.persistent_tag()), 2
    )
    matches = meet(*reports, block, one_group, exchange.combine)
    _check_holes(context, matches.hole, shape)
    rows = _packed(matches.to_source, matches.to_target, 3)
    to_source, to_target = _unpacked(
        sparse_exchange(context.comm, rows, context.persistent_tag()), 3
    )
    if source is not None and held is not None:
        sends = tuple(messages([*to_source.values()], *held))
        exchange = replace(exchange, sends=sends)
    if target is not None and wanted is not None:
        receives = tuple(messages([*to_target.values()], *wanted))
        exchange = received(exchange, target, context.index, receives, base)
    return exchange


def _announced(
    context: Context,
    held: tuple[Runs, np.ndarray] | None,
    wanted: tuple[Runs, np.ndarray] | None,
    block: int,
    one_group: bool,
    combine: bool,
    shape: tuple[int, ...],
) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """The messages to and from a rank, after all ranks get the runs of all sources.

    A rank finds the owners of wanted elements and requests the elements from the
    owners. This takes a third of the time of a directory, because no third rank is
    between: blocks to cyclic lists of a million, 2 + 2 ranks on two cores.
    """
    sources: Rows = {}
    own_runs = np.empty((0, 2), np.int64)
    if held is not None:
        own_runs = np.stack((held[0].start, held[0].size), 1)
    for r, rows in enumerate(context.comm.allgather(own_runs)):
        if len(rows):
            sources[r] = rows
    runs, places = (
        (Runs(_NO_INDICES, _NO_INDICES), _NO_INDICES) if wanted is None else wanted
    )
    wanted_by = np.full(len(runs), context.number)
    matched = match(
        sources, runs, wanted_by, block=block, one_group=one_group, combine=combine
    )
    _check_holes(context, matched.hole, shape)
    place = (places - runs.start).take(matched.wanted) + matched.start
    receives, requests = [], {}
    for r, k in split_by(matched.owner, np.arange(len(place))).items():
        size = matched.size.take(k)
        receives.append(Message(r, place.take(k), size))
        requests[r] = np.concatenate((matched.start.take(k), size))
    requested = sparse_exchange(context.comm, requests, context.persistent_tag())
    sends = []
    for r in sorted(requested):
        assert held is not None  # a rank without a source gets no requests
        start, size = requested[r].reshape(2, -1)
        sends.append(Message(r, located(start, *held), size))
    return tuple(sends), tuple(receives)


def _check_holes(
    context: Context, hole: tuple[int, int] | None, shape: tuple[int, ...]
) -> None:
    """Raise on all ranks if a rank wants an element without a source.

    The error names the first such element.
    """
    no_hole = prod(shape)
    first = np.array(no_hole if hole is None else hole[0])
    context.comm.Allreduce(MPI.IN_PLACE, first, MPI.MIN)
    if int(first) == no_hole:
        return
    is_own = hole is not None and hole[0] == int(first)
    wanting_rank = np.array(
        hole[1] if hole is not None and is_own else context.comm.size
    )
    context.comm.Allreduce(MPI.IN_PLACE, wanting_rank, MPI.MIN)
    index = tuple(int(i) for i in np.unravel_index(int(first), shape))
    raise MismatchError(
        f"{REDISTRIBUTION_CLASS}: no source has element "
        f"{index if len(index) != 1 else index[0]}, "
        f"which {context.who(int(wanting_rank))} wants"
    )


def table_of(context: Context, exchange: Exchange) -> list[tuple[int, int, int]] | None:
    """The messages of all ranks, or None for too many to order; collective."""
    messages = exchange.table
    total = np.array(len(messages))
    context.comm.Allreduce(MPI.IN_PLACE, total, MPI.SUM)
    if total > MOST_ORDERED_PIECES:
        return None
    return [m for row in context.comm.allgather(messages) for m in row]


def _packed(x: Rows, y: Rows, width: int) -> Rows:
    """Two sets of rows by rank, joined; an array begins with the first's length."""
    no_rows, result = np.empty((0, width), np.int64), {}
    for r in {*x, *y}:
        a, b = x.get(r, no_rows), y.get(r, no_rows)
        result[r] = np.concatenate(([len(a)], a.ravel(), b.ravel())).astype(np.int64)
    return result


def _unpacked(arrays: Rows, width: int) -> tuple[Rows, Rows]:
    """The two sets of rows by rank, from arrays of `_packed`."""
    first: Rows = {}
    second: Rows = {}
    for r, array in sorted(arrays.items()):
        count, rows = int(array[0]), array[1:].reshape(-1, width)
        if count:
            first[r] = rows[:count]
        if count < len(rows):
            second[r] = rows[count:]
    return first, second
