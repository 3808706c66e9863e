"""How long this process waits, and waiting for what can be looked at."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

#: looks between two looks at the clock
LOOKS = 64
_give_way = os.sched_yield


@dataclass(slots=True)
class Limit:
    """How many seconds this process waits on a communicator; None for as long as it
    takes."""

    seconds: float | None = None

    def leave(self) -> None:
        """The communicator is no more."""

    def free(self) -> None:
        """There is nothing to give back."""


def nothing() -> None:
    """Do nothing."""


def until(
    is_ready: Callable[[], Any],
    limit: Limit,
    look_around: Callable[[], Any] = nothing,
) -> bool:
    """Look until something is ready; False where that takes longer than the limit.

    Whoever waits gives way to others, and now and then looks around: that may raise.
    """
    begin = 0.0
    while True:
        for _ in range(LOOKS):
            if is_ready():
                return True
            _give_way()
        look_around()
        now = monotonic()
        begin = begin or now
        if limit.seconds is not None and now - begin > limit.seconds:
            return False
