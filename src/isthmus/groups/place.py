"""What a process brings to a split, what it gets, and how groups are numbered."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .chain import Link, empty_link
from .compare import Code
from .dialogue import Dialogue
from .lanes import any_lane, codes, each, exists, pick
from .scans import double_scan, exscan


@dataclass(frozen=True, slots=True)
class Entry:
    """A process's colour, None if it is left out, and its key.

    Without `split` there is one colour, without `reorder` one key: both are b"" then.
    """

    color: Code | None
    key: Code = b""
    split: bool = True
    reorder: bool = True

    @property
    def sortable(self) -> tuple[bool, Code]:
        """The colour with those left out at the end, equal to no colour of a user."""
        none = each(lambda code: code is None, self.color)
        return none, b"" if self.color is None else self.color


def in_lanes(entries: Sequence[Entry]) -> Entry:
    """The entries of all processes; all have the same `split` and `reorder`."""
    color, key = (
        codes([getattr(x, name) for x in entries]) for name in ("color", "key")
    )
    return Entry(color, key, entries[0].split, entries[0].reorder)  # type: ignore


@dataclass(frozen=True, slots=True)
class Place:
    """A process's link in its group, None if it is left out; the group's number, and
    how many groups there are, both None if the algorithm does not know them."""

    link: Link | None
    id: int | None = None
    groups: int | None = None


def placed(link: Link) -> Place:
    """The place of a link; None if it is in no chain."""
    return Place(link if any_lane(link.size > 0) else None)


def number(link: Link, place: Place) -> Dialogue[Place]:
    """Number the groups in the order of their leaders' ranks: 2⌈log n⌉ rounds.

    This order is the same whatever the algorithm, also where colours were never sorted.
    """
    if place.groups is not None:
        return place
    group = empty_link(link) if place.link is None else place.link
    leads = (group.rank == 0) * 1
    done = yield from double_scan(link, leads, leads, operator.add)
    before = pick(exists(link.left), done.before, 0)
    groups = before + leads + pick(exists(link.right), done.after, 0)
    first = yield from exscan(group, before, _first)
    id_ = pick(group.size > 0, pick(leads > 0, before, first), None)
    return Place(place.link, id_, groups)


def _first(x: Any, y: Any) -> Any:
    return x
