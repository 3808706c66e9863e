"""Which cases of a test run: some of them, or all with `pytest --long`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

#: set by `pytest --long` for itself and for the processes that it starts
LONG = "ISTHMUS_TEST_LONG" in os.environ

T = TypeVar("T")


def some(cases: Iterable[T], every: int, turn: int = 0) -> list[T]:
    """Every so many of the cases, beginning elsewhere in each turn; or all of them."""
    found = list(cases)
    return found if LONG else found[turn % min(every, len(found) or 1) :: every]
