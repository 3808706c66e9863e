"""The choice of cases that a test runs: a sample, or all with `pytest --long`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

#: set by `pytest --long`, and inherited by the processes of the tests
LONG = "ISTHMUS_TEST_LONG" in os.environ

T = TypeVar("T")


def some(cases: Iterable[T], stride: int, turn: int = 0) -> list[T]:
    """Every stride-th case, from another case on in each turn; all cases if LONG."""
    all_cases = list(cases)
    if LONG:
        return all_cases
    return all_cases[turn % min(stride, len(all_cases) or 1) :: stride]
