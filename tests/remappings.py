"""Random remappings of all kinds, and the results of scipy in a single process."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from isthmus import Layout
from redistributions import layouts, shape

#: the types of weights and values, the usual one twice as often
TYPES = ("f8", "f8", "f4", "c16")


@dataclass(frozen=True)
class Case:
    """A remapping between groups of p and q ranks, or inside a group of p."""

    matrix: Any
    sources: list[Layout]
    targets: list[Layout]
    values: np.ndarray
    options: dict[str, Any]
    #: whether each point of the source is missing
    mask: np.ndarray
    #: the extents of the levels of each field
    levels: list[tuple[int, ...]]
    target_type: str


def case(seed: int, p: int, q: int) -> Case:
    """A remapping with random weights between random layouts of two random grids."""
    rng, numbers = Random(seed), np.random.default_rng(seed)
    here, there = shape(rng), shape(rng)
    n, m = prod(here), prod(there)
    matrix = weights(rng, numbers, m, n)
    kind = rng.choice(TYPES)
    values = numbers.standard_normal((3, n))
    has_mask = rng.random() < 0.3
    options: dict[str, Any] = {"dtype": kind}
    options["norm"] = rng.choice((None, None, "fracarea"))
    options["missing"] = rng.choice((None, "renormalise"))
    options["unmapped"] = rng.choice((0.0, 0.0, np.nan, None, -1.0))
    if rng.random() < 0.3:
        values[numbers.random(values.shape) < 0.2] = np.nan
    mask = (numbers.random(n) < 0.3) & has_mask
    levels = rng.choice([[()], [()], [(), ()], [(2,)], [(1,), (2,)]])
    return Case(
        matrix,
        layouts(rng, here, p, target=False),
        layouts(rng, there, q, target=True),
        values.astype("c16") * (1 + 2j) if kind == "c16" else values,
        options,
        mask,
        levels,
        "c16" if kind == "c16" else rng.choice(("f8", "f8", "f4")),
    )


def weights(rng: Random, numbers: np.random.Generator, m: int, n: int) -> Any:
    """A random sparse matrix, with empty and full rows, negative and zero weights."""
    density = rng.choice((0.0, 0.02, 0.2, 0.9))
    dense = numbers.random((m, n)) - 0.2
    dense[numbers.random((m, n)) >= density] = 0
    dense[numbers.random(m) < 0.2] = 0
    matrix = csr_matrix(dense)
    matrix.data[numbers.random(matrix.nnz) < 0.05] = 0
    return matrix


def dealt(matrix: Any, seed: int, ranks: int) -> list[tuple[np.ndarray, ...] | None]:
    """The entries dealt to ranks at random, in random order; None for no entries."""
    numbers = np.random.default_rng(seed)
    entries = matrix.tocoo()
    order = numbers.permutation(entries.nnz)
    parts = entries.row[order], entries.col[order], entries.data[order]
    owner = numbers.integers(0, numbers.integers(1, ranks + 1), entries.nnz)
    each = [tuple(x[owner == r] for x in parts) for r in range(ranks)]
    return [x if r == 0 or len(x[0]) else None for r, x in enumerate(each)]


def product(c: Case, values: np.ndarray) -> np.ndarray:
    """The values of a field at all target points, by scipy; NaN where values stay."""
    matrix, options = c.matrix.copy(), c.options
    matrix.data = np.where(c.mask[matrix.indices], 0, matrix.data)
    is_entry = csr_matrix(
        (~c.mask[matrix.indices], matrix.indices, matrix.indptr), c.matrix.shape
    ).astype(int)
    x = values.astype(options["dtype"])
    ones = np.ones(matrix.shape[1])
    if options["norm"] == "fracarea":
        sums = matrix @ ones
        counts = np.diff(matrix.indptr)
        matrix.data = matrix.data / np.repeat(np.where(sums == 0, 1, sums), counts)
    y = matrix @ np.where(c.mask, 0, x)
    if options["missing"] is not None:
        is_nan = np.isnan(x) & ~c.mask
        wanting = is_entry @ is_nan.astype(int) > 0
        there = is_entry @ (~is_nan).astype(int) > 0
        present = np.where(is_nan | c.mask, 0, x)
        with np.errstate(all="ignore"):
            factor = (matrix @ ones) / (matrix @ (~is_nan).astype(float))
            renormalised = np.where(there, (matrix @ present) * factor, np.nan)
        y = np.where(wanting, renormalised, y)
    return y


def has_weights(c: Case) -> np.ndarray:
    """Whether each point of the target has any weights."""
    counts = csr_matrix(
        ((~c.mask[c.matrix.indices]).astype(int), c.matrix.indices, c.matrix.indptr),
        c.matrix.shape,
    )
    has_entry: np.ndarray = np.asarray(counts.sum(1)).ravel() > 0
    return has_entry


def expected(c: Case, values: np.ndarray, before: np.ndarray) -> np.ndarray:
    """The whole target after a call, where `before` fills points without weights."""
    unmapped = c.options["unmapped"]
    otherwise = before if unmapped is None else np.full_like(before, unmapped)
    with np.errstate(over="ignore"):
        y = product(c, values).astype(c.target_type)
    target: np.ndarray = np.where(has_weights(c), y, otherwise)
    return target


def same_bits(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether two arrays have equal bits, except bits of NaN."""
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    a, b = (np.ascontiguousarray(z).reshape(-1) for z in (x, y))
    shape = len(a), a.dtype.itemsize
    bytes_of = (z.view(np.uint8).reshape(shape) for z in (a, b))
    same = np.equal(*bytes_of).all(1)
    return bool((same | (np.isnan(a) & np.isnan(b))).all())
