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
from .agreement import Agreement
from .board import Ways
from .buffers import Message
from .context_inter import InterContext
from .counts import complete
from .plan import Plan
from .progress import EMPTY
from .reducing import Operator
from .room import Room

_log = logging.getLogger("isthmus")
#: a message that is complete once it is received: what a rank does without a part
_NOTHING = EMPTY, MPI.PROC_NULL
#: requests to wait for, then what others said
Asking = Generator[Sequence[MPI.Request], None, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Laid:
    """How a call is done in memory that all share: what must be asked first, and what
    gives the ways by what others said, if there are any."""

    question: Callable[[bool], Asking]
    ways: Callable[..., Ways | None]


@dataclass(frozen=True, slots=True)
class Task:
    """What a rank passed, and its rounds; a rank that has no part has none."""

    context: InterContext
    name: str
    #: gives the rounds; its arguments are what others said, if they must be asked
    recipe: Callable[..., Recipe] | None = None
    send: tuple[Message, ...] = ()
    recv: tuple[Message, ...] = ()
    operator: Operator | None = None
    #: what must be asked first, at once or in requests
    question: Callable[[bool], Asking] | None = None
    #: those who are asked, and ask
    among: Agreement | None = None
    #: how it is done in memory that all share
    laid: Laid | None = None
    #: gives the arguments of an Alltoallw that does the same, if there is one
    whole: Callable[[], tuple[Any, Any]] | None = None
    #: gives, of a task and by what others said, the MPI library's own persistent
    #: request for it, if that is faster
    own: Callable[..., MPI.Prequest | None] | None = None
    #: the bytes of a vector or block, if all who have a part in it know them
    nbytes: int = 0
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


def plan(task: Task, answer: tuple[Any, ...], tag: int = 0) -> Plan:
    """The rounds bound to the buffers."""
    if task.recipe is None:
        return Plan([])
    found, room = task.recipe(*answer), Room()
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
    forms.blocking(task.context, key, plan(task, ()))


def _asked(task: Task) -> Asking:
    """Ask what must be asked, if anything."""
    return () if task.question is None else (yield from task.question(False))


def _steps(task: Task, tag: int) -> Iterator[Sequence[MPI.Request]]:
    answer = yield from _asked(task)
    yield from forms.once(plan(task, answer, tag))


def nonblocking(task: Task, tag: int) -> MPI.Request:
    """Start it and give its request."""
    if task.whole is not None and task.question is None:
        native = task.context.comm.Ialltoallw(*task.whole())
        return task.context.request(native, (task, native))
    if task.recipe is None:
        return task.context.comm.Irecv(*_NOTHING)
    forms.check_threads(task.context, task.name, "native")
    return requests.start(_steps(task, tag), task.context, task)


def persistent(task: Task, tag: int) -> MPI.Prequest:
    """Set it up, to be started any number of times."""
    if task.recipe is None:
        return task.context.comm.Recv_init(*_NOTHING)
    with task.context.uninterrupted():
        answer = complete(_asked(task))
    native = single(task, answer)
    if native is not None:
        return task.context.kept(native, (task, native))
    forms.check_threads(task.context, task.name, "native")
    made = plan(task, answer, tag)
    if made.only_request is not None:
        return requests.kept(made.only_request, task)
    return requests.persistent(made, task.context, task)


def single(task: Task, answer: tuple[Any, ...]) -> MPI.Prequest | None:
    """The one request of the MPI library that does it, if it has such requests."""
    native = None if task.own is None else task.own(task, *answer)
    if native is None and task.whole is not None:
        native = requests.own(task.context.comm.Alltoallw_init, *task.whole())
    return native
