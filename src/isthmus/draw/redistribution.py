"""A redistribution as a picture: the layouts before and after, and the messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .palette import EMPTY, FAINT, INK, Colour, RankGroup, colours, groups_of, on

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: the most ranks in a group for labels on parts and messages
MAX_LABELLED_RANKS = 16
#: the owner of an element that no rank has, or that no rank wants
NOBODY = -1


def _flat(owners: np.ndarray) -> np.ndarray:
    """An array of any number of axes as rows and columns."""
    if owners.ndim == 1:
        return owners[None, :]
    return owners.reshape(-1, owners.shape[-1])


def _painted(owners: np.ndarray, paint: Sequence[Colour]) -> np.ndarray:
    """A colour for each element."""
    from matplotlib.colors import to_rgb

    colour_of_owner = np.array([*paint, to_rgb(EMPTY)])
    return np.asarray(colour_of_owner[owners])


def _borders(axes: Axes, owners: np.ndarray) -> None:
    """Lines where parts of different ranks meet."""
    from matplotlib.collections import LineCollection

    lines: list[Any] = []
    rows, columns = owners.shape
    for y, x in zip(*np.nonzero(np.diff(owners, axis=0)), strict=True):
        lines.append([(x - 0.5, y + 0.5), (x + 0.5, y + 0.5)])
    for y, x in zip(*np.nonzero(np.diff(owners, axis=1)), strict=True):
        lines.append([(x + 0.5, y - 0.5), (x + 0.5, y + 0.5)])
    axes.add_collection(LineCollection(lines, colors=INK, linewidths=1.1))
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))


def _names(
    axes: Axes,
    owners: np.ndarray,
    group: RankGroup,
    colour: Any,
    replicas: dict[int, list[int]],
) -> None:
    """Write the names of ranks into the middles of their parts.

    A part in several pieces has no name, since its middle may lie in another part.
    """
    for r in np.unique(owners[owners != NOBODY]):
        y, x = np.nonzero(owners == r)
        if (np.ptp(y) + 1) * (np.ptp(x) + 1) != len(y):
            continue
        mean_colour = colour[y, x].mean(0)
        ink = on(tuple(mean_colour))
        box = {"facecolor": mean_colour, "edgecolor": "none", "pad": 1.5}
        name = " ".join(group.label(x) for x in replicas.get(int(r), [int(r)]))
        style: dict[str, Any] = {"ha": "center", "va": "center", "bbox": box}
        axes.text(x.mean(), y.mean(), name, color=ink, fontsize=8, **style)


def _map(
    axes: Axes,
    owners: np.ndarray,
    group: RankGroup,
    sources: np.ndarray,
    paint: Sequence[Colour],
    replicas: dict[int, list[int]],
) -> None:
    """Draw an array: parts of ranks with borders, elements in their source's colour."""
    owners, sources = _flat(owners), _flat(sources)
    colour = _painted(sources, paint)
    axes.imshow(colour, aspect="auto", interpolation="nearest")
    _borders(axes, owners)
    if len(group.ranks) <= MAX_LABELLED_RANKS:
        _names(axes, owners, group, colour, replicas)
    axes.set(xticks=[], yticks=[])


def _table(
    axes: Axes,
    messages: Sequence[tuple[int, int, int]],
    ends: tuple[RankGroup, RankGroup],
    paint: Sequence[Colour],
) -> None:
    """Draw a table of messages: squares with areas in proportion to the elements."""
    from matplotlib.patches import Rectangle

    source, target = ends
    longest = max((n for *_, n in messages), default=1)
    for s, t, n in messages:
        side = 0.92 * (n / longest) ** 0.5
        at = t - target.ranks.start - side / 2, s - source.ranks.start - side / 2
        axes.add_patch(Rectangle(at, side, side, color=paint[s], lw=0))
        if max(len(source.ranks), len(target.ranks)) <= MAX_LABELLED_RANKS:
            middle = t - target.ranks.start, s - source.ranks.start
            ink = on(paint[s]) if side > 0.45 else INK
            axes.text(*middle, str(n), fontsize=6, ha="center", va="center", color=ink)
    rows, columns = len(source.ranks), len(target.ranks)
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5), aspect="equal")
    for group, set_ticks in ((target, axes.set_xticks), (source, axes.set_yticks)):
        tick_ranks = range(0, len(group.ranks), max(len(group.ranks) // 16, 1))
        names = [group.label(group.ranks[i]) for i in tick_ranks]
        set_ticks(list(tick_ranks), names, fontsize=7)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_color(FAINT)


def figure(
    held: np.ndarray,
    wanted: np.ndarray,
    sources: np.ndarray,
    messages: Sequence[tuple[int, int, int]],
    groups: Sequence[range],
    titles: tuple[str, str],
    replicas: tuple[dict[int, list[int]], dict[int, list[int]]],
) -> Figure:
    """The layouts before and after a redistribution, and the messages between.

    `held`, `wanted` and `sources` have, for each element, a rank with the element
    before, a rank with the element afterwards, and the rank from which the element
    comes. `messages` are source, target and number of elements; `replicas` the ranks
    with equal parts, by the first of them. Colours are sources.
    """
    from matplotlib.figure import Figure

    rank_groups = groups_of(list(groups))
    source, target = rank_groups[0], rank_groups[-1]
    paint = colours(rank_groups)
    picture = Figure(figsize=(11, 4.3), layout="constrained")
    left, middle, right = picture.subplots(1, 3, width_ratios=(1, 0.9, 1))
    _map(left, held, source, held, paint, replicas[0])
    _table(middle, messages, (source, target), paint)
    _map(right, wanted, target, sources, paint, replicas[1])
    left.set_title("as it lies", fontsize=10, loc="left")
    left.set_xlabel(titles[0], fontsize=7.5, color=INK)
    total = sum(n for s, t, n in messages if s != t)
    words = f"{len(messages)} messages, {total} elements"
    middle.set_title("who sends to whom", fontsize=10, loc="left")
    middle.set_xlabel(words, fontsize=7.5, color=INK)
    right.set_title("as it will lie, by source", fontsize=10, loc="left")
    right.set_xlabel(titles[1], fontsize=7.5, color=INK)
    return picture
