"""Python objects of all kinds to send, and their comparison."""

from __future__ import annotations

import numpy as np


def python_object(rank):
    """An object that differs by rank: small, empty, nested, or with large arrays."""
    return [
        rank,
        None,
        {"name": "x" * rank, "field": np.full((300, 200), rank, "f8")},
        [
            np.arange(rank * 40_000, dtype="i4"),
            "text",
            np.asfortranarray(np.eye(7) * rank),
        ],
        (np.full(300_001, rank, "u1"), np.full(70_000, rank, "f4")[::2]),
        b"\0" * (rank * 100_000),
    ][rank % 6]


def equal(x, y):
    """Whether two objects have equal types, values and arrays, at every depth."""
    if isinstance(x, np.ndarray):
        return x.dtype == y.dtype and x.shape == y.shape and (x == y).all()
    if isinstance(x, dict):
        return x.keys() == y.keys() and all(equal(x[k], y[k]) for k in x)
    if isinstance(x, list | tuple):
        return len(x) == len(y) and all(map(equal, x, y))
    return type(x) is type(y) and x == y
