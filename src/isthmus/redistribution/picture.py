"""The data of a picture of a redistribution: owners, sources and messages."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from .layouts import Layout
from .runs import spread
from .schedule import Layouts, Whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _owners(whole: Whole, layouts: list[Layout], base: int) -> np.ndarray:
    """The number of the first rank that has each element."""
    owners = np.full(prod(whole.shape), -1)
    for r in reversed(range(len(layouts))):
        owners[whole.indices(layouts[r], r)] = base + r
    return owners.reshape(whole.shape)


def _sources(whole: Whole) -> np.ndarray:
    """The rank that sends each element to the first receiver."""
    sources = np.full(prod(whole.shape), -1)
    for exchange in reversed(whole.parts):
        if exchange.number >= whole.base:
            j = exchange.number - whole.base
            indices = whole.indices(whole.targets[j], j)
            for m in exchange.receives:
                sources[indices[spread(m.start, m.size)]] = m.peer
    return sources.reshape(whole.shape)


def _words(layouts: list[Layout]) -> str:
    """The layouts of a side, in the words of the picture."""
    if layouts[0].is_regular:
        words = repr(layouts[0]).removeprefix("Layout.").replace("Replicate()", "R")
        return words.replace("Shard(axis=", "S(").replace("placements=", "")
    kind = "indices" if layouts[0].points is not None else "slices"
    return f"{kind} of each rank, shape {layouts[0].shape}"


def _together(layouts: list[Layout], base: int) -> dict[int, list[int]]:
    """The numbers of all replicas, by the first replica."""
    first = layouts[0]
    replicas: dict[tuple[int, ...], list[int]] = {}
    for r in range(first.ranks if first.is_regular else 0):
        replicas.setdefault(first.place(r)[0], []).append(base + r)
    return {numbers[0]: numbers for numbers in replicas.values()}


def draw(source: Layouts, target: Layouts, inside: int | None = None) -> Figure:
    """A picture of both layouts and of the messages between ranks."""
    from ..draw.redistribution import figure

    whole = Whole(source, target, inside, combine=False)
    messages = [(x.number, m.peer, m.total) for x in whole.parts for m in x.sends]
    ranks = range(whole.n)
    groups = (
        [ranks] if whole.one_group else [range(whole.base), range(whole.base, whole.n)]
    )
    return figure(
        _owners(whole, whole.sources, 0),
        _owners(whole, whole.targets, whole.base),
        _sources(whole),
        messages,
        groups,
        (_words(whole.sources), _words(whole.targets)),
        (_together(whole.sources, 0), _together(whole.targets, whole.base)),
    )
