"""The copies from and to devices of a call under way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .overlap import Range, Transfers
    from .staged import Copies

#: copies from a device begun ahead of the awaited copy: to begin all of them at once
#: would delay the first message
MOST_COPIES_AHEAD = 3


class Transfer:
    """The progress of the copies that a plan has for a call."""

    def __init__(
        self, transfers: Transfers, copies: Copies, arrays: Mapping[int, int]
    ) -> None:
        """With the array of each buffer of the operation, by numbers."""
        self._plan, self._copies, self._arrays = transfers, copies, arrays
        self._events: list[Callable[[], bool]] = []
        #: the number of complete copies from the device
        self._complete = 0
        self._written: list[tuple[int, int, int]] = []
        copies.begin()
        self._fetch_ahead()

    def _fetch_ahead(self) -> None:
        fetches = self._plan.fetches
        last = min(self._complete + MOST_COPIES_AHEAD, len(fetches))
        for buffer, start, stop in fetches[len(self._events) : last]:
            fetch = self._copies.fetch(self._arrays[buffer], start, stop)
            self._events.append(fetch)

    def has_come(self, number: int) -> bool:
        """Whether the copies up to a number are complete."""
        while self._complete <= number:
            if not self._events[self._complete]():
                return False
            self._complete += 1
            self._fetch_ahead()
        return True

    def store(self, ranges: tuple[Range, ...]) -> None:
        """Copy ranges that were written for the last time to their devices.

        Copies begin once enough bytes are collected, because short copies do not reach
        the full speed of a device.
        """
        self._written += [(self._arrays[k], low, high) for k, low, high in ranges]
        if sum(b - a for _, a, b in self._written) >= self._plan.stored_at_once:
            self._begin_stores()

    def _begin_stores(self) -> None:
        self._copies.store(_neighbours_joined(self._written))
        self._written = []

    def has_stored(self) -> bool:
        """Copy the remaining ranges, and wait for the end of all copies.

        The wait needs no progress of MPI, since copies never wait for other ranks.
        """
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
