"""Chains as pictures: a scan round by round, and a split by bins.

Like figures 1 and 2 of Moody, Ahn, de Supinski 2011, drawn from dialogues that ran on
the virtual machine.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..groups import vm
from ..groups.bins import Table, scan_bins, split_bins
from ..groups.chain import Link, from_size, rounds
from ..groups.scans import scan
from ..groups.tally import Message
from .page import BOX_H, BOX_W, LEFT, ROW, TOP, Page, x_of
from .palette import EMPTY, FAINT, Group, colours

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: inches between the lines of a table
LINE = 0.17

_COLORS = ("0110", "1101", "0011", "0100", "1110", "0111")


def scan_figure(n: int = 6) -> Figure:
    """An inclusive scan on a chain of n: what every process has after every round."""
    letters = "abcdefghijklmnop"[:n]
    run = vm.run(
        [scan(from_size(r, n), letters[r], operator.add) for r in range(n)], trace=True
    )
    paint = colours([Group("ranks", "all", "r", range(n))])
    height = TOP + rounds(n) * ROW + 0.6
    page = Page(n, height, f"Inclusive scan on a chain of {n}")
    held = list(letters)
    for k in range(rounds(n) + 1):
        y = TOP + 0.15 + k * ROW
        page.label(y, f"after round {k}" if k else "at first")
        for r in range(n):
            page.box(x_of(r), y, held[r], paint[len(held[r]) - 1])
        for m in (m for m in run.trace if m.round == k):
            _message(page, m, y)
            if m.source < m.target:
                held[m.target] = m.value[0] + held[m.target]
    return page.figure


def _message(page: Page, m: Message, y: float) -> None:
    """A value goes right with the sender's left partner; left goes an address only."""
    right = m.source < m.target
    dx = 0.12 if right else -0.12
    start = (x_of(m.source) + dx, y + BOX_H / 2 + 0.02)
    end = (x_of(m.target) - dx, y + ROW - BOX_H / 2 - 0.03)
    if right:
        page.arrow(start, end)
    else:
        page.arrow(start, end, color=FAINT, lw=0.7, linestyle=(0, (3, 2)))


def bins_figure(colors: Sequence[str] = _COLORS, bits: int = 2) -> Figure:
    """A chain split by the first bits of its colours, with the tables of the scan."""
    n, bins = len(colors), 1 << bits
    chosen = [int(color[:bits], 2) for color in colors]
    links = [from_size(r, n) for r in range(n)]
    tables = vm.run([scan_bins(x, q) for x, q in zip(links, chosen, strict=True)])
    parts = vm.run([split_bins(x, q) for x, q in zip(links, chosen, strict=True)])
    paint = colours([Group("bins", "all", "b", range(bins))])
    height = TOP + 1.1 + 2 * (bins + 1) * LINE + bins * 0.48
    page = Page(n, height, f"Splitting a chain of {n} by {bins} bins")
    y = TOP + 0.1
    page.label(y, "colour")
    page.label(y + 0.3, "bin")
    linked(page, links, y, [paint[q] for q in chosen], list(colors))
    for r, q in enumerate(chosen):
        page.text(x_of(r), y + 0.3, f"{q:0{bits}b}", 8.5)
    y += 0.75
    for words, side in (("to the left", "before"), ("to the right", "after")):
        page.label(y, words)
        for q in range(bins):
            page.text(LEFT - 0.12, y + q * LINE, f"{q:0{bits}b}", 7.5, color=FAINT)
        for r, scanned in enumerate(tables.results):
            _table(page, x_of(r), y, getattr(scanned, side), chosen[r], bins)
        y += (bins + 1) * LINE + 0.05
    y += 0.2
    for q in range(bins):
        own = [parts.results[r] for r in range(n) if chosen[r] == q]
        page.label(y, f"chain of bin {q:0{bits}b}" if own else f"none in {q:0{bits}b}")
        places = [f"rank {x.rank} of {x.size}" for x in own]
        linked(page, own, y, [paint[q]] * len(own), places)
        y += 0.48
    return page.figure


def linked(
    page: Page, links: list[Link], y: float, paint: list[Any], words: list[str]
) -> None:
    """The processes of a chain where they stand, and an arrow each way between two."""
    for link, colour, word in zip(links, paint, words, strict=True):
        x = x_of(link.address)
        page.box(x, y, word, colour)
        if link.right is not None:
            ends = (x + BOX_W / 2, y), (x_of(link.right) - BOX_W / 2, y)
            page.arrow(*ends, arrowstyle="<|-|>", lw=0.9, mutation_scale=8)


def _table(
    page: Page,
    x: float,
    y: float,
    table: Table | None,
    q: int,
    bins: int,
) -> None:
    """For every bin the nearest process and the count; the own bin stands out."""
    for i in range(bins):
        at = y + i * LINE
        if i == q:
            page.box(x, at, "", EMPTY, LINE)
        near, count = table.bin(i) if table else (0, 0)
        words = f"P{near}, {count}" if count else "–, 0"
        page.text(x, at, words, 7.5, weight="bold" if i == q else "normal")
