"""The choice of rows that a source multiplies, so that products travel, not columns.

From a fine grid to a coarse grid, a row has many columns but a single value. A source
rank with all columns of a row can multiply the row in the order of columns, with equal
bits. The target always multiplies rows whose columns lie on several ranks, since a sum
of partial sums has different bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..redistribution.runs import sorted_runs

#: a source multiplies if at least so many columns stay for each row that travels: fewer
#: are not worth it, since a source multiplies before the messages, a target beside them
LEAST_COLUMNS_SAVED_PER_ROW = 2


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """The values that a target wants from a source: rows to multiply, and columns."""

    #: the rows, with the numbers of columns in the grid of the source
    matrix: Any
    #: the sums of the rows' weights, to which a renormalisation scales
    sums: np.ndarray
    #: the columns that travel without a product, ascending
    columns: np.ndarray

    def packed(self) -> np.ndarray:
        """The order as integers, for a message."""
        matrix = self.matrix
        counts = np.array([matrix.shape[0], matrix.nnz, len(self.columns)])
        values = matrix.data.view(np.int64), self.sums.view(np.int64)
        offsets = matrix.indptr.astype(np.int64)
        columns = matrix.indices.astype(np.int64)
        return np.concatenate((counts, offsets, columns, *values, self.columns))


def unpacked(numbers: np.ndarray, columns: int) -> Order:
    """The order of a message from `Order.packed`, for a grid of `columns` points."""
    from scipy.sparse import csr_matrix

    rows, entries, _ = numbers[:3].tolist()
    ends = np.cumsum([3, rows + 1, entries, entries, rows]).tolist()
    offsets, index, values, sums, rest = np.split(numbers, ends)[1:]
    parts = values.view(np.float64), index, offsets
    matrix = csr_matrix(parts, shape=(rows, columns))
    return Order(matrix, sums.view(np.float64), rest)


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """The rows that a target multiplies, and the orders of further rows to sources."""

    #: the order to each source rank that multiplies
    orders: dict[int, Order]
    #: the rows on arriving values, columns first and then products: a row that a source
    #: multiplies has a single product, with weight 1
    matrix: Any
    sums: np.ndarray
    #: the places of the values from each sending rank, in runs
    places: dict[int, tuple[np.ndarray, np.ndarray]]


def split(
    matrix: Any,
    sums: np.ndarray,
    needed: np.ndarray,
    owner: np.ndarray,
    own_rank: int,
    columns: int,
) -> Division | None:
    """The division of a target rank's rows, or None if no source multiplies.

    `owner` has the sending rank of each needed column, `columns` is the number of
    points of the source. A column that a row of several ranks needs travels anyway, so
    only other columns count as saved.
    """
    from scipy.sparse import csr_matrix

    row_owner = _owners(matrix, owner)
    is_raw = np.zeros(len(needed), bool)
    is_raw[matrix[np.flatnonzero(row_owner < 0)].indices] = True
    movable = np.flatnonzero(~is_raw)
    saved = np.bincount(owner[movable], minlength=1)
    wanted = np.bincount(row_owner[row_owner >= 0], minlength=len(saved))[: len(saved)]
    multiplies = (wanted * LEAST_COLUMNS_SAVED_PER_ROW <= saved) & (saved > 0)
    if own_rank < len(multiplies):
        multiplies[own_rank] = False
    if not multiplies.any():
        return None
    is_moved = (
        (row_owner >= 0)
        & multiplies[np.clip(row_owner, 0, len(multiplies) - 1)]
        & (row_owner < len(multiplies))
    )
    is_replaced = np.zeros(len(needed), bool)
    is_replaced[movable] = multiplies[owner[movable]]

    travelling = np.flatnonzero(~is_replaced)
    number = np.cumsum(~is_replaced) - 1
    orders: dict[int, Order] = {}
    places: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    product = np.zeros(matrix.shape[0], np.int64)
    end = len(travelling)
    for peer in np.unique(owner).tolist():
        own_columns = travelling[owner[travelling] == peer]
        runs = sorted_runs(number[own_columns])
        start, size = runs.start, runs.size
        if peer < len(multiplies) and multiplies[peer]:
            rows = np.flatnonzero(is_moved & (row_owner == peer))
            part = matrix[rows]
            ends = part.data, needed[part.indices], part.indptr
            rows_matrix = csr_matrix(ends, shape=(len(rows), columns))
            orders[peer] = Order(rows_matrix, sums[rows], needed[own_columns])
            product[rows] = end + np.arange(len(rows))
            start = np.concatenate(([end], start))
            size = np.concatenate(([len(rows)], size))
            end += len(rows)
        places[peer] = start, size
    return Division(
        orders,
        _local_rows(matrix, is_moved, number, product, end),
        np.where(is_moved, 1.0, sums),
        places,
    )


def _owners(matrix: Any, owner: np.ndarray) -> np.ndarray:
    """The rank with all columns of each row; -1 for several ranks or no columns."""
    owners = np.full(matrix.shape[0], -1, np.int64)
    filled = np.flatnonzero(np.diff(matrix.indptr))
    if len(filled):
        entry_owner, first = owner[matrix.indices], matrix.indptr[:-1][filled]
        low, high = (f.reduceat(entry_owner, first) for f in (np.minimum, np.maximum))
        owners[filled] = np.where(low == high, low, -1)
    return owners


def _local_rows(
    matrix: Any,
    is_moved: np.ndarray,
    number: np.ndarray,
    product: np.ndarray,
    columns: int,
) -> Any:
    """The rows on arriving values: local rows unchanged, moved rows as a product."""
    counts = np.where(is_moved, 1, np.diff(matrix.indptr))
    offsets = np.concatenate(([0], np.cumsum(counts)))
    values, index = np.ones(offsets[-1]), np.empty(offsets[-1], np.int64)
    index[offsets[:-1][is_moved]] = product[is_moved]
    is_local = np.repeat(~is_moved, counts)
    is_local_entry = np.repeat(~is_moved, np.diff(matrix.indptr))
    values[is_local] = matrix.data[is_local_entry]
    index[is_local] = number[matrix.indices[is_local_entry]]
    return type(matrix)((values, index, offsets), shape=(matrix.shape[0], columns))
