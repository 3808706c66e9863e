"""Colours of ranks: a hue for each group, from light to dark in rank order.

Blue and orange stay apart for every kind of colour vision, and lightness needs none.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import cycle
from string import ascii_uppercase

Colour = tuple[float, float, float]

LIGHT, DARK = 0.34, 0.95
INK, FAINT, EMPTY = "#222222", "#8a8a8a", "#efefef"


@dataclass(frozen=True)
class Group:
    """Consecutive ranks that belong together."""

    name: str
    short: str
    letter: str
    ranks: range

    def label(self, rank: int) -> str:
        """What a rank is called in a picture."""
        return f"{self.letter}{rank - self.ranks.start}"


@dataclass(frozen=True)
class Node:
    """Ranks that share memory, in rank order."""

    name: str
    short: str
    ranks: tuple[int, ...]


def nodes_of(nodes: Iterable[Hashable]) -> list[Node]:
    """The ranks of each node, from the node of each rank; nodes come in the order of
    their first ranks."""
    found: dict[Hashable, list[int]] = {}
    for rank, node in enumerate(nodes):
        found.setdefault(node, []).append(rank)
    return [Node(f"node {x}", str(x), tuple(ranks)) for x, ranks in found.items()]


#: the colours of the groups, light to dark
RAMPS = ("Blues", "Oranges", "Greens", "Purples", "Reds", "Greys")


def groups_of(ranks: list[range]) -> list[Group]:
    """One group, or A, B and so on."""
    if len(ranks) == 1:
        return [Group("ranks", "all", "r", ranks[0])]
    letters = ascii_uppercase[: len(ranks)]
    return [
        Group(f"group {c}", c, c.lower(), r)
        for c, r in zip(letters, ranks, strict=True)
    ]


def colours(groups: list[Group]) -> list[Colour]:
    """The colour of every rank's data."""
    from matplotlib import colormaps

    found: list[Colour] = []
    for group, name in zip(groups, cycle(RAMPS), strict=False):
        n = len(group.ranks)
        for i in range(n):
            depth = LIGHT + (DARK - LIGHT) * (i / (n - 1) if n > 1 else 0.5)
            found.append(colormaps[name](depth)[:3])
    return found


def on(colour: Colour) -> str:
    """Ink that can be read on a colour."""
    red, green, blue = colour
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.55 else "white"
