"""The weights of a remapping: entries of a sparse matrix, spread over the ranks.

A row is a point of the target, a column a point of the source, both as flat indices of
the global arrays. Entries need not be on the rank that needs them, so that users can
pass all entries on a single rank, or as many ranks as like may read a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any, TypeAlias

import numpy as np

from .files import read_part

#: rows, columns and values; or a scipy sparse matrix; or the path of a netCDF file
Weights: TypeAlias = Any


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Entries of the matrix, as arrays of int64, int64 and float64."""

    row: np.ndarray
    column: np.ndarray
    value: np.ndarray

    def __len__(self) -> int:
        return len(self.row)

    def packed(self) -> np.ndarray:
        """The entries as integers, for a message; the bits of values stay."""
        return np.concatenate((self.row, self.column, self.value.view(np.int64)))

    def take(self, places: np.ndarray) -> Entries:
        """The entries at certain places."""
        return Entries(self.row[places], self.column[places], self.value[places])


def unpacked(messages: list[np.ndarray]) -> Entries:
    """The entries of messages from `packed`."""
    parts = [x.reshape(3, -1) for x in messages] or [np.empty((3, 0), np.int64)]
    row, column, value = (np.concatenate([x[k] for x in parts]) for k in range(3))
    return Entries(row, column, value.view(np.float64))


def path_of(weights: Weights) -> str:
    """The path of a file of weights; empty for weights in memory."""
    return str(weights) if isinstance(weights, str | PathLike) else ""


def read(weights: Weights, shape: tuple[int, int], part: int, parts: int) -> Entries:
    """The checked entries of a rank, or a part of a file.

    The shape of the matrix is the number of points of the target and of the source.
    """
    if weights is None:
        return unpacked([])
    if path_of(weights):
        entries = Entries(*read_part(path_of(weights), shape, part, parts))
    elif hasattr(weights, "tocoo"):
        entries = _of_matrix(weights, shape)
    else:
        entries = _of_arrays(weights)
    _check(entries, shape)
    return entries


def _of_matrix(matrix: Any, shape: tuple[int, int]) -> Entries:
    """The entries of a scipy matrix."""
    if matrix.shape != shape:
        raise ValueError(
            f"the weights are a matrix of {matrix.shape[0]} × {matrix.shape[1]}, but "
            f"the target has {shape[0]} points and the source {shape[1]}"
        )
    coo = matrix.tocoo(copy=True)
    coo.sum_duplicates()  # as scipy means them
    return _as_entries(coo.row, coo.col, coo.data)


def _of_arrays(weights: Any) -> Entries:
    """The entries of three arrays."""
    arrays = (
        [np.asarray(x) for x in weights] if isinstance(weights, list | tuple) else []
    )
    if len(arrays) != 3 or len({x.shape for x in arrays}) != 1 or arrays[0].ndim != 1:
        raise TypeError(
            "weights must be rows, columns and values, in three arrays of one length, "
            "a scipy sparse matrix or the path of a file, not "
            f"{_weights_in_words(weights, arrays)}"
        )
    for name, x in (("rows", arrays[0]), ("columns", arrays[1])):
        if len(x) and x.dtype.kind not in "iu":
            raise TypeError(f"the {name} of weights must be integers, not {x.dtype}")
    return _as_entries(*arrays)


def _weights_in_words(weights: Any, arrays: list[np.ndarray]) -> str:
    """The shapes of a user's weights, for an error message."""
    if not arrays:
        return type(weights).__name__
    return f"{len(arrays)} of shapes {', '.join(str(x.shape) for x in arrays)}"


def _as_entries(row: Any, column: Any, value: Any) -> Entries:
    """The entries converted to the types of `Entries`, without needless copies."""
    if value.dtype.kind not in "fiub":
        raise TypeError(f"weights must be real numbers, not {value.dtype}")
    return Entries(
        row.astype(np.int64, copy=False),
        column.astype(np.int64, copy=False),
        np.ascontiguousarray(value, np.float64),
    )


def _check(entries: Entries, shape: tuple[int, int]) -> None:
    """Refuse indices outside of the grids, and values that are not finite."""
    sides = (
        ("row", entries.row, shape[0], "target"),
        (
            "column",
            entries.column,
            shape[1],
            "source",
        ),
    )
    for name, index, n, grid in sides:
        wrong = np.flatnonzero((index < 0) | (index >= n))
        if len(wrong):
            raise ValueError(
                f"entry {wrong[0]} of the weights has {name} {index[wrong[0]]}, but "
                f"the {grid} has points 0 to {n - 1}"
            )
    wrong = np.flatnonzero(~np.isfinite(entries.value))
    if len(wrong):
        k = wrong[0]
        raise ValueError(
            f"the weight of row {entries.row[k]}, column {entries.column[k]} is "
            f"{entries.value[k]}"
        )


def ordered(entries: Entries, columns: int) -> Entries:
    """The entries by ascending rows, and by ascending columns in a row.

    A repeated entry is refused. `columns` is the number of points of the source.
    """
    if not len(entries):
        return entries
    if int(entries.row.max()) < (1 << 62) // max(columns, 1):
        key = entries.row * columns + entries.column
        if not (key[1:] > key[:-1]).all():
            order = np.argsort(key, kind="stable")
            entries, key = entries.take(order), key[order]
        repeated = np.flatnonzero(key[1:] == key[:-1])
    else:
        entries = entries.take(np.lexsort((entries.column, entries.row)))
        is_repeated = (entries.row[1:] == entries.row[:-1]) & (
            entries.column[1:] == entries.column[:-1]
        )
        repeated = np.flatnonzero(is_repeated)
    if len(repeated):
        k = repeated[0]
        raise ValueError(
            f"the entry of row {entries.row[k]}, column {entries.column[k]} was given "
            "twice: give each on one rank, once"
        )
    return entries
