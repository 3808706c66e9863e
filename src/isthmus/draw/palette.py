"""Colours of ranks: a hue for each group, from light to dark in rank order.

Pictures and the pages of isthmus explore share the colours; the pages have a copy in
web/colours.js and web/page.css.

Groups A and B are blue and orange, because every kind of colour vision distinguishes
the two, and lightness alone shows the order of ranks.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from string import ascii_uppercase

import numpy as np

Colour = tuple[float, float, float]

INK, FAINT, EMPTY = "#222222", "#8a8a8a", "#efefef"


@dataclass(frozen=True)
class RankGroup:
    """A group: a name, and consecutive ranks."""

    name: str
    short: str
    letter: str
    ranks: range

    def label(self, rank: int) -> str:
        """The name of a rank in a picture."""
        return f"{self.letter}{rank - self.ranks.start}"


@dataclass(frozen=True)
class RankNode:
    """A node: a name, and the ranks that share its memory, in rank order."""

    name: str
    short: str
    ranks: tuple[int, ...]


def nodes_of(nodes: Iterable[Hashable]) -> list[RankNode]:
    """The ranks of each node, from the node of each rank.

    Nodes come in the order of their first ranks.
    """
    ranks_of_node: dict[Hashable, list[int]] = {}
    for rank, node in enumerate(nodes):
        ranks_of_node.setdefault(node, []).append(rank)
    return [
        RankNode(f"node {x}", str(x), tuple(ranks))
        for x, ranks in ranks_of_node.items()
    ]


#: the colours of a group, light to dark, by the group's letter; "r" is for a single
#: group, with more hues, since its ranks are hardest to distinguish
RAMPS = {
    "a": ("#bfe0f2", "#6fb3dc", "#2f7fc1", "#174a86", "#0d2a55"),
    "b": ("#fde0ad", "#f7b25a", "#e0812a", "#a9510f", "#6b2c05"),
    "c": ("#cdebc5", "#8ecb8b", "#4ba25a", "#22733c", "#0d4422"),
    "d": ("#e0d9ee", "#b7a7d6", "#8a72b8", "#5f4592", "#3a2463"),
    "e": ("#f9d5d3", "#ee9a98", "#d75a62", "#a32a40", "#661326"),
    "f": ("#e3e6e8", "#b6bdc3", "#858f98", "#58626b", "#2e363d"),
    "r": ("#f6e27f", "#a5c86a", "#4aa78c", "#2b7594", "#2f4682", "#3a2463"),
}
#: the places of the first and the last rank on a ramp
RAMP_BEGIN, RAMP_END = 0.06, 0.92
#: colours in timelines: ports that send, receive or idle; the critical path
SEND_COLOUR, RECEIVE_COLOUR, IDLE_COLOUR, PATH_COLOUR = (
    "#08519c",
    "#2a77b4",
    "#eceff1",
    "#c2410c",
)
#: a rank that copies or reduces, one that waits at a meeting
WORK_COLOUR, WAIT_COLOUR = "#5ab4ac", "#b59a4a"


def on_ramp(letter: str, at: float) -> Colour:
    """The colour at a place from 0 to 1 of a group's ramp.

    A uniform cubic B-spline, since the pages have d3.interpolateRgbBasis.
    """
    knots = np.array(
        [[int(x[i : i + 2], 16) for i in (1, 3, 5)] for x in RAMPS[letter]]
    )
    n = len(knots) - 1
    k = min(int(at * n), n - 1)
    t, v1, v2 = at * n - k, knots[k], knots[k + 1]
    v0 = knots[k - 1] if k else 2 * v1 - v2
    v3 = knots[k + 2] if k < n - 1 else 2 * v2 - v1
    weights = (1 - t) ** 3, 4 - 6 * t**2 + 3 * t**3, 1 + 3 * (t + t**2 - t**3), t**3
    mixed = sum(w * v for w, v in zip(weights, (v0, v1, v2, v3), strict=True)) / 6
    red, green, blue = np.clip(mixed / 255, 0, 1).tolist()
    return red, green, blue


def groups_of(ranks: list[range]) -> list[RankGroup]:
    """The groups of ranks, named A, B and so on; a single group has no letter."""
    if len(ranks) == 1:
        return [RankGroup("ranks", "all", "r", ranks[0])]
    letters = ascii_uppercase[: len(ranks)]
    return [
        RankGroup(f"group {c}", c, c.lower(), r)
        for c, r in zip(letters, ranks, strict=True)
    ]


def colours(groups: list[RankGroup]) -> list[Colour]:
    """The colour of every rank's data."""
    colour_of_rank: list[Colour] = []
    letters = [x for x in RAMPS if x != "r"]
    for k, group in enumerate(groups):
        n = len(group.ranks)
        letter = "r" if len(groups) == 1 else letters[k % len(letters)]
        for i in range(n):
            part = i / (n - 1) if n > 1 else 0.5
            colour_of_rank.append(
                on_ramp(letter, RAMP_BEGIN + (RAMP_END - RAMP_BEGIN) * part)
            )
    return colour_of_rank


def parts(n: int) -> list[Colour]:
    """Colours for n parts of a rank's data, in order."""
    return [
        on_ramp("r", 0.04 + (RAMP_END - 0.04) * i / (n - 1) if n > 1 else 0.4)
        for i in range(n)
    ]


def on(colour: Colour) -> str:
    """The colour of legible text on a colour."""
    red, green, blue = colour
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.55 else "white"
