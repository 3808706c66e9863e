"""Which rows are multiplied where their columns lie.

From a fine grid to a coarse one a row has many columns, and its one value is less than
these. Where all columns of a row lie on one rank, that rank can multiply it, with the
same order of its columns and so the same bits. Rows whose columns lie on several ranks
are always multiplied where they are wanted, as a sum of partial sums has other bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..redistribution.runs import sorted_runs

#: so many times as many columns as rows must be saved: the products of a source are not
#: made while its messages are under way, those of a target are
LEAST_SAVING = 2


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """What a target wants of one source: rows to multiply, and columns as they are."""

    #: the rows, with the numbers of columns in the grid of the source
    matrix: Any
    #: the sums of their weights that a renormalisation must come up to
    sums: np.ndarray
    #: the columns as they are, ascending
    columns: np.ndarray

    def packed(self) -> np.ndarray:
        """The order as integers, to be sent."""
        m = self.matrix
        counts = np.array([m.shape[0], m.nnz, len(self.columns)])
        values = m.data.view(np.int64), self.sums.view(np.int64)
        offsets, columns = m.indptr.astype(np.int64), m.indices.astype(np.int64)
        return np.concatenate((counts, offsets, columns, *values, self.columns))


def unpacked(numbers: np.ndarray, columns: int) -> Order:
    """The order that came in a message, from a grid of so many points."""
    from scipy.sparse import csr_matrix

    rows, entries, _ = numbers[:3].tolist()
    ends = np.cumsum([3, rows + 1, entries, entries, rows]).tolist()
    offsets, index, values, sums, rest = np.split(numbers, ends)[1:]
    parts = values.view(np.float64), index, offsets
    matrix = csr_matrix(parts, shape=(rows, columns))
    return Order(matrix, sums.view(np.float64), rest)


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """The work of a target, and what it leaves to sources."""

    #: what it wants of each rank that multiplies for it
    orders: dict[int, Order]
    #: its rows on what comes, the columns as they are first and then products: a row
    #: that is multiplied elsewhere is one product, with weight 1
    matrix: Any
    sums: np.ndarray
    #: by the ranks that send something, the places where it belongs, in runs
    places: dict[int, tuple[np.ndarray, np.ndarray]]


def split(
    matrix: Any,
    sums: np.ndarray,
    needed: np.ndarray,
    owner: np.ndarray,
    me: int,
    columns: int,
) -> Division | None:
    """What a rank of the target leaves to sources; None where that is nothing.

    `owner` says who sends each of the columns that it needs; the grid of the source has
    so many points.
    """
    from scipy.sparse import csr_matrix

    at = _owners(matrix, owner)
    is_raw = np.zeros(len(needed), bool)
    is_raw[matrix[np.flatnonzero(at < 0)].indices] = True
    movable = np.flatnonzero(~is_raw)
    saved = np.bincount(owner[movable], minlength=1)
    wanted = np.bincount(at[at >= 0], minlength=len(saved))[: len(saved)]
    moves = (wanted * LEAST_SAVING <= saved) & (saved > 0)
    if me < len(moves):
        moves[me] = False
    if not moves.any():
        return None
    is_moved = (at >= 0) & moves[np.clip(at, 0, len(moves) - 1)] & (at < len(moves))
    goes = np.zeros(len(needed), bool)
    goes[movable] = moves[owner[movable]]

    travelling = np.flatnonzero(~goes)
    number = np.cumsum(~goes) - 1
    orders: dict[int, Order] = {}
    places: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    product = np.zeros(matrix.shape[0], np.int64)
    end = len(travelling)
    for peer in np.unique(owner).tolist():
        raw = travelling[owner[travelling] == peer]
        runs = sorted_runs(number[raw])
        start, size = runs.start, runs.size
        if peer < len(moves) and moves[peer]:
            rows = np.flatnonzero(is_moved & (at == peer))
            part = matrix[rows]
            ends = part.data, needed[part.indices], part.indptr
            whole = csr_matrix(ends, shape=(len(rows), columns))
            orders[peer] = Order(whole, sums[rows], needed[raw])
            product[rows] = end + np.arange(len(rows))
            start = np.concatenate(([end], start))
            size = np.concatenate(([len(rows)], size))
            end += len(rows)
        places[peer] = start, size
    return Division(
        orders,
        _here(matrix, is_moved, number, product, end),
        np.where(is_moved, 1.0, sums),
        places,
    )


def _owners(matrix: Any, owner: np.ndarray) -> np.ndarray:
    """For each row who has all of its columns; -1 where several do, or it has none."""
    owners = np.full(matrix.shape[0], -1, np.int64)
    filled = np.flatnonzero(np.diff(matrix.indptr))
    if len(filled):
        each, first = owner[matrix.indices], matrix.indptr[:-1][filled]
        low, high = (f.reduceat(each, first) for f in (np.minimum, np.maximum))
        owners[filled] = np.where(low == high, low, -1)
    return owners


def _here(
    matrix: Any,
    is_moved: np.ndarray,
    number: np.ndarray,
    product: np.ndarray,
    columns: int,
) -> Any:
    """The rows on what comes."""
    counts = np.where(is_moved, 1, np.diff(matrix.indptr))
    offsets = np.concatenate(([0], np.cumsum(counts)))
    values, index = np.ones(offsets[-1]), np.empty(offsets[-1], np.int64)
    index[offsets[:-1][is_moved]] = product[is_moved]
    stays = np.repeat(~is_moved, counts)
    from_here = np.repeat(~is_moved, np.diff(matrix.indptr))
    values[stays] = matrix.data[from_here]
    index[stays] = number[matrix.indices[from_here]]
    return type(matrix)((values, index, offsets), shape=(matrix.shape[0], columns))
