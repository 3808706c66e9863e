"""Parallel sorts on a chain as pictures, drawn from dialogues that ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..groups import sorts, trees, vm
from ..groups.chain import from_size, rounds
from ..groups.cheng import cheng
from ..groups.tally import Message, Run
from .page import BOX_H, ROW, TOP, Page, x_of
from .palette import EMPTY, Group, colours

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ITEMS = (5, 2, 7, 0, 3, 6, 1, 4)


def bitonic_figure(items: Sequence[int] = ITEMS) -> Figure:
    """Batcher's network: the item of every process after every round."""
    n, k = len(items), rounds(len(items))
    run = vm.run(
        [sorts.bitonic(from_size(r, n), x) for r, x in enumerate(items)], trace=True
    )
    sent = [m for m in run.trace if m.round >= k]  # after the addresses
    last = run.rounds
    page = Page(n, TOP + (last - k) * ROW + 0.6, f"Bitonic sort on a chain of {n}")
    paint = colours([Group("items", "all", "i", range(n))])
    for t in range(k, last + 1):
        y = TOP + 0.15 + (t - k) * ROW
        page.label(y, f"after round {t - k}" if t > k else "at first")
        for r in range(n):
            # an item changes only when it is compared, and then it was sent
            later = (m.value for m in sent if m.source == r and m.round >= t)
            held = next(later, run.results[r])
            page.box(x_of(r), y, str(held), paint[held])
        for m in sent:
            if m.round == t:
                message(page, m, y)
    return page.figure


def tree_figure(items: Sequence[int] = ITEMS[:6]) -> Figure:
    """Items merged up a tree, and handed out again in their order."""
    n = len(items)
    tree = vm.run([trees.contract(from_size(r, n)) for r in range(n)]).results
    up = vm.run(
        [trees.reduce(tree[r], [x], sorts.merged) for r, x in enumerate(items)],
        trace=True,
    )
    down = vm.run([trees.scatter(tree[r], up.results[r]) for r in range(n)], trace=True)
    title = f"Gather, merge and scatter on a chain of {n}"
    page = Page(n, TOP + (up.rounds + down.rounds) * ROW + 0.6, title)
    held: list[list[int]] = [[x] for x in items]
    _row(page, 0, held)
    for k in range(up.rounds):
        for m in _of_round(up, k):
            message(page, m, TOP + 0.15 + k * ROW)
            held[m.target], held[m.source] = sorts.merged(held[m.target], m.value), []
        _row(page, k + 1, held)
    for k in range(down.rounds):
        for m in _of_round(down, k):
            message(page, m, TOP + 0.15 + (up.rounds + k) * ROW)
            held[m.source] = [x for x in held[m.source] if x not in m.value]
            held[m.target] = m.value
        _row(page, up.rounds + k + 1, held)
    return page.figure


def cheng_figure(items: Sequence[int] = ITEMS, m: int = 4) -> Figure:
    """Items gathered to a few sorters, sorted among them, and handed out again."""
    n, gather = len(items), m.bit_length() - 1
    run = vm.run(
        [cheng(m)(from_size(r, n), x) for r, x in enumerate(items)], trace=True
    )
    lists = [x for x in run.trace if isinstance(x.value, list)]
    title = f"Cheng's sort on a chain of {n}, by sorters of {m}"
    page = Page(n, TOP + (2 * gather + 1) * ROW + 0.6, title)
    held: list[list[int]] = [[x] for x in items]
    _row(page, 0, held, "at first")
    for t, k in enumerate(sorted({x.round for x in lists})):
        for x in (x for x in lists if x.round == k):
            message(page, x, TOP + 0.15 + t * ROW)
            held[x.source] = [i for i in held[x.source] if i not in x.value]
            held[x.target] = sorted([*held[x.target], *x.value])
        words = "gathered" if t < gather else "handed out"
        _row(page, t + 1, held, "exchanged" if t == gather else words)
    return page.figure


def _of_round(run: Run, k: int) -> list[Message]:
    return [m for m in run.trace if m.round == k]


def _row(page: Page, k: int, held: list[list[int]], words: str = "") -> None:
    """What all hold after k rounds."""
    y = TOP + 0.15 + k * ROW
    page.label(y, words or (f"after round {k}" if k else "at first"))
    paint: Any = colours([Group("items", "all", "i", range(len(held)))])
    for r, items in enumerate(held):
        colour = paint[len(items) - 1] if items else EMPTY
        page.box(x_of(r), y, " ".join(map(str, items)), colour)


def message(page: Page, m: Message, y: float) -> None:
    """An arrow from its sender to its receiver, below the row at y."""
    dx = 0.12 if m.source < m.target else -0.12
    start = (x_of(m.source) + dx, y + BOX_H / 2 + 0.02)
    page.arrow(start, (x_of(m.target) - dx, y + ROW - BOX_H / 2 - 0.03))
