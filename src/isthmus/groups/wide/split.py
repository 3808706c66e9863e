"""The algorithms that split all processes at once, by the names of `groups.split`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from ..dialogue import WORD
from ..place import Entry
from . import serial
from .bitonic import bitonic
from .cheng import cheng
from .entries import Entries, Places, entries
from .hashed import hashed
from .links import NONE, Links, whole
from .network import Array, Network
from .radix import radix
from .scans import double_scan
from .segments import Sort, by_sort
from .trees import gather_scatter

Split: TypeAlias = Callable[[Network, Links, Entries], Places]


def _sorting(sort: Sort) -> Split:
    """Split by a parallel sort, in which those left out come last."""

    def split(net: Network, links: Links, entry: Entries) -> Places:
        out = entry.color < 0
        color = np.where(out, len(entry.codes), entry.color)
        weights = entry.color_weight + WORD, entry.key_weight
        done = by_sort(net, links, color, entry.key, weights, sort)
        return Places(done.only(~out))

    return split


def _hash64(net: Network, links: Links, entry: Entries) -> Places:
    return hashed(net, links, entry, 64)


ALGORITHMS: dict[str, Split] = {
    "allgather_group": serial.allgather_group,
    "allgather_mpi": serial.allgather_mpi,
    "gather_scatter": _sorting(gather_scatter),
    "bitonic": _sorting(bitonic),
    "radix": radix,
    "hash": hashed,
    "hash64": _hash64,
}


def find(name: str) -> Split:
    """The algorithm of that name; chengM for any M."""
    found = re.fullmatch(r"cheng([1-9]\d*)", name)
    return _sorting(cheng(int(found[1]))) if found else ALGORITHMS[name]


def place(net: Network, items: Sequence[Entry] | Entries, algorithm: str) -> Places:
    """Split the chain of all processes; nothing is left where neither is asked for."""
    entry = items if isinstance(items, Entries) else entries(items)
    links, zeros = whole(net.n), np.zeros(net.n, np.int64)
    if not entry.split and not entry.reorder:
        return Places(links, zeros)
    done = find(algorithm)(net, links, entry)
    return done if entry.split else replace(done, id=zeros)


def number(net: Network, places: Places) -> Places:
    """Number the groups in the order of their leaders' ranks."""
    if places.id is not None:
        return places
    group = places.links
    leads = (group.rank == 0).astype(np.int64)
    words: Array = np.zeros(net.n, np.int64)
    done = double_scan(
        net, whole(net.n), leads, leads, np.add, np.add, lambda rows: WORD
    )
    before = done.before
    first = double_scan(
        net, group, before, words, lambda x, y: x, lambda x, y: x, lambda rows: WORD
    )
    found = np.where(leads > 0, before, first.before)
    return replace(places, id=np.where(group.size > 0, found, NONE))
