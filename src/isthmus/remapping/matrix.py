"""The rows of the matrix that one rank has, and the pieces in which it multiplies them.

A sum of rounded numbers depends on its order. So a row is always multiplied whole, by
one rank, its columns in ascending global order: that is what scipy's product of the
whole matrix does, so each value has the same bits, on however many ranks the two grids
lie and in whichever order messages come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..redistribution.runs import Runs, sorted_runs
from .weights import Entries

#: entries that are multiplied at once: about a third of a millisecond, in which MPI
#: moves no message
PIECE_ENTRIES = 1 << 18
#: entries of a run of rows, on average, from which on each run is a piece by itself,
#: without a copy of the entries: a product takes ten microseconds to begin
LEAST_RUN_ENTRIES = 1 << 14


def rows_of(
    entries: Entries, places: np.ndarray, points: int, columns: int
) -> tuple[Any, np.ndarray]:
    """A rank's rows as a scipy matrix, a row for each of its points, and the global
    columns that it needs, ascending, which are the columns of the matrix.

    The entries are those of the rank's points, ascending in a row; `places` says to
    which point each belongs. The source has so many columns.
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
    """The columns that are there, ascending, and for each its number among them."""
    if not len(column):
        return column, column
    low, high = int(column.min()), int(column.max()) + 1
    if high - low > 4 * len(column):  # a table of all of them would be mostly empty
        return np.unique(column, return_inverse=True)
    is_there = np.zeros(high - low, bool)
    is_there[column - low] = True
    number = np.cumsum(is_there) - 1
    return np.flatnonzero(is_there) + low, number[column - low]


def repeated(matrix: Any, first: np.ndarray, again: np.ndarray) -> Any:
    """The matrix with rows that are there again, of points that a rank has twice."""
    if not len(again):
        return matrix
    which = np.arange(matrix.shape[0])
    which[again] = first
    return matrix[which]


def row_sums(matrix: Any) -> np.ndarray:
    """The sum of the weights of each row."""
    return np.asarray(matrix @ np.ones(matrix.shape[1]))


def divided(matrix: Any, divisors: np.ndarray) -> Any:
    """The matrix with each row divided by a number."""
    values = matrix.data / np.repeat(divisors, np.diff(matrix.indptr))
    return type(matrix)((values, matrix.indices, matrix.indptr), shape=matrix.shape)


def without_columns(matrix: Any, is_left_out: np.ndarray) -> Any:
    """The matrix without the entries of some columns, of the same shape."""
    keep = ~is_left_out[matrix.indices]
    before = np.concatenate(([0], np.cumsum(keep)))
    parts = matrix.data[keep], matrix.indices[keep], before[matrix.indptr]
    return type(matrix)(parts, shape=matrix.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Rows that are multiplied at once: their runs, and the matrix of them."""

    runs: Runs
    matrix: Any


def pieces(matrix: Any, arrival: np.ndarray, arrivals: int) -> list[list[Piece]]:
    """The rows that can be multiplied after each of so many arrivals; before them, as
    the first of the list, the rows without weights. `arrival` says with which of them
    each column comes."""
    last = _last_arrivals(matrix, arrival)
    order = np.argsort(last, kind="stable")
    edges = np.searchsorted(last[order], np.arange(-1, arrivals + 1))
    groups = (order[a:b] for a, b in pairwise(edges))
    return [[*_pieces(matrix, rows)] for rows in groups]


def _last_arrivals(matrix: Any, arrival: np.ndarray) -> np.ndarray:
    """For each row the arrival of the last of its columns; -1 where it has none."""
    offsets = matrix.indptr
    last = np.full(matrix.shape[0], -1, np.int64)
    filled = np.flatnonzero(np.diff(offsets))
    if len(filled):
        each = arrival[matrix.indices]
        last[filled] = np.maximum.reduceat(each, offsets[:-1][filled])
    return last


def _pieces(matrix: Any, rows: np.ndarray) -> Sequence[Piece]:
    """Rows, ascending, in pieces of about as many entries."""
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
    """Ranges of rows of about so many entries."""
    n = len(offsets) - 1
    marks = np.arange(PIECE_ENTRIES, int(offsets[-1] - offsets[0]), PIECE_ENTRIES)
    inner = np.searchsorted(offsets, offsets[0] + marks).tolist()
    edges = sorted({0, n, *inner})
    return [*pairwise(edges)]


def _view(matrix: Any, low: int, high: int) -> Any:
    """Some rows that follow each other, without a copy of their entries."""
    offsets = matrix.indptr
    a, b = offsets[low], offsets[high]
    parts = matrix.data[a:b], matrix.indices[a:b], offsets[low : high + 1] - a
    return type(matrix)(parts, shape=(high - low, matrix.shape[1]), copy=False)


def multiply(matrix: Any, columns: np.ndarray, out: np.ndarray) -> None:
    """out := matrix · columns, converted to its type."""
    np.copyto(out, matrix @ columns, casting="same_kind")


def multiply_present(
    matrix: Any, sums: np.ndarray, columns: np.ndarray, out: np.ndarray
) -> None:
    """out := matrix · columns, of which those that are NaN are left out: others have
    their weights. `sums` are those of the rows, which the sum of what is there must
    come up to; a row of which nothing is there is NaN."""
    product = matrix @ columns
    wanting = np.flatnonzero(np.isnan(product))
    if len(wanting):
        part = matrix[wanting]
        values = columns[part.indices]
        is_there = ~np.isnan(values)
        parts = part.data, np.arange(len(values)), part.indptr
        each = type(part)(parts, shape=(len(wanting), len(values)))
        weights = each @ is_there.astype(np.float64)
        total = each @ np.where(is_there, values, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            product[wanting] = total * (sums[wanting] / weights)
    np.copyto(out, product, casting="same_kind")
