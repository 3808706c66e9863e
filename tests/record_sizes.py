"""Sizes of any collective: drawn at random and shrunk, or with equal blocks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import lcm
from typing import Any

import numpy as np
from hypothesis import strategies as st

from isthmus.collectives.collective import BETWEEN, INSIDE, NOTHING, SEVERAL, Collective
from isthmus.schedules.registry import Algorithm, algorithms
from record_names import OPTIONS

#: of a block: often nothing, and now and then far more than the others have
COUNTS = st.one_of(st.just(0), st.integers(0, 9), st.just(60))
#: elements that many numbers of ranks and of pieces divide
DIVISIBLE = 3360 * 64 * 3


def is_of_root(record: Collective) -> bool:
    """Whether it is of a root and another group."""
    return record.is_rooted and record.groups == BETWEEN


@st.composite
def ranks_of(draw: Any, record: Collective, most: int) -> tuple[int, ...]:
    """The ranks of each group, so many in all at the most; of a root and another
    group, those of the latter."""
    if record.groups == INSIDE or is_of_root(record):
        return (draw(st.integers(1, most)),)
    if record.groups == BETWEEN:
        p = draw(st.integers(1, most - 1))
        return p, draw(st.integers(1, most - p))
    n = st.integers(1, max(most // 4, 1))
    return tuple(draw(st.lists(n, min_size=1, max_size=4)))


@st.composite
def sizes_of(draw: Any, record: Collective, ranks: tuple[int, ...]) -> dict[str, Any]:
    """Any sizes for groups of so many ranks."""

    def row(n: int) -> list[int]:
        return draw(st.lists(COUNTS, min_size=n, max_size=n))

    def table(n: int, across: int) -> list[list[int]]:
        rows = row(across), row(across)  # the rows take turns, or it takes long
        which = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
        return [list(rows[i]) for i in which]

    sizes: dict[str, Any] = {}
    for name in record.example:
        if name in ("p", "q"):
            sizes[name] = ranks[0] if is_of_root(record) else ranks["pq".index(name)]
        elif name == "root":
            sizes[name] = draw(st.integers(0, ranks[0] - 1))
        elif name == "m":
            sizes[name] = draw(st.integers(0, 70))
        elif name == "counts":
            sizes[name] = row(ranks[0])
        elif name in ("a", "b"):
            sizes[name] = row(ranks["ab".index(name)])
        elif name in ("ab", "ba"):
            sizes[name] = table(*ranks[:: 1 if name == "ab" else -1])
        elif name == "groups":
            sizes[name] = [row(n) for n in ranks]
        elif name == "sizes":
            sizes[name] = list(ranks)
        elif name == "table" and record.groups == INSIDE:
            sizes[name] = table(*ranks, *ranks)
        elif name == "table":
            sizes[name] = _across(table(sum(ranks), sum(ranks)), ranks)
        else:
            sizes[name] = draw(COUNTS)
    if record.combines and record.groups == BETWEEN:
        sizes |= draw(_of_one_total(sizes))
    return sizes


@st.composite
def _of_one_total(draw: Any, sizes: dict[str, Any]) -> dict[str, Any]:
    """What the groups get of each other's sum, cut from vectors of one length."""
    if "ka" in sizes:
        total = lcm(sizes["p"], sizes["q"]) * draw(st.integers(0, 3))
        return {"ka": total // sizes["p"], "kb": total // sizes["q"]}
    if "a" not in sizes:
        return {}
    total, n = sum(sizes["a"]), len(sizes["b"]) - 1
    cuts = draw(st.lists(st.integers(0, total), min_size=n, max_size=n))
    return {"b": [y - x for x, y in pairwise([0, *sorted(cuts), total])]}


def _across(table: list[list[int]], ranks: tuple[int, ...]) -> list[list[int]]:
    """The table without what would be sent inside a group."""
    group = np.repeat(np.arange(len(ranks)), ranks)
    rows: list[list[int]] = np.where(group[:, None] == group, 0, table).tolist()
    return rows


def equal_sizes(
    record: Collective, ranks: tuple[int, ...], each: int | tuple[int, int]
) -> dict[str, Any]:
    """Sizes where every rank of a group gives so much: a block, its part of a vector,
    or what it sends to each."""
    p, q = ranks[0], ranks[-1]
    each, other = _both(each)
    values = {
        "p": p,
        "q": q,
        "root": p // 3 if "counts" in record.example else 0,
        "m": each,
        "k": each,
        "ka": each // p if record.combines else each,
        "kb": each // q if record.combines else other,
        "a": [each // p if record.combines else each] * p,
        "b": [each // q if record.combines else other] * q,
        "counts": [each // p if record.combines else each] * p,
        "ab": [[each] * q] * p,
        "ba": [[other] * p] * q,
        "groups": [[each] * n for n in ranks],
        "sizes": list(ranks),
    }
    whole = [[each] * sum(ranks)] * sum(ranks)
    values["table"] = whole if record.groups == INSIDE else _across(whole, ranks)
    return {name: values[name] for name in record.example}


def _both(each: int | tuple[int, int]) -> tuple[int, int]:
    return each if isinstance(each, tuple) else (each, each)


def claimed(
    record: Collective, ranks: tuple[int, ...], each: int | tuple[int, int]
) -> tuple[Any, ...]:
    """What the closed form of an algorithm takes for these sizes."""
    each, other = _both(each)
    if record.gives == NOTHING:
        return ranks
    if record.groups == SEVERAL:
        return list(ranks), [each] * len(ranks)
    if len(ranks) == 1:
        return ranks[0] + is_of_root(record), each
    if record.combines:
        return *ranks, each
    return *ranks, each, other


@st.composite
def names_of(draw: Any, entry: Algorithm, known: Iterable[str] = OPTIONS) -> str:
    """An algorithm, perhaps with one of the known options, perhaps with a stage."""
    options = sorted({*known} & entry.options.keys())
    option = draw(st.sampled_from(["", *options]))
    value = f"({option}={draw(st.sampled_from(OPTIONS[option]))})" if option else ""
    name = entry.name + value
    if not entry.staged:
        return name
    stages = [x.name for x in algorithms("allgatherv") if not x.node_memory]
    stage = draw(st.sampled_from(["", *stages]))
    return f"{name}+{stage}" if stage else name


@st.composite
def nodes_of(draw: Any, n: int) -> tuple[int, ...]:
    """The node of each of n ranks: one for all, one each, or any."""
    node = draw(st.sampled_from([0, 1, n - 1]))
    return tuple(draw(st.lists(st.integers(0, node), min_size=n, max_size=n)))
