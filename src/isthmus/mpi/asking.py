"""Calls that depend on what others say, and what is kept of them."""

from __future__ import annotations

from typing import Any

from . import forms, task
from .agreement import Kept
from .board import Step
from .counts import complete
from .task import Task


def ask(made: Task, key: Any) -> Kept | None:
    """Do a call by what others say; what is kept of that, if anything."""
    assert made.question is not None and made.among is not None
    answer = complete(made.question(True))
    number = made.among.number(answer)  # by all of them, whatever they can keep
    ways = made.laid and made.laid(*answer)
    if ways is not None:
        made.among.same(number, ways)
    elif steps := _planned(made, answer, key):
        ways = ((), steps), ((), steps)
    if ways is None or key is None or made.context.checked:
        return None
    return Kept(number, ways)


def _planned(made: Task, answer: tuple[Any, ...], key: Any) -> tuple[Step, ...]:
    """Do it by a plan; what does that again, if it is kept."""
    key, c = key and (key, answer), made.context
    if not c.run(key):
        forms.blocking(c, key, task.plan(made, answer))
    kept = c.plans.get(key)
    return () if kept is None else (c.runner(kept),)
