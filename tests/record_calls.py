"""The call of a collective that a record's sizes stand for: arguments of each rank."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from mpi4py import MPI

from isthmus.collectives.collective import (
    BETWEEN,
    BLOCK,
    INSIDE,
    NOTHING,
    VECTOR,
    Collective,
)
from isthmus.collectives.known import unit_of


@dataclass
class Part:
    """What one rank sends and has room for, in elements of each block, and the root."""

    send: list[int]
    recv: list[int]
    root: int | None = None


def part_of(record: Collective, sizes: dict[str, Any], group: int, x: int) -> Part:
    """What rank x of a group passes to a call of these sizes."""
    if record.groups == INSIDE:
        return _inside(record, sizes, x)
    if record.groups == BETWEEN:
        return (
            _rooted(record, sizes, group, x)
            if record.is_rooted
            else _between(record, sizes, group, x)
        )
    if "groups" in sizes:
        others = [k for i, c in enumerate(sizes["groups"]) if i != group for k in c]
        return Part([sizes["groups"][group][x]], others)
    base = list(accumulate(sizes["sizes"], initial=0))
    r, mine = base[group] + x, range(base[group], base[group + 1])
    others = [i for i in range(base[-1]) if i not in mine]
    table = np.array(sizes["table"])
    return Part(table[r, others].tolist(), table[others, r].tolist())


def _inside(record: Collective, sizes: dict[str, Any], x: int) -> Part:
    root = sizes.get("root")
    if "table" in sizes:
        table = np.array(sizes["table"])
        return Part(table[x].tolist(), table[:, x].tolist())
    if "counts" in sizes and record.is_rooted:
        whole, own = list(sizes["counts"]) if x == root else [], [sizes["counts"][x]]
        ends = (own, whole) if record.gives == BLOCK else (whole, own)
        return Part(*ends, root)
    if "counts" in sizes and not record.combines:
        return Part([sizes["counts"][x]], list(sizes["counts"]))
    if "counts" in sizes:
        return Part([sum(sizes["counts"])], [sizes["counts"][x]])
    if "k" in sizes:
        blocks = [sizes["k"]] * sizes["p"]
        return Part(blocks, blocks)
    m = [sizes["m"]]
    if record.is_rooted and not record.combines:
        return Part(m, [], root) if x == root else Part([], m, root)
    return Part(m, m if root in (None, x) else [], root)


def _rooted(record: Collective, sizes: dict[str, Any], group: int, x: int) -> Part:
    """Rank 0 of the first group is the root."""
    root = (MPI.ROOT if x == 0 else MPI.PROC_NULL) if group == 0 else 0
    counts = sizes.get("counts") or [sizes.get("m", sizes.get("k"))] * sizes["q"]
    whole = counts[:1] if record.gives == VECTOR else counts
    own = [] if root == MPI.PROC_NULL else whole if group == 0 else [counts[x]]
    is_up = record.gives == BLOCK or record.combines
    return Part([], own, root) if is_up == (group == 0) else Part(own, [], root)


def _between(record: Collective, sizes: dict[str, Any], group: int, x: int) -> Part:
    if record.gives == NOTHING:
        return Part([], [])
    if "m" in sizes:
        return Part([sizes["m"]], [sizes["m"]])
    if "ab" in sizes:
        tables = np.array(sizes["ab"]), np.array(sizes["ba"])
        out, back = tables[group][x], tables[1 - group][:, x]
        return Part(out.tolist(), back.tolist())
    if "a" in sizes:
        counts = sizes["a"], sizes["b"]
    else:
        counts = [sizes["ka"]] * sizes["p"], [sizes["kb"]] * sizes["q"]
    here, there = counts[group], counts[1 - group]
    if record.gives == VECTOR:
        return Part([sum(here)], [here[x]])
    if record.gives == BLOCK:
        return Part([here[x]], list(there))
    return Part([here[0]] * len(there), list(there))


def arguments(
    record: Collective, op: str, part: Part, send: Any, recv: Any, by: MPI.Op
) -> tuple[Any, ...]:
    """The arguments of a method of ours, of arrays that hold all blocks."""
    is_v = op.endswith("v")
    ends = send, recv
    if record.gives == NOTHING:
        return ()
    if op == "Bcast":
        return send if len(part.send) else recv, part.root
    if op == "Alltoallw":
        ends = _mixed(send, part.send), _mixed(recv, part.recv)
    elif is_v and op.startswith(("Alltoall", "Scatter")) and part.send:
        ends = [send, part.send], recv
    if is_v and op.startswith(("Alltoall", "Allgather", "Gather")) and part.recv:
        ends = ends[0], [recv, part.recv]
    if record.is_rooted:
        ends = tuple(None if not len(x) else y for x, y in _both(part, ends))
        if part.root == MPI.PROC_NULL:
            ends = None, None
    more: tuple[Any, ...] = ()
    if op == "Reduce_scatter":
        more = (None,)
    if record.combines:
        more = *more, by
    if record.is_rooted:
        more = *more, part.root
    return *ends, *more


def _both(part: Part, ends: tuple[Any, Any]) -> list[tuple[list[int], Any]]:
    return [(part.send, ends[0]), (part.recv, ends[1])]


def _mixed(array: np.ndarray, counts: list[int]) -> list[Any]:
    starts = list(accumulate(counts, initial=0))[:-1]
    places = [at * array.itemsize for at in starts]
    kind = MPI.Datatype.fromcode(array.dtype.char)
    return [array, counts, places, [kind] * len(counts)]


def in_units(record: Collective, sizes: dict[str, Any], itemsize: int):
    """The sizes in the unit that communicators cut them in, and its bytes."""
    if record.combines:
        return sizes, itemsize
    scaled = {k: _times(x, itemsize, k) for k, x in sizes.items()}
    knows_all = record.groups == INSIDE or not record.is_irregular
    if record.gives != VECTOR and record.is_rooted:
        knows_all = False
    if {"ab", "table"} & sizes.keys():
        knows_all = False
    if {"a", "groups"} & sizes.keys():
        knows_all = True  # it is told the bits of all counts
    if not knows_all:
        return scaled, 1
    counts = [_flat(x) for k, x in scaled.items() if k in _AMOUNTS]
    unit = unit_of(int(np.bitwise_or.reduce(np.concatenate([[0], *counts]))))
    return {k: _over(x, unit, k) for k, x in scaled.items()}, unit


_AMOUNTS = {"m", "k", "ka", "kb", "a", "b", "counts", "groups", "table", "ab", "ba"}


def _flat(x: Any) -> np.ndarray:
    if isinstance(x, int):
        return np.array([x])
    rows = [np.ravel(row) for row in x]
    return np.concatenate([np.empty(0, np.int64), *rows]).astype(np.int64)


def _times(x: Any, n: int, name: str) -> Any:
    if name not in _AMOUNTS:
        return x
    return [_times(y, n, name) for y in x] if isinstance(x, list) else x * n


def _over(x: Any, n: int, name: str) -> Any:
    if name not in _AMOUNTS:
        return x
    return [_over(y, n, name) for y in x] if isinstance(x, list) else x // n
