"""Named redistributions of a square matrix, for measurements and pictures."""

from __future__ import annotations

from math import isqrt

from ..spelling import unknown
from .layouts import Layout, Replicate, Shard


def near_square(n: int) -> tuple[int, int]:
    """The grid of n ranks closest to a square, with no fewer rows than columns."""
    columns = next(k for k in range(isqrt(n), 0, -1) if n % k == 0)
    return n // columns, columns


def layouts(kind: str, elements: int, p: int, q: int) -> tuple[Layout, Layout]:
    """The layouts of a square matrix of about `elements` elements on p and q ranks."""
    n = isqrt(elements)
    shape = n, n
    rows = Layout.blocks(shape, (p, 1))
    if kind == "transposed":
        return rows, Layout.blocks(shape, (1, q))
    if kind == "blocks":
        grid = near_square(q)
        return Layout.blocks(shape, near_square(p)), Layout.blocks(shape, grid[::-1])
    if kind == "cyclic":
        block = max(n // 64, 1), max(n // 64, 1)
        return rows, Layout.cyclic(shape, near_square(q), block)
    if kind == "replicated":
        if q % 2:
            raise ValueError(f"2 replicas of {q} ranks: must be an even number")
        mesh = q // 2, 2
        return rows, Layout.sharded(shape, mesh, [Shard(1), Replicate()])
    raise ValueError(unknown("redistribution", kind, REDISTRIBUTION_KINDS))


REDISTRIBUTION_KINDS = ("transposed", "blocks", "cyclic", "replicated")
