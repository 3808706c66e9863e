"""Draws the pictures of chains on the page of groups: `python docs/draw_chains.py`.

Like figures 1 and 2 of Moody, Ahn, de Supinski 2011, from dialogues that ran on the
virtual machine.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from isthmus.draw.palette import EMPTY, FAINT, INK, RankGroup, colours, on
from isthmus.groups import sorts, trees, vm
from isthmus.groups.bins import BinTable, scan_bins, split_bins
from isthmus.groups.chain import ChainLink, from_size, rounds
from isthmus.groups.cheng import cheng
from isthmus.groups.encoding import encode
from isthmus.groups.jenkins import bin_of
from isthmus.groups.radix import DIGIT_BITS, relink
from isthmus.groups.run_result import RunResult, TracedMessage
from isthmus.groups.scans import allgather, scan
from isthmus.groups.serial import allgather_group
from isthmus.groups.split_entry import SplitEntry

# inches
STEP, ROW, BOX_W, BOX_H, LEFT, TOP = 1.18, 0.92, 0.86, 0.3, 1.25, 0.95


class Page:
    """A blank page on which things lie in inches from the upper left corner."""

    def __init__(self, n: int, height: float, title: str) -> None:
        """A page for n processes, with their names on top."""
        width = x_of(n - 1) + STEP / 2 + 0.2
        self.figure = Figure(figsize=(width, height))
        self.axes = self.figure.add_axes((0.0, 0.0, 1.0, 1.0))
        self.axes.set(xlim=(0, width), ylim=(height, 0))
        self.axes.axis("off")
        self.text(0.25, 0.32, title, 11, ha="left", weight="bold")
        for r in range(n):
            self.text(x_of(r), TOP - 0.22, f"P{r}", 8, color=FAINT)

    def label(self, y: float, words: str) -> None:
        """What a row is."""
        self.text(0.25, y, words, 8.5, ha="left")

    def text(self, x: float, y: float, words: str, size: float, **style: Any) -> None:
        """Words, centred unless told otherwise."""
        style = {"ha": "center", "va": "center", "color": INK} | style
        self.axes.text(x, y, words, fontsize=size, **style)

    def box(
        self, x: float, y: float, words: str, colour: Any, h: float = BOX_H
    ) -> None:
        """A process, with words in it."""
        corner = (x - BOX_W / 2, y - h / 2)
        style = "round,pad=0,rounding_size=0.05"
        self.axes.add_patch(
            FancyBboxPatch(corner, BOX_W, h, boxstyle=style, facecolor=colour, lw=0)
        )
        ink = INK if isinstance(colour, str) else on(colour)
        self.text(x, y, words, 8.5, color=ink)

    def arrow(
        self, a: tuple[float, float], b: tuple[float, float], **style: Any
    ) -> None:
        """A line from a to b, with a head unless told otherwise."""
        style = {"arrowstyle": "-|>", "color": INK, "lw": 1.0, "shrinkA": 0} | style
        self.axes.annotate("", b, a, arrowprops={"shrinkB": 0, **style})


def x_of(process: int) -> float:
    """The middle of a process's column."""
    return LEFT + BOX_W / 2 + process * STEP


#: inches between the lines of a table
LINE = 0.17

BINARY = ("0110", "1101", "0011", "0100", "1110", "0111")


def scan_figure(n: int = 6) -> Figure:
    """An inclusive scan on a chain of n: what every process has after every round."""
    letters = "abcdefghijklmnop"[:n]
    run = vm.run(
        [scan(from_size(r, n), letters[r], operator.add) for r in range(n)], trace=True
    )
    paint = colours([RankGroup("ranks", "all", "r", range(n))])
    height = TOP + rounds(n) * ROW + 0.6
    page = Page(n, height, f"Inclusive scan on a chain of {n}")
    held = list(letters)
    for k in range(rounds(n) + 1):
        y = TOP + 0.15 + k * ROW
        page.label(y, f"after round {k}" if k else "at first")
        for r in range(n):
            page.box(x_of(r), y, held[r], paint[len(held[r]) - 1])
        for m in (m for m in run.trace if m.round == k):
            _scan_message(page, m, y)
            if m.source < m.target:
                held[m.target] = m.value[0] + held[m.target]
    return page.figure


def _scan_message(page: Page, m: TracedMessage, y: float) -> None:
    """A value goes right with the sender's left partner; left goes an address only."""
    right = m.source < m.target
    dx = 0.12 if right else -0.12
    start = (x_of(m.source) + dx, y + BOX_H / 2 + 0.02)
    end = (x_of(m.target) - dx, y + ROW - BOX_H / 2 - 0.03)
    if right:
        page.arrow(start, end)
    else:
        page.arrow(start, end, color=FAINT, lw=0.7, linestyle=(0, (3, 2)))


def bins_figure(colors: Sequence[str] = BINARY, bits: int = 2) -> Figure:
    """A chain split by the first bits of its colours, with the tables of the scan."""
    n, bins = len(colors), 1 << bits
    chosen = [int(color[:bits], 2) for color in colors]
    links = [from_size(r, n) for r in range(n)]
    tables = vm.run([scan_bins(x, q) for x, q in zip(links, chosen, strict=True)])
    parts = vm.run([split_bins(x, q) for x, q in zip(links, chosen, strict=True)])
    paint = colours([RankGroup("bins", "all", "b", range(bins))])
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
    page: Page, links: list[ChainLink], y: float, paint: list[Any], words: list[str]
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
    table: BinTable | None,
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
    paint = colours([RankGroup("items", "all", "i", range(n))])
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


def _of_round(run: RunResult, k: int) -> list[TracedMessage]:
    return [m for m in run.trace if m.round == k]


def _row(page: Page, k: int, held: list[list[int]], words: str = "") -> None:
    """What all hold after k rounds."""
    y = TOP + 0.15 + k * ROW
    page.label(y, words or (f"after round {k}" if k else "at first"))
    paint: Any = colours([RankGroup("items", "all", "i", range(len(held)))])
    for r, items in enumerate(held):
        colour = paint[len(items) - 1] if items else EMPTY
        page.box(x_of(r), y, " ".join(map(str, items)), colour)


def message(page: Page, m: TracedMessage, y: float) -> None:
    """An arrow from its sender to its receiver, below the row at y."""
    dx = 0.12 if m.source < m.target else -0.12
    start = (x_of(m.source) + dx, y + BOX_H / 2 + 0.02)
    page.arrow(start, (x_of(m.target) - dx, y + ROW - BOX_H / 2 - 0.03))


COLORS = "xyxyyx"


def table_figure(colors: Sequence[str] = COLORS) -> Figure:
    """What every process knows of all colours after every round, and its place."""
    n, k = len(colors), rounds(len(colors))
    run = vm.run([allgather(from_size(r, n), r) for r in range(n)], trace=True)
    page = Page(n, TOP + k * ROW + 0.9, f"A table of all {n} on every process")
    held = [{r} for r in range(n)]
    for t in range(k + 1):
        y = TOP + 0.15 + t * ROW
        _table_row(page, y, f"after round {t}" if t else "colour", colors, held)
        for m in (m for m in run.trace if m.round == t):
            message(page, m, y)
            held[m.target] |= set(m.value[0])
    page.label(y + 0.45, "place in group")
    for r, link in enumerate(_places(colors)):
        page.text(x_of(r), y + 0.45, f"rank {link.rank} of {link.size}", 8.5)
    return page.figure


def _table_row(
    page: Page, y: float, words: str, colors: Sequence[str], held: list[set[int]]
) -> None:
    """The colours that each process knows, in the order of the chain."""
    kinds = list(dict.fromkeys(colors))
    paint = colours([RankGroup("colours", "all", "c", range(len(kinds)))])
    page.label(y, words)
    for r, known in enumerate(held):
        own = " ".join(colors[i] for i in sorted(known))
        page.box(x_of(r), y, own, paint[kinds.index(colors[r])])


def _places(colors: Sequence[str]) -> list[ChainLink]:
    """The places that the split itself finds."""
    n, codes = len(colors), [encode(color) for color in colors]
    run = vm.run(
        [allgather_group(from_size(r, n), SplitEntry(codes[r])) for r in range(n)]
    )
    return [place.link for place in run.results]


#: inches from a row to the next
CHAIN_ROW = 0.42

NAMES = ("oak", "elm", "pine", "oak", "elm", "oak")
KEYS = (0x3A, 0x1F, 0x3C, 0x0B, 0x1A, 0x3B)
Chain = list[ChainLink]


def _chains(links: Sequence[ChainLink | None]) -> list[Chain]:
    """The processes of every chain from left to right."""
    found = []
    for link in links:
        if link is not None and link.left is None:
            found.append([link])
            while (right := found[-1][-1].right) is not None:
                found[-1] += [x for x in links if x is not None and x.address == right]
    return found


def _split(chains: list[Chain], n: int, bins: Mapping[int, int]) -> list[Chain]:
    """Every chain split by the bins of its processes."""
    talks: list[Any] = [None] * n
    for link in (link for chain in chains for link in chain):
        talks[link.address] = split_bins(link, bins[link.address])
    return _chains(vm.run(talks).results)


def hash_steps(names: Sequence[str]) -> Iterator[tuple[dict[int, int], list[Chain]]]:
    """The bins of every iteration by process, and the chains it leaves.

    A chain is not split again if it is one process, or as long as before and of one
    colour.
    """
    n, iteration = len(names), 0
    chains = [[from_size(r, n) for r in range(n)]]
    while chains:
        size = {link.address: link.size for chain in chains for link in chain}
        bins = {a: bin_of(encode(names[a]), iteration) for a in size}
        parts = _split(chains, n, bins)
        yield bins, parts
        chains = [c for c in parts if not _is_group(c, size[c[0].address], names)]
        iteration += 1


def _is_group(chain: Chain, before: int, names: Sequence[str]) -> bool:
    one = len({names[link.address] for link in chain}) == 1
    return one and len(chain) in (1, before)


def hash_figure(names: Sequence[str] = NAMES) -> Figure:
    """A chain split by hash bins again and again, until every chain has one colour."""
    n, kinds = len(names), list(dict.fromkeys(names))
    paint = colours([RankGroup("names", "all", "n", range(len(kinds)))])
    steps = list(hash_steps(names))
    rows = sum(1.4 + len(parts) for _, parts in steps)
    page = Page(n, TOP + rows * CHAIN_ROW + 0.5, f"Splitting a chain of {n} by hashing")
    y = TOP + 0.1

    def row(chain: Chain, words: str) -> None:
        own = [names[link.address] for link in chain]
        page.label(y, words)
        linked(page, chain, y, [paint[kinds.index(x)] for x in own], own)

    row([from_size(r, n) for r in range(n)], "colour")
    before = dict.fromkeys(range(n), n)
    for i, (bins, parts) in enumerate(steps):
        y += 1.4 * CHAIN_ROW
        page.label(y, f"iteration {i + 1}: bin")
        for address, q in bins.items():
            page.text(x_of(address), y, f"{q}", 8.5)
        for chain in parts:
            y += CHAIN_ROW
            group = _is_group(chain, before[chain[0].address], names)
            row(chain, f"bin {bins[chain[0].address]}" + ": a group" * group)
        before = {link.address: link.size for chain in parts for link in chain}
    return page.figure


def radix_figure(keys: Sequence[int] = KEYS) -> Figure:
    """A chain sorted by two digits: split by one, sorted by the other, linked up."""
    n, links = len(keys), [from_size(r, len(keys)) for r in range(len(keys))]
    high = {r: key >> DIGIT_BITS for r, key in enumerate(keys)}
    parts = sorted(_split([links], n, high), key=lambda c: high[c[0].address])
    page = Page(
        n, TOP + (len(parts) + 3.5) * CHAIN_ROW + 0.5, f"Radix sort on a chain of {n}"
    )
    y = TOP + 0.1
    _keys(page, y, "key", links, keys)
    for chain in parts:
        y += CHAIN_ROW * (1.4 if chain is parts[0] else 1)
        _keys(page, y, f"first digit {high[chain[0].address]:x}", chain, keys)
    y += 1.7 * CHAIN_ROW
    low = [key & ((1 << DIGIT_BITS) - 1) for key in keys]
    _keys(page, y, "second digit", _relinked(parts, n, low, DIGIT_BITS), keys, True)
    y += 1.4 * CHAIN_ROW
    _keys(page, y, "linked up", _relinked([links], n, keys, 2 * DIGIT_BITS), keys, True)
    return page.figure


def _relinked(
    chains: list[Chain], n: int, u: Sequence[int], bits: int
) -> list[ChainLink]:
    """The processes of all chains, each chain in the order of u."""
    talks: list[Any] = [None] * n
    for link in (link for chain in chains for link in chain):
        talks[link.address] = relink(link, u[link.address], bits)
    found = {c[0].address: c for c in _chains(vm.run(talks).results)}
    members = [{link.address for link in chain} for chain in chains]
    return [x for own in members for a, c in found.items() if a in own for x in c]


def _keys(
    page: Page,
    y: float,
    words: str,
    chain: Sequence[ChainLink],
    keys: Sequence[int],
    moved: bool = False,
) -> None:
    """Processes with their keys where they stand, or moved side by side in order."""
    digits = sorted({key >> DIGIT_BITS for key in keys})
    paint = colours([RankGroup("digits", "all", "d", range(len(digits)))])
    page.label(y, words)
    own = [keys[link.address] for link in chain]
    names = [f"P{x.address}: " if moved else "" for x in chain]
    places = [_at(x, i) for i, x in enumerate(chain)] if moved else list(chain)
    linked(
        page,
        places,
        y,
        [paint[digits.index(key >> DIGIT_BITS)] for key in own],
        [f"{name}{key:02x}" for name, key in zip(names, own, strict=True)],
    )


def _at(link: ChainLink, column: int) -> ChainLink:
    """A process drawn at another column, beside its neighbours."""
    right = None if link.right is None else column + 1
    return replace(link, address=column, right=right)


FIGURES = {
    "scan": scan_figure,
    "bins": bins_figure,
    "bitonic": bitonic_figure,
    "tree": tree_figure,
    "table": table_figure,
    "cheng": cheng_figure,
    "radix": radix_figure,
    "hash": hash_figure,
}

if __name__ == "__main__":
    for name, figure in FIGURES.items():
        path = Path(__file__).parent / "pictures" / f"{name}.png"
        figure().savefig(path, dpi=140)
