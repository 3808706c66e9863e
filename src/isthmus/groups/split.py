"""Splitting a chain by colour and ordering it by key: the algorithms, by name.

Moody, Ahn, de Supinski, "Exascale algorithms for generalized MPI_Comm_split", 2011.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from . import radix as radixes, serial, sorts
from .agree import agree
from .chain import Link, masked
from .cheng import cheng
from .compare import Compare, Compared, comparing
from .dialogue import Dialogue
from .encoding import canonical
from .hash_split import hash_split
from .lanes import each, per_process
from .place import Entry, Place, number, placed
from .segments import by_sort
from .sorts import Sort

#: Up to so many processes each gathers all colours; with keys, up to the second.
#: Measured in Python on MPICH: a row of the table takes 1.6 µs to read and sort, a
#: step of a dialogue 10 to 15 µs, and hash64 needs fewer steps than bitonic.
SERIAL, SERIAL_WITH_KEYS = 256, 512
#: whose comparisons a call can give
COLOR, KEY = "compare_color", "compare_key"
#: items of a sorter where "cheng" comes without a number
ITEMS = 512


@dataclass(frozen=True)
class Algorithm:
    """A split algorithm: what a process does, and the idea in one line."""

    name: str
    split: Callable[[Link, Entry], Dialogue[Place]]
    idea: str
    #: works on the chain of all processes of a communicator only
    needs_all: bool = False
    #: colours must have an encoding; a comparison is not enough
    encoded: bool = False
    #: colours and keys must be integers
    integers: bool = False

    def check(self, link: Link, processes: int, entry: Entry) -> None:
        """Raise if it cannot do what a process asks for."""
        if self.needs_all and link.size != processes:
            raise ValueError(f"{self.name} needs a chain of all processes")
        if self.encoded and isinstance(entry.color, Compared):
            raise ValueError(f"{self.name} needs a colour with an encoding")
        if self.integers:
            radixes.check(entry.color, "colour")
            radixes.check(entry.key, "key")


def _sorting(sort: Sort) -> Callable[[Link, Entry], Dialogue[Place]]:
    """Split by a parallel sort."""

    def split(link: Link, entry: Entry) -> Dialogue[Place]:
        done = yield from by_sort(link, entry.sortable, entry.key, sort)
        return placed(masked(done, each(radixes.is_some, entry.color)))

    return split


def _hash64(link: Link, entry: Entry) -> Dialogue[Place]:
    return (yield from hash_split(link, entry, 64))


ALGORITHMS = {
    entry.name: entry
    for entry in (
        Algorithm(
            "allgather_group",
            serial.allgather_group,
            "every process gathers all entries along the chain and sorts them",
        ),
        Algorithm(
            "allgather_mpi",
            serial.allgather_mpi,
            "the same with the MPI library's own allgather",
            needs_all=True,
        ),
        Algorithm(
            "gather_scatter",
            _sorting(per_process(sorts.gather_scatter)),
            "entries are merged up a tree and scattered in order",
        ),
        Algorithm(
            "cheng",
            _sorting(per_process(cheng(ITEMS))),
            "a few processes sort for all; chengM has sorters of at most M entries",
        ),
        Algorithm(
            "bitonic", _sorting(sorts.bitonic), "entries go through Batcher's network"
        ),
        Algorithm(
            "radix",
            radixes.radix,
            "a chain is split and rejoined, four bits of an integer at a time; "
            "radix_full does not leave out the leading bits that all share",
            integers=True,
        ),
        Algorithm(
            "hash",
            hash_split,
            "hash bins split the chain until every part has one colour",
            encoded=True,
        ),
        Algorithm(
            "hash64",
            _hash64,
            "the same, and parts of at most 64 processes gather their entries",
            encoded=True,
        ),
    )
}


def find(name: str) -> Algorithm:
    """The algorithm of that name, or an error that lists the names there are."""
    if name in ALGORITHMS:
        return ALGORITHMS[name]
    if name == "radix_full":
        full = partial(radixes.radix, whole_words=True)
        return replace(ALGORITHMS["radix"], name=name, split=full)
    number = re.fullmatch(r"cheng([1-9]\d*)", str(name))
    if number:
        sort = per_process(cheng(int(number[1])))
        return replace(ALGORITHMS["cheng"], name=name, split=_sorting(sort))
    known = ", ".join(["auto", *ALGORITHMS, "radix_full", "cheng128 and the like"])
    raise ValueError(f"no algorithm {name!r} to split by; known: {known}")


def choose(n: int, is_all: bool, reorder: bool, compared: bool) -> str:
    """The algorithm of "auto", from what all processes know.

    A table of all entries where it is short; otherwise one without a table.
    """
    if n <= (SERIAL_WITH_KEYS if reorder or compared else SERIAL):
        return "allgather_mpi" if is_all else "allgather_group"
    return "bitonic" if reorder or compared else "hash64"


def entry_of(
    color: Any,
    key: Any,
    split: bool,
    reorder: bool,
    compare: Mapping[str, Compare] = MappingProxyType({}),
) -> Entry:
    """Colour and key in their canonical forms, or with a comparison of their own."""
    out = split and color is None
    return Entry(
        None if out else canonical(color, COLOR, compare.get(COLOR)) if split else b"",
        canonical(key, KEY, compare.get(KEY)) if reorder and not out else b"",
        split,
        reorder,
    )


def place(link: Link, entry: Entry, algorithm: Algorithm) -> Dialogue[Place]:
    """Run an algorithm; nothing is left to do where neither split nor reorder is."""
    if not entry.split and not entry.reorder:
        return Place(link, 0, 1)
    done = yield from algorithm.split(link, entry)
    return done if entry.split else Place(done.link, 0, 1)


def split(
    link: Link,
    processes: int,
    color: Any,
    key: Any = None,
    *,
    split: bool = True,
    reorder: bool = True,
    algorithm: str = "auto",
    compare_color: Compare | None = None,
    compare_key: Compare | None = None,
) -> Dialogue[Place]:
    """A split: agree on the call, choose, split, number the groups.

    `processes` is how many the communicator below has. What one process gives wrong is
    an error on all of them, before anything is split.
    """
    given = {COLOR: compare_color, KEY: compare_key}
    compare = {role: f for role, f in given.items() if f is not None}
    entry, error = Entry(None), None
    try:
        for role, function in compare.items():
            if not callable(function):
                raise TypeError(f"{role} is {function!r}, not a function")
        entry = entry_of(color, key, split, reorder, compare)
        if algorithm != "auto":
            find(algorithm).check(link, processes, entry)
    except Exception as wrong:
        error = wrong
    call = ("split", str(algorithm), bool(split), bool(reorder), *compare)
    facts = (int(reorder and key is not None), int(isinstance(entry.color, Compared)))
    keys, compared = yield from agree(link, call, facts, error)
    if reorder and not keys:
        entry = replace(entry, key=b"", reorder=False)
    if algorithm == "auto":
        is_all = link.size == processes
        algorithm = choose(link.size, is_all, entry.reorder, bool(compared))
    dialogue = place(link, entry, find(algorithm))
    done = yield from comparing(dialogue, compare) if compare else dialogue
    return (yield from number(link, done))
