"""The sizes that each collective is verified on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import lcm
from typing import Any

import numpy as np

Sizes = dict[str, Any]
Counts = Callable[[np.random.Generator, int], list[int]]


def _equal(rng: np.random.Generator, n: int) -> list[int]:
    return [4] * n


def _mixed(rng: np.random.Generator, n: int) -> list[int]:
    """Small counts, about a third of them zero."""
    counts: list[int] = np.maximum(rng.integers(-3, 7, n), 0).tolist()
    return counts


def _giant(rng: np.random.Generator, n: int) -> list[int]:
    """One count that outweighs all others."""
    counts = _mixed(rng, n)
    counts[int(rng.integers(n))] = 60
    return counts


def _empty(rng: np.random.Generator, n: int) -> list[int]:
    return [0] * n


KINDS: tuple[Counts, ...] = (_mixed, _equal, _giant, _empty)
PAIRS: tuple[tuple[Counts, Counts], ...] = (
    (_mixed, _mixed),
    (_equal, _giant),
    (_giant, _mixed),
    (_mixed, _empty),
    (_empty, _empty),
)
EVEN = ((4, 4), (5, 0))


# Of the sizes for one p and q the first is the one that named stages are tried on.


def _inter_allgather(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for p in range(1, most + 1):
        for q in range(1, most + 1):
            yield [{"p": p, "q": q, "ka": ka, "kb": kb} for ka, kb in EVEN]


def _inter_allgatherv(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for p in range(1, most + 1):
        for q in range(1, most + 1):
            yield [{"a": a(rng, p), "b": b(rng, q)} for a, b in PAIRS]


def _counts(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for p in range(1, most + 1):
        yield [{"counts": kind(rng, p)} for kind in KINDS]


def _rooted(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for p in range(1, most + 1):
        roots = sorted({0, p // 2, p - 1})
        yield [{"p": p, "m": m, "root": root} for root in roots for m in (7, 24, 0)]


def _inter_whole(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for q in range(1, most + 1):
        yield [{"q": q, "m": m} for m in (24, 7, 0)]


def _inter_blocks(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for q in range(1, most + 1):
        yield [{"q": q, "k": k} for k in (4, 1, 0)]


def _groups(most: int) -> Iterator[dict[str, int]]:
    for p in range(1, most + 1):
        for q in range(1, most + 1):
            yield {"p": p, "q": q}


def _inter_allreduce(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for groups in _groups(most):
        yield [{**groups, "m": m} for m in (24, 7, 0)]


def _cut(rng: np.random.Generator, total: int, n: int) -> list[int]:
    """Counts of that total, one of them with half of it."""
    counts = np.bincount(rng.integers(n, size=total // 2), minlength=n)
    counts[rng.integers(n)] += total - total // 2
    found: list[int] = counts.tolist()
    return found


def _inter_reduce_scatter(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for groups in _groups(most):
        p, q = groups.values()
        lists = [kind(rng, p) for kind in KINDS]
        yield [{"a": a, "b": _cut(rng, sum(a), q)} for a in lists]


def _inter_common(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for groups in _groups(most):
        p, q = groups.values()
        least = lcm(p, q)
        yield [{**groups, "ka": n // p, "kb": n // q} for n in (least, 5 * least, 0)]


def _inter_alltoallv(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for groups in _groups(most):
        p, q = groups.values()
        yield [
            {
                "ab": [a(rng, q) for _ in range(p)],
                "ba": [b(rng, p) for _ in range(q)],
            }
            for a, b in PAIRS
        ]


def _allreduce(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for p in range(1, most + 1):
        yield [{"p": p, "m": m} for m in (24, 7, 0)]


def _rooted_counts(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for p in range(1, most + 1):
        roots = sorted({0, p // 2, p - 1})
        lists = [kind(rng, p) for kind in KINDS]
        yield [{"counts": counts, "root": root} for counts in lists for root in roots]


def _alltoall(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for p in range(1, most + 1):
        yield [{"p": p, "k": k} for k in (4, 1, 0)]


def _alltoallv(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for p in range(1, most + 1):
        yield [{"table": [kind(rng, p) for _ in range(p)]} for kind in KINDS]


def _barrier(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    yield from ([{"p": p}] for p in range(1, most + 1))


def _inter_barrier(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    yield from ([groups] for groups in _groups(most))


def _several(most: int) -> Iterator[tuple[int, ...]]:
    """The sizes of three groups, and of fewer and more."""
    few = range(1, min(most, 3) + 1)
    yield from ((n,) for n in few)
    yield from product(few, few)
    yield from product(few, few, few)
    yield from ((most, 1, 2), (2, most, most), (1, 1, 1, 1), (2, 1, 3, 1, 2))


def _multi_allgatherv(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for groups in _several(most):
        found = [[a(rng, n) for n in groups] for a in KINDS]
        mixed = [KINDS[rng.integers(len(KINDS))](rng, n) for n in groups]
        yield [{"groups": counts} for counts in (*found, mixed)]


def _multi_alltoallv(most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
    for groups in _several(most):
        n, group = sum(groups), np.repeat(np.arange(len(groups)), groups)
        found = []
        for kind in KINDS:
            table = np.array([kind(rng, n) for _ in range(n)])
            table[group[:, None] == group] = 0
            found.append({"sizes": list(groups), "table": table.tolist()})
        yield found


SIZES: dict[str, Callable[[int, np.random.Generator], Iterator[list[Sizes]]]] = {
    "inter_allgather": _inter_allgather,
    "inter_allgatherv": _inter_allgatherv,
    "allgatherv": _counts,
    "bcast": _rooted,
    "reduce": _rooted,
    "inter_bcast": _inter_whole,
    "inter_reduce": _inter_whole,
    "inter_gather": _inter_blocks,
    "inter_gatherv": _counts,
    "inter_scatter": _inter_blocks,
    "inter_scatterv": _counts,
    "inter_allreduce": _inter_allreduce,
    "inter_reduce_scatter": _inter_reduce_scatter,
    "inter_reduce_scatter_block": _inter_common,
    "inter_alltoall": _inter_allgather,
    "inter_alltoallv": _inter_alltoallv,
    "inter_barrier": _inter_barrier,
    "reduce_scatter": _counts,
    "allreduce": _allreduce,
    "gatherv": _rooted_counts,
    "scatterv": _rooted_counts,
    "alltoall": _alltoall,
    "alltoallv": _alltoallv,
    "barrier": _barrier,
    "multi_allgatherv": _multi_allgatherv,
    "multi_alltoallv": _multi_alltoallv,
}

#: sizes that say how many ranks a group has
_RANKS = ("p", "q", "a", "b", "ab", "ba", "counts", "table")


def groups(collective: str, sizes: Sizes) -> tuple[int, ...]:
    """The ranks of each group; of a root and the leaves of another, one and those."""
    if collective.startswith("multi_"):
        return tuple(sizes.get("sizes") or map(len, sizes["groups"]))
    found = (sizes[name] for name in _RANKS if name in sizes)
    ranks = tuple(n if isinstance(n, int) else len(n) for n in found)
    rooted = collective.startswith("inter_") and len(ranks) == 1
    return (1, *ranks) if rooted else ranks
