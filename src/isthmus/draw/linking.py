"""Splits that link chains anew as pictures: by hash bins, and by the digits of a key.

Drawn from dialogues that ran on the virtual machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..groups import vm
from ..groups.bins import split_bins
from ..groups.chain import Link, from_size
from ..groups.encoding import encode
from ..groups.jenkins import bin_of
from ..groups.radix import DIGIT, relink
from .chain import linked
from .page import TOP, Page, x_of
from .palette import Group, colours

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: inches from a row to the next
ROW = 0.42

NAMES = ("oak", "elm", "pine", "oak", "elm", "oak")
KEYS = (0x3A, 0x1F, 0x3C, 0x0B, 0x1A, 0x3B)
Chain = list[Link]


def _chains(links: Sequence[Link | None]) -> list[Chain]:
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
    paint = colours([Group("names", "all", "n", range(len(kinds)))])
    steps = list(hash_steps(names))
    rows = sum(1.4 + len(parts) for _, parts in steps)
    page = Page(n, TOP + rows * ROW + 0.5, f"Splitting a chain of {n} by hashing")
    y = TOP + 0.1

    def row(chain: Chain, words: str) -> None:
        own = [names[link.address] for link in chain]
        page.label(y, words)
        linked(page, chain, y, [paint[kinds.index(x)] for x in own], own)

    row([from_size(r, n) for r in range(n)], "colour")
    before = dict.fromkeys(range(n), n)
    for i, (bins, parts) in enumerate(steps):
        y += 1.4 * ROW
        page.label(y, f"iteration {i + 1}: bin")
        for address, q in bins.items():
            page.text(x_of(address), y, f"{q}", 8.5)
        for chain in parts:
            y += ROW
            group = _is_group(chain, before[chain[0].address], names)
            row(chain, f"bin {bins[chain[0].address]}" + ": a group" * group)
        before = {link.address: link.size for chain in parts for link in chain}
    return page.figure


def radix_figure(keys: Sequence[int] = KEYS) -> Figure:
    """A chain sorted by two digits: split by one, sorted by the other, linked up."""
    n, links = len(keys), [from_size(r, len(keys)) for r in range(len(keys))]
    high = {r: key >> DIGIT for r, key in enumerate(keys)}
    parts = sorted(_split([links], n, high), key=lambda c: high[c[0].address])
    page = Page(
        n, TOP + (len(parts) + 3.5) * ROW + 0.5, f"Radix sort on a chain of {n}"
    )
    y = TOP + 0.1
    _keys(page, y, "key", links, keys)
    for chain in parts:
        y += ROW * (1.4 if chain is parts[0] else 1)
        _keys(page, y, f"first digit {high[chain[0].address]:x}", chain, keys)
    y += 1.7 * ROW
    low = [key & ((1 << DIGIT) - 1) for key in keys]
    _keys(page, y, "second digit", _relinked(parts, n, low, DIGIT), keys, True)
    y += 1.4 * ROW
    _keys(page, y, "linked up", _relinked([links], n, keys, 2 * DIGIT), keys, True)
    return page.figure


def _relinked(chains: list[Chain], n: int, u: Sequence[int], bits: int) -> list[Link]:
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
    chain: Sequence[Link],
    keys: Sequence[int],
    moved: bool = False,
) -> None:
    """Processes with their keys where they stand, or moved side by side in order."""
    digits = sorted({key >> DIGIT for key in keys})
    paint = colours([Group("digits", "all", "d", range(len(digits)))])
    page.label(y, words)
    own = [keys[link.address] for link in chain]
    names = [f"P{x.address}: " if moved else "" for x in chain]
    places = [_at(x, i) for i, x in enumerate(chain)] if moved else list(chain)
    linked(
        page,
        places,
        y,
        [paint[digits.index(key >> DIGIT)] for key in own],
        [f"{name}{key:02x}" for name, key in zip(names, own, strict=True)],
    )


def _at(link: Link, column: int) -> Link:
    """A process drawn at another column, beside its neighbours."""
    right = None if link.right is None else column + 1
    return replace(link, address=column, right=right)
