"""The fields that an ocean and an atmosphere of a coupled model exchange.

All values are sums and products of small numbers, so that every processor gets equal
bytes, and received fields can be compared byte by byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

import numpy as np

from .job import BenchCase


def field(rows: int, side: int) -> np.ndarray:
    """Sea-surface temperature (side 0) or wind speed (side 1) on rows × 2 rows."""
    latitude = (np.arange(rows) * 2.0 - rows)[:, None] / rows
    i, j = np.arange(rows)[:, None], np.arange(2 * rows)
    waves = np.abs((3 * j + (5, -7)[side] * i) % 60 - 30) * 0.0625
    means = (27.0 - 28.0 * latitude**2, 4.0 + 8.0 * latitude**2)
    return np.ravel(means[side] + waves)


def rows_of(sizes: tuple[int, ...]) -> int:
    """The number of rows of a grid with strips of the given bytes."""
    return isqrt(sum(sizes) // 16)


def content(sizes: tuple[int, ...], side: int) -> np.ndarray:
    """The whole field of a group with strips of the given bytes."""
    return field(rows_of(sizes), side)


def _strips(rows: int, weights: Sequence[float]) -> tuple[int, ...]:
    """The bytes of each rank's strip of whole rows, by its weight."""
    edges = np.round(np.cumsum((0.0, *weights)) / sum(weights) * rows).astype(int)
    return tuple((np.diff(edges) * rows * 16).tolist())


def even(rows: int, groups: tuple[int, int], label: str) -> BenchCase:
    """A case in which all ranks of a group own equally many rows.

    The grid has about `rows` rows: a multiple of the ranks.
    """
    a, b = (_strips(max(round(rows / n), 1) * n, (1,) * n) for n in groups)
    return BenchCase(label, "allgather", a, b)


def uneven(rows: int, groups: tuple[int, int], label: str) -> BenchCase:
    """A case in which ranks own up to four times as many rows as the least.

    As in models that give more rows to ranks with much land in their strips.
    """
    a, b = (_strips(rows, [1 + i * 3 % 4 for i in range(n)]) for n in groups)
    return BenchCase(label, "allgatherv", a, b)
