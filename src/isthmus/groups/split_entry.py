"""A process's entry into a split, its place in a group, and the numbers of groups."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .batch import any_process, codes, each, exists, pick
from .chain import ChainLink, empty_link
from .compare import Code
from .dialogue import Dialogue
from .scans import double_scan, exscan


@dataclass(frozen=True, slots=True)
class SplitEntry:
    """A process's colour, None if the process is left out, and its key.

    Without `split` all colours are b"", without `reorder` all keys.
    """

    color: Code | None
    key: Code = b""
    split: bool = True
    reorder: bool = True

    @property
    def sortable(self) -> tuple[bool, Code]:
        """The colour; processes left out come last, equal to no colour of a user."""
        none = each(lambda code: code is None, self.color)
        return none, b"" if self.color is None else self.color


def batched(entries: Sequence[SplitEntry]) -> SplitEntry:
    """The entries of all processes; all have the same `split` and `reorder`."""
    color, key = (
        codes([getattr(entry, name) for entry in entries]) for name in ("color", "key")
    )
    return SplitEntry(color, key, entries[0].split, entries[0].reorder)  # type: ignore


@dataclass(frozen=True, slots=True)
class GroupPlace:
    """A process's link in its group, None if left out, and the group's number.

    `id` and `groups`, the number of groups, are None if unknown to the algorithm.
    """

    link: ChainLink | None
    id: int | None = None
    groups: int | None = None


def placed(link: ChainLink) -> GroupPlace:
    """The place of a link, without the link of a process in no chain."""
    return GroupPlace(link if any_process(link.size > 0) else None)


def number(link: ChainLink, place: GroupPlace) -> Dialogue[GroupPlace]:
    """Number the groups in the order of their leaders' ranks: 2⌈log n⌉ rounds.

    By leaders, since every algorithm knows them; not all algorithms sort the colours.
    """
    if place.groups is not None:
        return place
    group = empty_link(link) if place.link is None else place.link
    leads = (group.rank == 0) * 1
    leaders = yield from double_scan(link, leads, leads, operator.add)
    before = pick(exists(link.left), leaders.before, 0)
    groups = before + leads + pick(exists(link.right), leaders.after, 0)
    first_group_number = yield from exscan(group, before, _first)
    group_number = pick(
        group.size > 0, pick(leads > 0, before, first_group_number), None
    )
    return GroupPlace(place.link, group_number, groups)


def _first(x: Any, y: Any) -> Any:
    return x
