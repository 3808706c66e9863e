"""The set-up of a remapping: entries of the matrix travel to the ranks with their rows.

No rank knows the owners of all entries, so rows are dealt out in blocks to all ranks, a
distributed directory like that of redistributions. An entry goes to the directory rank
of the row, and from there to the ranks that have the row. So a repeated entry meets the
first at the directory. No rank stores the whole matrix.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from ...redistribution.directory import (
    Rows,
    addressed,
    block_size,
    located,
    split_by,
)
from ...redistribution.layouts import Layout
from ...redistribution.messages import Message
from ...redistribution.runs import spread
from ...remapping.matrix import (
    divided,
    repeated,
    row_sums,
    rows_of,
    without_columns,
)
from ...remapping.sides import Order, split, unpacked as unpacked_order
from ...remapping.weights import Entries, Weights, ordered, path_of, read, unpacked
from ..redistribution import setup as redistribution
from ..redistribution.agreement import agree, sparse_exchange, without_error
from ..redistribution.redistribution import Redistribution
from ..waiting.errors import MismatchError

if TYPE_CHECKING:
    from ..context.context import Context

#: the name of the class in errors
REMAPPING_CLASS = "isthmus.Remapping"
#: the norms of rows, in ESMF's words, and the treatments of values that are NaN
NORMS = (None, "fracarea")
MISSING_TREATMENTS = (None, "renormalise")


@dataclass(frozen=True, slots=True)
class RemappingOptions:
    """The arguments of a remapping besides the grids and the weights."""

    dtype: np.dtype[Any]
    norm: str | None
    missing: str | None
    #: the value of target points without weights; None leaves the points unchanged
    unmapped: float | None
    #: whether each point of this rank's part of the source is missing
    mask: np.ndarray | None


@dataclass(frozen=True, slots=True, eq=False)
class Parcel:
    """The values that a source sends to a peer: products, then columns."""

    start: int
    #: the rows, whose columns are places of the flat local array; None without rows
    matrix: Any
    sums: np.ndarray
    places: np.ndarray

    @property
    def size(self) -> int:
        """The number of values in the parcel."""
        return len(self.sums) + len(self.places)


@dataclass(frozen=True, eq=False)
class RemappingSetup:
    """The result of the set-up on a rank."""

    #: the redistribution of columns to the ranks of the target
    columns: Redistribution
    #: on a rank of the target, the rows and their global columns
    matrix: Any = None
    needed: np.ndarray | None = None
    #: the sum of each row's weights, before and after the norm
    fractions: np.ndarray | None = None
    sums: np.ndarray | None = None
    #: the messages of a call: those of columns, or fewer values if sources multiply
    moving: redistribution.RedistributionSetup | None = None
    #: the rows on the values that arrive in a call, and the sums of rows
    local_rows: Any = None
    local_sums: np.ndarray | None = None
    #: the values from this rank to each peer, if this rank multiplies rows
    parcels: tuple[Parcel, ...] = ()


def set_up(
    comm: MPI.Comm,
    context: Context,
    weights: Weights,
    source: Layout | None,
    target: Layout | None,
    options: RemappingOptions,
) -> RemappingSetup:
    """Set up with all ranks; an error of a single rank is raised on all."""
    shapes, is_masked = _agreed(comm, context, source, target, options)
    points, columns = (prod(shape) for shape in shapes)
    entries = _own_entries(context, weights, (points, columns))
    own_entries = _exchanged(context, entries, points, columns, target)
    del entries

    def own_rows() -> RemappingSetup:
        if target is None:
            return RemappingSetup(None)  # type: ignore[arg-type]
        runs, places = target.flat_runs(context.index)
        k = np.searchsorted(runs.start, own_entries.row, side="right") - 1
        point_of_entry = (places - runs.start)[k] + own_entries.row
        n = prod(_local_shape(target, context.index))
        matrix, needed = rows_of(own_entries, point_of_entry, n, columns)
        matrix = repeated(matrix, *target.repeats)
        return RemappingSetup(None, matrix, needed)  # type: ignore[arg-type]

    setup = without_error(context, own_rows, REMAPPING_CLASS)
    columns_move = _columns(comm, source, shapes[1], setup.needed)
    if is_masked:
        matrix, needed = _without_masked(context, columns_move, setup, options.mask)
        setup = replace(setup, matrix=matrix, needed=needed)
        columns_move.Free()
        columns_move = _columns(comm, source, shapes[1], needed)
    setup = _normalised(replace(setup, columns=columns_move), options)
    local = {"local_rows": setup.matrix, "local_sums": setup.sums}
    setup = replace(setup, moving=columns_move.setup, **local)
    # a product must travel with all its bits
    is_exact = options.dtype == np.result_type(options.dtype, np.float64)
    return (
        _multiplied_by_sources(context, setup, source, columns) if is_exact else setup
    )


def _local_shape(layout: Layout, rank: int) -> tuple[int, ...]:
    return layout.local_shape(rank if layout.is_regular else None)


def _columns(
    comm: Any, source: Layout | None, shape: tuple[int, ...], needed: np.ndarray | None
) -> Redistribution:
    """The redistribution of columns to the ranks of the target."""
    wanted = None if needed is None else Layout.indices(shape, needed)
    return Redistribution(comm, source=source, target=wanted)


# -- agreement of all ranks


def _agreed(
    comm: MPI.Comm,
    context: Context,
    source: Layout | None,
    target: Layout | None,
    options: RemappingOptions,
) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], bool]:
    """The global shapes of target and source, and whether points are masked."""
    one_group = not comm.Is_inter()

    def check() -> tuple[Any, ...]:
        _check(one_group, source, target, options, context.index)
        shapes = (None if x is None else x.shape for x in (target, source))
        is_masked = options.mask is not None
        return (*shapes, options.dtype.str, options.norm, options.missing, is_masked)

    arguments = without_error(context, check, REMAPPING_CLASS)
    agree(context, context.local, arguments, _arguments_in_words, REMAPPING_CLASS)
    own_base = context.number - context.index
    remote_base = None if one_group else (0 if own_base else context.local.size)
    group_arguments = [arguments]
    if remote_base is not None:
        bases = (0, max(own_base, remote_base))
        group_arguments = [
            context.comm.bcast(arguments if context.number == r else None, r)
            for r in bases
        ]
        _check_groups(group_arguments)
    target_shape = next(row[0] for row in group_arguments if row[0] is not None)
    source_shape = next(row[1] for row in group_arguments if row[1] is not None)
    return (target_shape, source_shape), any(row[5] for row in group_arguments)


def _check(
    one_group: bool,
    source: Layout | None,
    target: Layout | None,
    options: RemappingOptions,
    rank: int,
) -> None:
    """Refuse arguments that a rank alone can see are wrong."""
    for layout in (source, target):
        if layout is not None and not isinstance(layout, Layout):
            raise TypeError(f"source and target must be a Layout, not {layout!r}")
    if one_group and (source is None or target is None):
        raise ValueError("inside one group, every rank gives a source and a target")
    if not one_group and (source is None) == (target is None):
        raise ValueError(
            "between groups, a rank gives a source or a target: make another remapping "
            "for the way back"
        )
    if options.dtype.kind not in "fc":
        raise ValueError(f"dtype must be floating-point, not {options.dtype}")
    if options.norm not in NORMS:
        raise ValueError(f'norm must be None or "fracarea", not {options.norm!r}')
    if options.missing not in MISSING_TREATMENTS:
        raise ValueError(
            f'missing must be None or "renormalise", not {options.missing!r}'
        )
    if options.mask is None:
        return
    if source is None:
        raise ValueError("a mask is of the source: this rank has none")
    shape = _local_shape(source, rank)
    if options.mask.shape != shape or options.mask.dtype != bool:
        raise ValueError(
            f"mask must be booleans of shape {shape}, not {options.mask.dtype} of "
            f"{options.mask.shape}"
        )


def _arguments_in_words(arguments: tuple[Any, ...]) -> str:
    target, source, dtype, norm, missing, is_masked = arguments
    shapes = (
        (name, shape)
        for name, shape in (("source", source), ("target", target))
        if shape
    )
    grids = " and ".join(f"a {name} of shape {shape}" for name, shape in shapes)
    mask = "a mask" if is_masked else "no mask"
    return f"gives {grids}, dtype {dtype}, norm {norm}, missing {missing}, {mask}"


def _check_groups(group_arguments: list[tuple[Any, ...]]) -> None:
    """Refuse arguments that do not fit between the groups.

    Errors need no agreement, since all ranks see equal arguments.
    """
    for k, name in ((0, "target"), (1, "source")):
        if all(
            (arguments[k] is None) == (group_arguments[0][k] is None)
            for arguments in group_arguments
        ):
            raise MismatchError(
                f"{REMAPPING_CLASS}: one group gives a source and the other a target, "
                f"but {'none' if group_arguments[0][k] is None else 'both'} a {name}"
            )
    for k, name in ((2, "dtype"), (3, "norm"), (4, "missing")):
        a, b = (arguments[k] for arguments in group_arguments)
        if a != b:
            raise MismatchError(
                f"{REMAPPING_CLASS}: group A gives {name} {a}, group B {b}"
            )


# -- the entries


def _own_entries(context: Context, weights: Weights, shape: tuple[int, int]) -> Entries:
    """The entries that this rank gives, or a part of a file.

    Ranks that name a file share the entries, since to read all on each rank would take
    the time and memory of the whole file.
    """
    path = path_of(weights)
    ranks = context.comm.allgather((path, weights is not None))
    if not any(has_weights for _, has_weights in ranks):
        raise MismatchError(f"{REMAPPING_CLASS}: no rank gives weights")
    readers = [
        r for r, (peer_path, _) in enumerate(ranks) if path and peer_path == path
    ]
    part = readers.index(context.number) if path else 0
    parts = max(len(readers), 1)
    return without_error(
        context, lambda: read(weights, shape, part, parts), REMAPPING_CLASS
    )


def _exchanged(
    context: Context, entries: Entries, points: int, columns: int, target: Layout | None
) -> Entries:
    """The entries of this rank's rows, from the directory of rows; collective."""
    n = context.comm.size
    block = block_size(points, n)
    rows: Rows = {}
    if len(entries):
        index = split_by(entries.row // block % n, np.arange(len(entries)))
        rows = {r: entries.take(x).packed() for r, x in index.items()}
    reported = sparse_exchange(context.comm, rows, context.persistent_tag())
    requests: Rows = {}
    if target is not None:
        requests = addressed(target.flat_runs(context.index)[0], block, n)
    requested = sparse_exchange(context.comm, requests, context.persistent_tag())
    parts = [reported.pop(r) for r in sorted(reported)]
    directory_entries = without_error(
        context, lambda: ordered(unpacked(parts), columns), REMAPPING_CLASS
    )
    answers = {
        r: _of_runs(directory_entries, x.reshape(-1, 2)) for r, x in requested.items()
    }
    answers = {r: x for r, x in answers.items() if len(x)}
    received = sparse_exchange(context.comm, answers, context.persistent_tag())
    return unpacked([received[r] for r in sorted(received)])


def _of_runs(entries: Entries, rows: np.ndarray) -> np.ndarray:
    """The entries of runs of rows, packed."""
    start, size = rows.T
    low, high = (np.searchsorted(entries.row, x) for x in (start, start + size))
    return entries.take(spread(low, high - low)).packed()


# -- masked columns and norms


def _without_masked(
    context: Context,
    columns_move: Redistribution,
    setup: RemappingSetup,
    mask: np.ndarray | None,
) -> tuple[Any, np.ndarray | None]:
    """The rows without entries of masked columns, and the remaining columns."""
    if setup.needed is None:
        assert columns_move.source is not None
        columns_move(_as_bytes(context, columns_move.source, mask))
        return None, None
    masked_bytes = np.empty(len(setup.needed), np.uint8)
    if columns_move.source is None:
        columns_move(masked_bytes)
    else:
        columns_move(_as_bytes(context, columns_move.source, mask), masked_bytes)
    is_masked = masked_bytes.astype(bool)
    matrix = without_columns(setup.matrix, is_masked)
    is_used = np.zeros(len(setup.needed), bool)
    is_used[matrix.indices] = True
    number = np.cumsum(is_used) - 1
    shape = matrix.shape[0], int(is_used.sum())
    parts = matrix.data, number[matrix.indices], matrix.indptr
    return type(matrix)(parts, shape=shape), setup.needed[is_used]


def _as_bytes(context: Context, source: Layout, mask: np.ndarray | None) -> np.ndarray:
    """The bytes of a mask for a redistribution; without a mask no point is missing."""
    if mask is None:  # a further rank has a mask
        return np.zeros(_local_shape(source, context.index), np.uint8)
    return np.ascontiguousarray(mask).view(np.uint8)


def _normalised(setup: RemappingSetup, options: RemappingOptions) -> RemappingSetup:
    """The rows with the norm that the user chose."""
    if setup.matrix is None:
        return setup
    matrix = setup.matrix
    fractions = sums = row_sums(matrix)
    if options.norm == "fracarea":
        matrix = divided(matrix, np.where(sums == 0, 1.0, sums))
        sums = row_sums(matrix)
    return replace(setup, matrix=matrix, fractions=fractions, sums=sums)


# -- rows that sources multiply


def _multiplied_by_sources(
    context: Context, setup: RemappingSetup, source: Layout | None, columns: int
) -> RemappingSetup:
    """The remapping with rows multiplied by sources, if fewer values travel."""
    exchange = setup.columns.exchange
    division = None
    if setup.needed is not None:
        assert setup.sums is not None
        owner = np.zeros(len(setup.needed), np.int64)
        for m in exchange.receives:
            owner[spread(m.start, m.size)] = m.peer
        ends = setup.matrix, setup.sums, setup.needed, owner
        division = split(*ends, context.number, columns)
    is_divided = np.array(division is not None)
    context.comm.Allreduce(MPI.IN_PLACE, is_divided, MPI.LOR)
    if not is_divided:
        return setup
    rows = {r: x.packed() for r, x in division.orders.items()} if division else {}
    order_messages = sparse_exchange(context.comm, rows, context.persistent_tag())
    orders = {r: unpacked_order(x, columns) for r, x in order_messages.items()}
    if division is not None:
        receives = tuple(Message(r, *runs) for r, runs in division.places.items())
        exchange = replace(exchange, receives=receives, wanted=division.matrix.shape[1])
        local = {"local_rows": division.matrix, "local_sums": division.sums}
        setup = replace(setup, **local)
    if orders:
        assert source is not None
        parcels = _parcels(exchange.sends, orders, source, context.index)
        sends = (
            Message(m.peer, np.array([x.start]), np.array([x.size]))
            for m, x in zip(exchange.sends, parcels, strict=True)
        )
        exchange = replace(exchange, sends=tuple(sends))
        setup = replace(setup, parcels=parcels)
    table = redistribution.table_of(context, exchange)
    moving = replace(setup.columns.setup, exchange=exchange, table=table)
    return replace(setup, moving=moving)


def _parcels(
    sends: tuple[Message, ...], orders: dict[int, Order], source: Layout, rank: int
) -> tuple[Parcel, ...]:
    """The values of each message of a source."""
    runs, places = source.flat_runs(rank)
    points = prod(_local_shape(source, rank))
    result, start = list[Parcel](), 0
    for m in sends:
        order = orders.get(m.peer)
        if order is None:
            parcel = Parcel(start, None, np.empty(0), spread(m.start, m.size))
        else:
            rows = order.matrix
            local = located(rows.indices.astype(np.int64), runs, places)
            parts = rows.data, local, rows.indptr
            matrix = type(rows)(parts, shape=(rows.shape[0], points))
            raw = located(order.columns, runs, places)
            parcel = Parcel(start, matrix, order.sums, raw)
        result.append(parcel)
        start += parcel.size
    return tuple(result)
