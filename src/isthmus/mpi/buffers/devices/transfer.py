"""The copies from and to devices of one call under way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .overlap import Range, Transfers
    from .staged import Copies

#: how many copies from a device are begun ahead of the one that is awaited: the first
#: message should not wait until all of them are begun
COPIES_AHEAD = 3


class Transfer:
    """The copies of one call, as its plan says."""

    def __init__(
        self, transfers: Transfers, copies: Copies, arrays: Mapping[int, int]
    ) -> None:
        """Of the arrays of a call, by the buffers of the operation that stand for
        them."""
        self._plan, self._copies, self._arrays = transfers, copies, arrays
        self._events: list[Callable[[], bool]] = []
        self._come = 0
        self._written: list[tuple[int, int, int]] = []
        copies.begin()
        self._fetch_ahead()

    def _fetch_ahead(self) -> None:
        fetches = self._plan.fetches
        last = min(self._come + COPIES_AHEAD, len(fetches))
        for buffer, start, stop in fetches[len(self._events) : last]:
            fetch = self._copies.fetch(self._arrays[buffer], start, stop)
            self._events.append(fetch)

    def has_come(self, number: int) -> bool:
        """Whether the copies up to one are complete, by its number."""
        while self._come <= number:
            if not self._events[self._come]():
                return False
            self._come += 1
            self._fetch_ahead()
        return True

    def store(self, ranges: tuple[Range, ...]) -> None:
        """Ranges were written for the last time: copy them to their devices, when there
        is enough to be worth it."""
        self._written += [(self._arrays[k], low, high) for k, low, high in ranges]
        if sum(b - a for _, a, b in self._written) >= self._plan.stored_at_once:
            self._begin_stores()

    def _begin_stores(self) -> None:
        self._copies.store(_neighbours_joined(self._written))
        self._written = []

    def has_stored(self) -> bool:
        """Copy what is left, and wait for all of it: copies on one machine come to
        their end."""
        self._begin_stores()
        self._copies.wait(True)
        return True


def _neighbours_joined(
    ranges: list[tuple[int, int, int]],
) -> list[tuple[int, int, int]]:
    result: list[tuple[int, int, int]] = []
    for k, low, high in sorted(ranges):
        if result and result[-1][0] == k and result[-1][2] == low:
            low = result.pop()[1]
        result.append((k, low, high))
    return result
