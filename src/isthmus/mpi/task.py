"""One rank's part in a collective, and its three forms."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mpi4py import MPI

from ..choose import Choice
from ..choose_between import check
from ..recipe import Recipe
from . import forms, requests
from .buffers import Message
from .context_inter import InterContext
from .counts import complete
from .plan import Plan
from .reducing import Operator
from .room import Room

_log = logging.getLogger("isthmus")
#: requests to wait for, then the rounds
Settling = Generator[Sequence[MPI.Request], None, Recipe]
#: given a tag
Settle = Callable[[int], Settling]


@dataclass(frozen=True, slots=True)
class Task:
    """What a rank passed, and how its rounds are found; a rank that has no part has
    none."""

    context: InterContext
    name: str
    settle: Settle | None = None
    send: tuple[Message, ...] = ()
    recv: tuple[Message, ...] = ()
    operator: Operator | None = None
    #: whether others must be asked, so that a plan serves for no other call
    asks: bool = False
    #: the number of the root, where there is one and this rank knows it
    root: int | None = None
    #: the bytes that go to each rank and that are expected from each
    sent: dict[int, int] = field(default_factory=dict)
    expected: dict[int, int] = field(default_factory=dict)


def settled(
    collective: str, name: str, choice: Callable[[], Choice], commutative: bool = True
) -> str:
    """The algorithm asked for, if it will do; for "auto", the one that is chosen."""
    if name == "auto":
        found = choice()
        _log.debug("%s: %s", collective, found)
        return found.name
    check(collective, name, commutative)
    return name


def known(recipe: Callable[[], Recipe]) -> Settle:
    """Rounds for which nothing must be asked."""

    def settle(tag: int) -> Settling:
        yield from ()
        return recipe()

    return settle


def plan(task: Task, found: Recipe, tag: int = 0) -> Plan:
    """The rounds bound to the buffers."""
    room = Room()
    if task.operator is None:
        sources = [room.source(x) for x in task.send]
        targets = [room.target(x) for x in task.recv]
    else:
        sources = [room.elements(x) for x in task.send]
        targets = [room.elements(x, back=True) for x in task.recv]
    here = "recv" if found.in_place else "send"
    views = {here: room.joined(sources)} if sources else {}
    if targets:
        views["recv"] = room.joined(targets)
    return room.plan(found, views, task.context, tag, operator=task.operator)


def blocking(task: Task, key: Any) -> None:
    """Do it now."""
    if task.settle is not None:
        found = complete(task.settle(0))
        forms.blocking(task.context, None if task.asks else key, plan(task, found))


def _steps(task: Task, tag: int) -> Iterator[Sequence[MPI.Request]]:
    if task.settle is not None:
        found = yield from task.settle(tag)
        yield from forms.once(plan(task, found, tag))


def nonblocking(task: Task, tag: int) -> MPI.Request:
    """Start it and give its request."""
    forms.check_threads(task.context, task.name, "native")
    return requests.start(_steps(task, tag), task.context, task)


def persistent(task: Task, tag: int) -> MPI.Prequest:
    """Set it up, to be started any number of times."""
    forms.check_threads(task.context, task.name, "native")
    made = Plan([])
    if task.settle is not None:
        made = plan(task, complete(task.settle(tag)), tag)
    return requests.persistent(made.steps, made.free, task.context, task)
