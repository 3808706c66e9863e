"""A split in which everyone gathers a table of all, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..groups import vm
from ..groups.chain import Link, from_size, rounds
from ..groups.encoding import encode
from ..groups.place import Entry
from ..groups.scans import allgather
from ..groups.serial import allgather_group
from .page import ROW, TOP, Page, x_of
from .palette import Group, colours
from .sorting import message

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS = "xyxyyx"


def table_figure(colors: Sequence[str] = COLORS) -> Figure:
    """What every process knows of all colours after every round, and its place."""
    n, k = len(colors), rounds(len(colors))
    run = vm.run([allgather(from_size(r, n), r) for r in range(n)], trace=True)
    page = Page(n, TOP + k * ROW + 0.9, f"A table of all {n} on every process")
    held = [{r} for r in range(n)]
    for t in range(k + 1):
        y = TOP + 0.15 + t * ROW
        _row(page, y, f"after round {t}" if t else "colour", colors, held)
        for m in (m for m in run.trace if m.round == t):
            message(page, m, y)
            held[m.target] |= set(m.value[0])
    page.label(y + 0.45, "place in group")
    for r, link in enumerate(_groups(colors)):
        page.text(x_of(r), y + 0.45, f"rank {link.rank} of {link.size}", 8.5)
    return page.figure


def _row(
    page: Page, y: float, words: str, colors: Sequence[str], held: list[set[int]]
) -> None:
    """The colours that each process knows, in the order of the chain."""
    kinds = list(dict.fromkeys(colors))
    paint = colours([Group("colours", "all", "c", range(len(kinds)))])
    page.label(y, words)
    for r, known in enumerate(held):
        own = " ".join(colors[i] for i in sorted(known))
        page.box(x_of(r), y, own, paint[kinds.index(colors[r])])


def _groups(colors: Sequence[str]) -> list[Link]:
    """The places that the split itself finds."""
    n, codes = len(colors), [encode(color) for color in colors]
    run = vm.run([allgather_group(from_size(r, n), Entry(codes[r])) for r in range(n)])
    return [place.link for place in run.results]
