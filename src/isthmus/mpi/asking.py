"""Calls that depend on what others say, and what is kept of them."""

from __future__ import annotations

from typing import Any

from . import forms, task
from .agreement import Kept
from .board import Step
from .counts import complete
from .task import Task


def asks(made: Task) -> bool:
    """Whether others are asked first: where they must be, or share memory for it."""
    if made.question is not None:
        return True
    return made.laid is not None and made.context.all_agree.board is not None


def ask(made: Task, key: Any) -> Kept | None:
    """Do a call by what others say; what is kept of that, if anything."""
    question, laid = made.question, made.laid
    if question is None and laid is not None:
        question = laid.question
    assert question is not None and made.among is not None
    answer = complete(question(True))
    number = made.among.number(answer)  # by all of them, whatever they can keep
    ways = None if laid is None else laid.ways(*answer)
    if ways is not None:
        made.among.same(number, ways)
    elif steps := _planned(made, answer if made.question else (), key):
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
