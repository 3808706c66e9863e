"""The rows of the matrix that one rank has, and the pieces in which they are
multiplied.

A sum of rounded numbers depends on its order. So one rank multiplies a whole row, its
columns in ascending global order. scipy's product of the whole matrix has that order
too, so each value has the same bits, on however many ranks the two grids lie and in
whichever order messages come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..redistribution.runs import Runs, sorted_runs
from .weights import Entries

#: entries that are multiplied at once: about a third of a millisecond, during which
#: MPI moves no message
PIECE_ENTRIES = 1 << 18
#: average entries of a run of rows from which on each run is a piece of its own,
#: without a copy of the entries: a product takes ten microseconds to begin
LEAST_RUN_ENTRIES = 1 << 14


def rows_of(
    entries: Entries, places: np.ndarray, points: int, columns: int
) -> tuple[Any, np.ndarray]:
    """A rank's rows as a scipy matrix, a row for each of its points, and the ascending
    global columns that the rank needs, which are the columns of the matrix.

    The entries are those of the rank's points, ascending in a row; `places` has the
    point of each entry. `columns` is the number of points of the source.
    """
    from scipy.sparse import csr_matrix

    if not (places[1:] >= places[:-1]).all():
        order = np.argsort(places, kind="stable")
        entries, places = entries.take(order), places[order]
    needed, index = _numbered(entries.column, columns)
    offsets = np.zeros(points + 1, np.int64)
    np.cumsum(np.bincount(places, minlength=points), out=offsets[1:])
    parts = entries.value, index, offsets
    return csr_matrix(parts, shape=(points, len(needed))), needed


def _numbered(column: np.ndarray, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct columns, ascending, and the number of each column among them."""
    if not len(column):
        return column, column
    low, high = int(column.min()), int(column.max()) + 1
    if high - low > 4 * len(column):  # a table of the whole range is mostly empty
        return np.unique(column, return_inverse=True)
    is_present = np.zeros(high - low, bool)
    is_present[column - low] = True
    number = np.cumsum(is_present) - 1
    return np.flatnonzero(is_present) + low, number[column - low]


def repeated(matrix: Any, first: np.ndarray, again: np.ndarray) -> Any:
    """The matrix with rows repeated, of points that a rank has twice: row `first` at
    `again`."""
    if not len(again):
        return matrix
    row_numbers = np.arange(matrix.shape[0])
    row_numbers[again] = first
    return matrix[row_numbers]


def row_sums(matrix: Any) -> np.ndarray:
    """The sum of the weights of each row."""
    return np.asarray(matrix @ np.ones(matrix.shape[1]))


def divided(matrix: Any, divisors: np.ndarray) -> Any:
    """The matrix with each row divided by its divisor."""
    values = matrix.data / np.repeat(divisors, np.diff(matrix.indptr))
    return type(matrix)((values, matrix.indices, matrix.indptr), shape=matrix.shape)


def without_columns(matrix: Any, is_left_out: np.ndarray) -> Any:
    """The matrix without the entries of columns that are left out, of the same
    shape."""
    keep = ~is_left_out[matrix.indices]
    before = np.concatenate(([0], np.cumsum(keep)))
    parts = matrix.data[keep], matrix.indices[keep], before[matrix.indptr]
    return type(matrix)(parts, shape=matrix.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Rows that are multiplied at once: their runs, and their matrix."""

    runs: Runs
    matrix: Any


def pieces(matrix: Any, arrival: np.ndarray, arrivals: int) -> list[list[Piece]]:
    """The rows that can be multiplied after each of `arrivals` arrivals; first in the
    list, the rows without weights. `arrival` has the number of the arrival that brings
    each column."""
    last = _last_arrivals(matrix, arrival)
    order = np.argsort(last, kind="stable")
    edges = np.searchsorted(last[order], np.arange(-1, arrivals + 1))
    groups = (order[a:b] for a, b in pairwise(edges))
    return [[*_pieces(matrix, rows)] for rows in groups]


def _last_arrivals(matrix: Any, arrival: np.ndarray) -> np.ndarray:
    """For each row the arrival of the last of its columns; -1 for a row without
    columns."""
    offsets = matrix.indptr
    last = np.full(matrix.shape[0], -1, np.int64)
    filled = np.flatnonzero(np.diff(offsets))
    if len(filled):
        arrival_of_entry = arrival[matrix.indices]
        last[filled] = np.maximum.reduceat(arrival_of_entry, offsets[:-1][filled])
    return last


def _pieces(matrix: Any, rows: np.ndarray) -> Sequence[Piece]:
    """Ascending rows in pieces of about `PIECE_ENTRIES` entries."""
    if not len(rows):
        return []
    runs = sorted_runs(rows)
    entries = int(np.diff(matrix.indptr)[rows].sum())
    if entries >= LEAST_RUN_ENTRIES * len(runs) or len(runs) == 1:
        ends = zip(runs.start, runs.stop, strict=True)
        parts = [(np.arange(a, b), _view(matrix, a, b)) for a, b in ends]
    else:
        parts = [(rows, matrix[rows])]
    return [
        Piece(sorted_runs(where[low:high]), _view(part, low, high))
        for where, part in parts
        for low, high in _cuts(part.indptr)
    ]


def _cuts(offsets: np.ndarray) -> list[tuple[int, int]]:
    """Ranges of rows of about `PIECE_ENTRIES` entries."""
    n = len(offsets) - 1
    marks = np.arange(PIECE_ENTRIES, int(offsets[-1] - offsets[0]), PIECE_ENTRIES)
    inner = np.searchsorted(offsets, offsets[0] + marks).tolist()
    edges = sorted({0, n, *inner})
    return [*pairwise(edges)]


def _view(matrix: Any, low: int, high: int) -> Any:
    """Consecutive rows, without a copy of their entries."""
    offsets = matrix.indptr
    a, b = offsets[low], offsets[high]
    parts = matrix.data[a:b], matrix.indices[a:b], offsets[low : high + 1] - a
    return type(matrix)(parts, shape=(high - low, matrix.shape[1]), copy=False)


def multiply(matrix: Any, columns: np.ndarray, out: np.ndarray) -> None:
    """out := matrix · columns, converted to the type of `out`."""
    np.copyto(out, matrix @ columns, casting="same_kind")


def multiply_present(
    matrix: Any, sums: np.ndarray, columns: np.ndarray, out: np.ndarray
) -> None:
    """out := matrix · columns without the columns that are NaN, scaled up to the full
    weights.

    `sums` are the sums of the rows, to which the sum of the present weights is scaled.
    A row without a present column is NaN.
    """
    product = matrix @ columns
    incomplete = np.flatnonzero(np.isnan(product))
    if len(incomplete):
        part = matrix[incomplete]
        values = columns[part.indices]
        is_present = ~np.isnan(values)
        parts = part.data, np.arange(len(values)), part.indptr
        entries = type(part)(parts, shape=(len(incomplete), len(values)))
        weights = entries @ is_present.astype(np.float64)
        total = entries @ np.where(is_present, values, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            product[incomplete] = total * (sums[incomplete] / weights)
    np.copyto(out, product, casting="same_kind")
