"""Setting a remapping up: each entry of the matrix comes to those who have its row.

Nobody knows which rank has which entries, so a distributed directory of rows finds out,
as redistributions have one of elements: rows are dealt out in blocks to all ranks, each
entry goes to the rank that looks after its row, and that rank passes it on to whoever
has the row. There, entries that were given twice meet. A rank keeps its own part only.
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

NAME = "isthmus.Remapping"
#: how rows are normalised, in ESMF's words, and what becomes of values that are NaN
NORMS = (None, "fracarea")
MISSING = (None, "renormalise")


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user said of a remapping, besides the grids and the weights."""

    dtype: np.dtype[Any]
    norm: str | None
    missing: str | None
    #: what a point of the target without weights gets; None where it is left as it is
    unmapped: float | None
    #: which points of this rank's part of the source are missing
    mask: np.ndarray | None


@dataclass(frozen=True, slots=True, eq=False)
class Parcel:
    """What a rank of the source puts side by side for one other: products of rows, and
    columns as they are."""

    start: int
    #: the rows on this rank's flat local array; None where there are none
    matrix: Any
    sums: np.ndarray
    places: np.ndarray

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self.sums) + len(self.places)


@dataclass(frozen=True, eq=False)
class Setup:
    """What a rank knows of a remapping."""

    #: brings the columns that a rank needs
    columns: Redistribution
    #: of a rank of the target: its rows, and the global columns of them
    matrix: Any = None
    needed: np.ndarray | None = None
    #: the sum of the weights of each row as they were given, and as they are
    fractions: np.ndarray | None = None
    sums: np.ndarray | None = None
    #: the messages of a call: those of the columns, or fewer values where rows are
    #: multiplied by the source
    moving: redistribution.Setup | None = None
    #: the rows on what comes in a call, and their sums
    rows_here: Any = None
    sums_here: np.ndarray | None = None
    #: what a rank of the source sends to each other; nothing where it multiplies none
    parcels: tuple[Parcel, ...] = ()


def set_up(
    comm: MPI.Comm,
    c: Context,
    weights: Weights,
    source: Layout | None,
    target: Layout | None,
    wishes: Wishes,
) -> Setup:
    """Set up with all ranks; what is wrong, all raise alike."""
    shapes, is_masked = _agreed(comm, c, source, target, wishes)
    points, columns = (prod(shape) for shape in shapes)
    entries = _own_entries(c, weights, (points, columns))
    came = _exchanged(c, entries, points, columns, target)
    del entries

    def own_rows() -> Setup:
        if target is None:
            return Setup(None)  # type: ignore[arg-type]
        runs, places = target.flat_runs(c.index)
        k = np.searchsorted(runs.start, came.row, side="right") - 1
        where = (places - runs.start)[k] + came.row
        n = prod(_local_shape(target, c.index))
        matrix, needed = rows_of(came, where, n, columns)
        matrix = repeated(matrix, *target.repeats)
        return Setup(None, matrix, needed)  # type: ignore[arg-type]

    setup = without_error(c, own_rows, NAME)
    bring = _columns(comm, source, shapes[1], setup.needed)
    if is_masked:
        matrix, needed = _without_masked(c, bring, setup, wishes.mask)
        setup = replace(setup, matrix=matrix, needed=needed)
        bring.Free()
        bring = _columns(comm, source, shapes[1], needed)
    setup = _normalised(replace(setup, columns=bring), wishes)
    here = {"rows_here": setup.matrix, "sums_here": setup.sums}
    setup = replace(setup, moving=bring.setup, **here)
    # a product must travel with all its bits
    is_exact = wishes.dtype == np.result_type(wishes.dtype, np.float64)
    return _multiplied_by_sources(c, setup, source, columns) if is_exact else setup


def _local_shape(layout: Layout, rank: int) -> tuple[int, ...]:
    return layout.local_shape(rank if layout.is_regular else None)


def _columns(
    comm: Any, source: Layout | None, shape: tuple[int, ...], needed: np.ndarray | None
) -> Redistribution:
    """What brings the columns that each rank of the target needs."""
    wanted = None if needed is None else Layout.indices(shape, needed)
    return Redistribution(comm, source=source, target=wanted)


# -- what all ranks must agree on


def _agreed(
    comm: MPI.Comm,
    c: Context,
    source: Layout | None,
    target: Layout | None,
    wishes: Wishes,
) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], bool]:
    """The global shapes of target and source, and whether points are masked."""
    same = not comm.Is_inter()

    def check() -> tuple[Any, ...]:
        _check(same, source, target, wishes, c.index)
        ends = (None if x is None else x.shape for x in (target, source))
        options = wishes.dtype.str, wishes.norm, wishes.missing, wishes.mask is not None
        return (*ends, *options)

    mine = without_error(c, check, NAME)
    agree(c, c.local, mine, _words, NAME)
    first = c.number - c.index
    other = None if same else (c.local.size if not first else 0)
    rows = [mine]
    if other is not None:
        both = (0, max(first, other))
        rows = [c.comm.bcast(mine if c.number == r else None, r) for r in both]
        _check_groups(rows)
    target_shape = next(row[0] for row in rows if row[0] is not None)
    source_shape = next(row[1] for row in rows if row[1] is not None)
    return (target_shape, source_shape), any(row[5] for row in rows)


def _check(
    same: bool,
    source: Layout | None,
    target: Layout | None,
    wishes: Wishes,
    rank: int,
) -> None:
    """Refuse what one rank alone can see is wrong."""
    for layout in (source, target):
        if layout is not None and not isinstance(layout, Layout):
            raise TypeError(f"source and target must be a Layout, not {layout!r}")
    if same and (source is None or target is None):
        raise ValueError("inside one group, every rank gives a source and a target")
    if not same and (source is None) == (target is None):
        raise ValueError(
            "between groups, a rank gives a source or a target: make another remapping "
            "for the way back"
        )
    if wishes.dtype.kind not in "fc":
        raise ValueError(f"dtype must be floating-point, not {wishes.dtype}")
    if wishes.norm not in NORMS:
        raise ValueError(f'norm must be None or "fracarea", not {wishes.norm!r}')
    if wishes.missing not in MISSING:
        raise ValueError(
            f'missing must be None or "renormalise", not {wishes.missing!r}'
        )
    if wishes.mask is None:
        return
    if source is None:
        raise ValueError("a mask is of the source: this rank has none")
    shape = _local_shape(source, rank)
    if wishes.mask.shape != shape or wishes.mask.dtype != bool:
        raise ValueError(
            f"mask must be booleans of shape {shape}, not {wishes.mask.dtype} of "
            f"{wishes.mask.shape}"
        )


def _words(row: tuple[Any, ...]) -> str:
    target, source, dtype, norm, missing, is_masked = row
    ends = ((name, x) for name, x in (("source", source), ("target", target)) if x)
    grids = " and ".join(f"a {name} of shape {x}" for name, x in ends)
    mask = "a mask" if is_masked else "no mask"
    return f"gives {grids}, dtype {dtype}, norm {norm}, missing {missing}, {mask}"


def _check_groups(rows: list[tuple[Any, ...]]) -> None:
    """Refuse what does not fit between the groups. All ranks look at the same here, and
    raise the same."""
    for k, name in ((0, "target"), (1, "source")):
        if all((row[k] is None) == (rows[0][k] is None) for row in rows):
            raise MismatchError(
                f"{NAME}: one group gives a source and the other a target, but "
                f"{'none' if rows[0][k] is None else 'both'} a {name}"
            )
    for k, name in ((2, "dtype"), (3, "norm"), (4, "missing")):
        if rows[0][k] != rows[1][k]:
            raise MismatchError(
                f"{NAME}: group A gives {name} {rows[0][k]}, group B {rows[1][k]}"
            )


# -- the entries


def _own_entries(c: Context, weights: Weights, shape: tuple[int, int]) -> Entries:
    """The entries that this rank gives; of a file its part, as the ranks that name one
    share it."""
    path = path_of(weights)
    givers = c.comm.allgather((path, weights is not None))
    if not any(gives for _, gives in givers):
        raise MismatchError(f"{NAME}: no rank gives weights")
    readers = [r for r, (other, _) in enumerate(givers) if path and other == path]
    part = readers.index(c.number) if path else 0
    parts = max(len(readers), 1)
    return without_error(c, lambda: read(weights, shape, part, parts), NAME)


def _exchanged(
    c: Context, entries: Entries, points: int, columns: int, target: Layout | None
) -> Entries:
    """The entries of the rows that this rank has, by the directory of rows."""
    n = c.comm.size
    block = block_size(points, n)
    rows: Rows = {}
    if len(entries):
        index = split_by(entries.row // block % n, np.arange(len(entries)))
        rows = {r: entries.take(x).packed() for r, x in index.items()}
    came = sparse_exchange(c.comm, rows, c.persistent_tag())
    asked: Rows = {}
    if target is not None:
        asked = addressed(target.flat_runs(c.index)[0], block, n)
    wanted = sparse_exchange(c.comm, asked, c.persistent_tag())
    parts = [came.pop(r) for r in sorted(came)]
    known = without_error(c, lambda: ordered(unpacked(parts), columns), NAME)
    answers = {r: _of_runs(known, x.reshape(-1, 2)) for r, x in wanted.items()}
    answers = {r: x for r, x in answers.items() if len(x)}
    answered = sparse_exchange(c.comm, answers, c.persistent_tag())
    return unpacked([answered[r] for r in sorted(answered)])


def _of_runs(entries: Entries, rows: np.ndarray) -> np.ndarray:
    """The entries of runs of rows, packed."""
    start, size = rows.T
    low, high = (np.searchsorted(entries.row, x) for x in (start, start + size))
    return entries.take(spread(low, high - low)).packed()


# -- what is left out, and normalised


def _without_masked(
    c: Context, bring: Redistribution, setup: Setup, mask: np.ndarray | None
) -> tuple[Any, np.ndarray | None]:
    """The rows without entries of masked columns, and the columns that are left."""
    if setup.needed is None:
        assert bring.source is not None
        bring(_as_bytes(c, bring.source, mask))
        return None, None
    came = np.empty(len(setup.needed), np.uint8)
    if bring.source is None:
        bring(came)
    else:
        bring(_as_bytes(c, bring.source, mask), came)
    is_masked = came.astype(bool)
    matrix = without_columns(setup.matrix, is_masked)
    is_used = np.zeros(len(setup.needed), bool)
    is_used[matrix.indices] = True
    number = np.cumsum(is_used) - 1
    shape = matrix.shape[0], int(is_used.sum())
    parts = matrix.data, number[matrix.indices], matrix.indptr
    return type(matrix)(parts, shape=shape), setup.needed[is_used]


def _as_bytes(c: Context, source: Layout, mask: np.ndarray | None) -> np.ndarray:
    if mask is None:  # others of the group have one, or this would not be asked
        return np.zeros(_local_shape(source, c.index), np.uint8)
    return np.ascontiguousarray(mask).view(np.uint8)


def _normalised(setup: Setup, wishes: Wishes) -> Setup:
    """The rows with the norm that the user wants."""
    if setup.matrix is None:
        return setup
    matrix = setup.matrix
    fractions = sums = row_sums(matrix)
    if wishes.norm == "fracarea":
        matrix = divided(matrix, np.where(sums == 0, 1.0, sums))
        sums = row_sums(matrix)
    return replace(setup, matrix=matrix, fractions=fractions, sums=sums)


# -- rows that sources multiply


def _multiplied_by_sources(
    c: Context, setup: Setup, source: Layout | None, columns: int
) -> Setup:
    """The remapping with rows multiplied where their columns lie, if fewer values
    travel then."""
    exchange = setup.columns.exchange
    part = None
    if setup.needed is not None:
        assert setup.sums is not None
        owner = np.zeros(len(setup.needed), np.int64)
        for m in exchange.receives:
            owner[spread(m.start, m.size)] = m.peer
        ends = setup.matrix, setup.sums, setup.needed, owner
        part = split(*ends, c.number, columns)
    is_some = np.array(part is not None)
    c.comm.Allreduce(MPI.IN_PLACE, is_some, MPI.LOR)
    if not is_some:
        return setup
    rows = {r: x.packed() for r, x in part.orders.items()} if part else {}
    came = sparse_exchange(c.comm, rows, c.persistent_tag())
    orders = {r: unpacked_order(x, columns) for r, x in came.items()}
    if part is not None:
        receives = tuple(Message(r, *runs) for r, runs in part.places.items())
        exchange = replace(exchange, receives=receives, wanted=part.matrix.shape[1])
        here = {"rows_here": part.matrix, "sums_here": part.sums}
        setup = replace(setup, **here)
    if orders:
        assert source is not None
        parcels = _parcels(exchange.sends, orders, source, c.index)
        sends = (
            Message(m.peer, np.array([x.start]), np.array([x.size]))
            for m, x in zip(exchange.sends, parcels, strict=True)
        )
        exchange = replace(exchange, sends=tuple(sends))
        setup = replace(setup, parcels=parcels)
    table = redistribution.table_of(c, exchange)
    moving = replace(setup.columns.setup, exchange=exchange, table=table)
    return replace(setup, moving=moving)


def _parcels(
    sends: tuple[Message, ...], orders: dict[int, Order], source: Layout, rank: int
) -> tuple[Parcel, ...]:
    """What a rank of the source puts side by side for each of its messages."""
    runs, places = source.flat_runs(rank)
    points = prod(_local_shape(source, rank))
    result, start = list[Parcel](), 0
    for m in sends:
        order = orders.get(m.peer)
        if order is None:
            one = Parcel(start, None, np.empty(0), spread(m.start, m.size))
        else:
            whole = order.matrix
            local = located(whole.indices.astype(np.int64), runs, places)
            parts = whole.data, local, whole.indptr
            matrix = type(whole)(parts, shape=(whole.shape[0], points))
            raw = located(order.columns, runs, places)
            one = Parcel(start, matrix, order.sums, raw)
        result.append(one)
        start += one.size
    return tuple(result)
