"""The rows of the matrix on a rank, multiplied in pieces.

A sum of rounded numbers depends on the order. So a single rank multiplies a whole row,
with the columns in ascending global order, the order of scipy's product of the whole
matrix. Each value has equal bits for any number of ranks and any order of messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..redistribution.runs import Runs, sorted_runs
from .weights import Entries

#: entries of a piece: about a third of a millisecond, in which MPI moves no message
PIECE_ENTRIES = 1 << 18
#: runs of rows with at least so many entries on average are separate pieces, without a
#: copy of the entries; smaller runs are joined, as a product takes 10 µs to begin
LEAST_RUN_ENTRIES = 1 << 14


def rows_of(
    entries: Entries, places: np.ndarray, points: int, columns: int
) -> tuple[Any, np.ndarray]:
    """A rank's rows as a scipy matrix, and the global columns of the matrix.

    The matrix has a row for each point of the rank, and only needed columns, since all
    columns of the source may not fit memory. Entries ascend in a row; `places` has the
    point of each entry, `columns` is the number of points of the source.
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
    if high - low > 4 * len(column):  # a table would be mostly empty
        return np.unique(column, return_inverse=True)
    is_present = np.zeros(high - low, bool)
    is_present[column - low] = True
    number = np.cumsum(is_present) - 1
    return np.flatnonzero(is_present) + low, number[column - low]


def repeated(matrix: Any, first: np.ndarray, again: np.ndarray) -> Any:
    """The matrix with the rows of repeated points: row `first` also at `again`."""
    if not len(again):
        return matrix
    row_numbers = np.arange(matrix.shape[0])
    row_numbers[again] = first
    return matrix[row_numbers]


def row_sums(matrix: Any) -> np.ndarray:
    """The sum of the weights of each row."""
    return np.asarray(matrix @ np.ones(matrix.shape[1]))


def divided(matrix: Any, divisors: np.ndarray) -> Any:
    """The matrix with each row divided by a divisor."""
    values = matrix.data / np.repeat(divisors, np.diff(matrix.indptr))
    return type(matrix)((values, matrix.indices, matrix.indptr), shape=matrix.shape)


def without_columns(matrix: Any, is_left_out: np.ndarray) -> Any:
    """The matrix without the entries of left-out columns, in the old shape."""
    keep = ~is_left_out[matrix.indices]
    before = np.concatenate(([0], np.cumsum(keep)))
    parts = matrix.data[keep], matrix.indices[keep], before[matrix.indptr]
    return type(matrix)(parts, shape=matrix.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Rows multiplied at once, as runs and as a matrix."""

    runs: Runs
    matrix: Any


def pieces(matrix: Any, arrival: np.ndarray, arrivals: int) -> list[list[Piece]]:
    """The pieces to multiply after each arrival, so that products overlap messages.

    `arrival` has the number of the arrival that brings each column. Rows without
    weights are in no piece.
    """
    filled = np.flatnonzero(np.diff(matrix.indptr))
    if not len(filled):
        return [[] for _ in range(arrivals)]
    arrival_of_entry = arrival[matrix.indices]
    last = np.maximum.reduceat(arrival_of_entry, matrix.indptr[:-1][filled])
    order = np.argsort(last, kind="stable")
    edges = np.searchsorted(last[order], np.arange(arrivals + 1))
    groups = (filled[order[a:b]] for a, b in pairwise(edges))
    return [[*_pieces(matrix, rows)] for rows in groups]


def rows_without_weights(matrix: Any) -> Runs:
    """The rows that get the value of unmapped points."""
    return sorted_runs(np.flatnonzero(np.diff(matrix.indptr) == 0))


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
        Piece(sorted_runs(numbers[low:high]), _view(part, low, high))
        for numbers, part in parts
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
    """Consecutive rows, without a copy of the entries."""
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
    """out := matrix · columns without NaN columns, scaled up to the full weights.

    The sum of the present weights is scaled to `sums`, the sums of the rows, because
    missing weights would lower the values. A row without a present column is NaN.
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
