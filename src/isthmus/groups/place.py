"""What a process brings to a split, what it gets, and how groups are numbered."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from .chain import Link
from .compare import Code
from .dialogue import Dialogue
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
        return self.color is None, b"" if self.color is None else self.color


@dataclass(frozen=True, slots=True)
class Place:
    """A process's link in its group, None if it is left out; the group's number, and
    how many groups there are, both None if the algorithm does not know them."""

    link: Link | None
    id: int | None = None
    groups: int | None = None


def number(link: Link, place: Place) -> Dialogue[Place]:
    """Number the groups in the order of their leaders' ranks: 2⌈log n⌉ rounds.

    This order is the same whatever the algorithm, also where colours were never sorted.
    """
    if place.groups is not None:
        return place
    group = place.link
    leads = int(group is not None and group.rank == 0)
    done = yield from double_scan(link, leads, leads, operator.add)
    before = done.before or 0
    groups = before + leads + (done.after or 0)
    if group is None:
        return Place(None, None, groups)
    first = yield from exscan(group, before, _first)
    return Place(group, before if leads else first, groups)


def _first(x: Any, y: Any) -> Any:
    return x
