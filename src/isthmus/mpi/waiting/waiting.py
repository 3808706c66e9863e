"""The time limit of a communicator, and polling within the limit."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

#: polls of a condition between two looks at the clock
POLLS_BETWEEN_CLOCKS = 64
_give_way = os.sched_yield


@dataclass(slots=True)
class TimeLimit:
    """How many seconds this process waits on a communicator; None for no limit."""

    seconds: float | None = None

    def leave(self) -> None:
        """Nothing: the limit holds no memory of the communicator that goes."""

    def free(self) -> None:
        """Nothing: the limit holds no memory of the communicator that is freed."""


def _nothing() -> None:
    pass


def until(
    is_ready: Callable[[], Any],
    limit: TimeLimit,
    look_around: Callable[[], Any] = _nothing,
) -> bool:
    """Poll `is_ready` until true; False after the limit.

    Between polls the processor is offered to other processes, since ranks may share a
    core. Now and then `look_around` is called, which may raise: a lost process would
    never make the condition true.
    """
    begin = 0.0
    while True:
        for _ in range(POLLS_BETWEEN_CLOCKS):
            if is_ready():
                return True
            _give_way()
        look_around()
        now = monotonic()
        begin = begin or now
        if limit.seconds is not None and now - begin > limit.seconds:
            return False
