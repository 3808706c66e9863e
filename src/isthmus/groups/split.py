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
from .batch import each, per_process
from .chain import ChainLink, masked
from .cheng import cheng
from .compare import Compare, Compared, comparing
from .dialogue import Dialogue
from .encoding import canonical
from .hash_split import hash_split
from .segments import by_sort
from .sorts import Sort
from .split_entry import GroupPlace, SplitEntry, number, placed

#: The most processes for a table of all colours, and for one of colours and keys.
#: Measured in Python on MPICH: a row of the table takes 1.6 µs to read and sort, a
#: step of a dialogue 10 to 15 µs, and hash64 needs fewer steps than bitonic.
MAX_SERIAL_PROCESSES = 256
MAX_SERIAL_PROCESSES_WITH_KEYS = 512
#: the arguments of a call with comparisons of its own
COLOR_COMPARISON, KEY_COMPARISON = "compare_color", "compare_key"
#: items of a sorter where "cheng" comes without a number
CHENG_ITEMS_PER_SORTER = 512


@dataclass(frozen=True)
class SplitAlgorithm:
    """A split algorithm: a process's dialogue, and the idea in one line."""

    name: str
    split: Callable[[ChainLink, SplitEntry], Dialogue[GroupPlace]]
    idea: str
    #: works on the chain of all processes of a communicator only
    needs_all: bool = False
    #: colours must have an encoding; a comparison is not enough
    encoded: bool = False
    #: colours and keys must be integers
    integers: bool = False

    def check(self, link: ChainLink, processes: int, entry: SplitEntry) -> None:
        """Raise if the algorithm cannot split a chain by these colours and keys."""
        if self.needs_all and link.size != processes:
            raise ValueError(f"{self.name} needs a chain of all processes")
        if self.encoded and isinstance(entry.color, Compared):
            raise ValueError(f"{self.name} needs a colour with an encoding")
        if self.integers:
            radixes.check(entry.color, "colour")
            radixes.check(entry.key, "key")


def _sorting(sort: Sort) -> Callable[[ChainLink, SplitEntry], Dialogue[GroupPlace]]:
    """A split that sorts all entries by colour and key, and cuts the sorted chain."""

    def split(link: ChainLink, entry: SplitEntry) -> Dialogue[GroupPlace]:
        group_place = yield from by_sort(link, entry.sortable, entry.key, sort)
        return placed(masked(group_place, each(radixes.has_color, entry.color)))

    return split


SPLIT_ALGORITHMS = {
    entry.name: entry
    for entry in (
        SplitAlgorithm(
            "allgather_group",
            serial.allgather_group,
            "every process gathers all entries along the chain and sorts them",
        ),
        SplitAlgorithm(
            "allgather_mpi",
            serial.allgather_mpi,
            "the same with the MPI library's own allgather",
            needs_all=True,
        ),
        SplitAlgorithm(
            "gather_scatter",
            _sorting(per_process(sorts.gather_scatter)),
            "entries are merged up a tree and scattered in order",
        ),
        SplitAlgorithm(
            "cheng",
            _sorting(per_process(cheng(CHENG_ITEMS_PER_SORTER))),
            "a few processes sort for all; chengM has sorters of at most M entries",
        ),
        SplitAlgorithm(
            "bitonic", _sorting(sorts.bitonic), "entries go through Batcher's network"
        ),
        SplitAlgorithm(
            "radix",
            radixes.radix,
            "a chain is split and rejoined, four bits of an integer at a time; "
            "radix_full does not leave out the leading bits that all share",
            integers=True,
        ),
        SplitAlgorithm(
            "hash",
            hash_split,
            "hash bins split the chain until every part has one colour",
            encoded=True,
        ),
        SplitAlgorithm(
            "hash64",
            partial(hash_split, threshold=64),
            "the same, and parts of at most 64 processes gather their entries",
            encoded=True,
        ),
    )
}


def find(name: str) -> SplitAlgorithm:
    """The algorithm of a name, or an error with all known names."""
    if name in SPLIT_ALGORITHMS:
        return SPLIT_ALGORITHMS[name]
    if name == "radix_full":
        whole_words_split = partial(radixes.radix, whole_words=True)
        return replace(SPLIT_ALGORITHMS["radix"], name=name, split=whole_words_split)
    number = re.fullmatch(r"cheng([1-9]\d*)", str(name))
    if number:
        sort = per_process(cheng(int(number[1])))
        return replace(SPLIT_ALGORITHMS["cheng"], name=name, split=_sorting(sort))
    known_names = ", ".join(
        ["auto", *SPLIT_ALGORITHMS, "radix_full", "cheng128 and the like"]
    )
    raise ValueError(f"no algorithm {name!r} to split by; known: {known_names}")


def choose(
    chain_size: int, is_whole_communicator: bool, reorder: bool, has_comparison: bool
) -> str:
    """The algorithm of "auto", from values known to all processes.

    A chain of few processes takes a table of all entries, since it needs the fewest
    steps; a longer chain an algorithm without a table, whose memory does not grow.
    """
    if chain_size <= (
        MAX_SERIAL_PROCESSES_WITH_KEYS
        if reorder or has_comparison
        else MAX_SERIAL_PROCESSES
    ):
        return "allgather_mpi" if is_whole_communicator else "allgather_group"
    return "bitonic" if reorder or has_comparison else "hash64"


def entry_of(
    color: Any,
    key: Any,
    split: bool,
    reorder: bool,
    compare: Mapping[str, Compare] = MappingProxyType({}),
) -> SplitEntry:
    """Colour and key in their canonical forms, or with the call's comparisons."""
    is_left_out = split and color is None
    return SplitEntry(
        None
        if is_left_out
        else canonical(color, COLOR_COMPARISON, compare.get(COLOR_COMPARISON))
        if split
        else b"",
        canonical(key, KEY_COMPARISON, compare.get(KEY_COMPARISON))
        if reorder and not is_left_out
        else b"",
        split,
        reorder,
    )


def place(
    link: ChainLink, entry: SplitEntry, algorithm: SplitAlgorithm
) -> Dialogue[GroupPlace]:
    """The place of a process by an algorithm.

    With neither colours nor keys the group is the chain itself.
    """
    if not entry.split and not entry.reorder:
        return GroupPlace(link, 0, 1)
    group_place = yield from algorithm.split(link, entry)
    return group_place if entry.split else GroupPlace(group_place.link, 0, 1)


def split(
    link: ChainLink,
    processes: int,
    color: Any,
    key: Any = None,
    *,
    split: bool = True,
    reorder: bool = True,
    algorithm: str = "auto",
    compare_color: Compare | None = None,
    compare_key: Compare | None = None,
) -> Dialogue[GroupPlace]:
    """A split: agree on the call, choose, split, number the groups.

    `processes` is the size of the communicator below. A wrong argument of one process
    is an error on all processes before the chain is split, so that none waits for it.
    """
    comparisons = {COLOR_COMPARISON: compare_color, KEY_COMPARISON: compare_key}
    compare = {role: f for role, f in comparisons.items() if f is not None}
    entry, error = SplitEntry(None), None
    try:
        for role, function in compare.items():
            if not callable(function):
                raise TypeError(f"{role} is {function!r}, not a function")
        entry = entry_of(color, key, split, reorder, compare)
        if algorithm != "auto":
            find(algorithm).check(link, processes, entry)
    except Exception as exception:
        error = exception
    call = ("split", str(algorithm), bool(split), bool(reorder), *compare)
    facts = (int(reorder and key is not None), int(isinstance(entry.color, Compared)))
    keys, compared = yield from agree(link, call, facts, error)
    if reorder and not keys:
        entry = replace(entry, key=b"", reorder=False)
    if algorithm == "auto":
        is_all = link.size == processes
        algorithm = choose(link.size, is_all, entry.reorder, bool(compared))
    dialogue = place(link, entry, find(algorithm))
    group_place = yield from comparing(dialogue, compare) if compare else dialogue
    return (yield from number(link, group_place))
