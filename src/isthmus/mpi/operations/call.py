"""One rank's part in a collective: what it passed, as values and memory."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mpi4py import MPI

from ...choose.between import FLAT, LIBRARY, NODE, check, untried
from ...choose.choose import Choice
from ...choose.recipe import Recipe
from ..context.check import agree, share
from ..context.context import Context
from ..memory import buffers
from ..memory.buffers import Message
from ..memory.reducing import Operator
from .negotiation import Negotiation

_log = logging.getLogger("isthmus")


@dataclass(frozen=True, slots=True)
class Call:
    """What a rank passed, and its rounds; a rank that has no part has none."""

    context: Any
    name: str
    #: gives the rounds; its arguments are what others said, if they must be asked
    recipe: Callable[..., Recipe] | None = None
    send: tuple[Message, ...] = ()
    recv: tuple[Message, ...] = ()
    operator: Operator | None = None
    #: what must be asked first
    negotiation: Negotiation | None = None
    #: the numbers of those who have a part in it, if not all
    among: tuple[int, ...] | None = None
    #: gives the arguments of an Alltoallw that does the same, if there is one
    alltoallw: Callable[[], tuple[Any, Any]] | None = None
    #: gives, of a call and by what others said, the MPI library's own persistent
    #: request for it, if that is faster
    own: Callable[..., MPI.Prequest | None] | None = None
    #: the bytes of a vector or block, if all who have a part in it know them
    nbytes: int = 0
    #: the number of the root, where there is one and this rank knows it
    root: int | None = None
    #: the bytes that go to each rank, or to everyone, and that are expected from each
    sent: int | dict[int, int] = 0
    expected: dict[int, int] = field(default_factory=dict)
    #: whether the MPI library's own blocking call is faster
    fallback: bool = False
    #: whether what is sent lies where results go, and so must be copied first
    in_place: bool = False
    #: whether its blocks may differ
    v: bool = False

    @property
    def counted(self) -> bool:
        """Whether some ranks must count it that cannot know how it is done: those who
        have no part in it, or learn it from others."""
        rooted = self.among is not None or self.recipe is None
        return rooted or self.negotiation is not None


def chosen(
    c: Any,
    collective: str,
    name: str,
    nbytes: int,
    flat: Callable[[], Choice],
    commutative: bool = True,
) -> tuple[str, bool]:
    """The algorithm asked for, if it will do; for "auto", the one that is chosen, and
    whether the MPI library's own call is faster still."""
    if name != "auto":
        check(collective, name, commutative)
        return name, False
    found, times = flat(), c.times.get(collective)
    if times is None:
        # two have one message; of irregular calls, some ranks would have to ask
        many = c.comm.size > 2 and not collective.endswith("v")
        if commutative and c.node_memory and many:
            found = untried(found, c.per_byte(collective))
        log_choice(collective, found)
        return found.name, False
    ours = [FLAT, NODE] if commutative else [FLAT]
    # copies from and to devices run beside our rounds, not beside the library's call
    staged = c.devices and nbytes > c.cut
    every = times.best(nbytes, found, ours if staged else [*ours, LIBRARY])
    log_choice(collective, every)
    if every.name != LIBRARY:
        return every.name, False
    return times.best(nbytes, found, ours).name, True


def log_choice(what: str, found: Choice) -> None:
    """Say what was chosen, and why."""
    _log.debug("%s: %s", what, found)


Value = TypeVar("Value")


def checked(context: Context, op: str, name: str, parse: Callable[[], Call]) -> Call:
    """The call, once it is known to be right; in the checked mode, on every rank."""
    call = told(context, op, parse)
    if context.checked:
        by = "" if call.operator is None else call.operator.name
        agree(context, op, name, call.sent, call.expected, call.root, by)
    return call


def checked_value(
    context: Context, op: str, name: str, parse: Callable[[], Value]
) -> Value:
    """As `checked`, of a call that has nothing but its algorithm to agree on."""
    found = told(context, op, parse)
    if context.checked:
        agree(context, op, name, 0, {})
    return found


def told(context: Context, op: str, parse: Callable[[], Value]) -> Value:
    """What a rank finds in its arguments; in the checked mode, what is wrong with them
    is told to all ranks, in others it counts as a call."""
    try:
        return parse()
    except BaseException as error:
        if not context.checked:
            context.count_refused(op)
        elif not context.refused:
            share(context, op, error)
        raise


def check_disjoint(send: Message, recv: Message, hint: str = "") -> None:
    """What is sent must not be overwritten while it is being sent."""
    if not (buffers.is_dense(send.datatype) and buffers.is_dense(recv.datatype)):
        return
    arriving = sorted(_ranges(recv))
    for start, end in _ranges(send):
        i = bisect_left(arriving, (end, 0)) - 1
        if i >= 0 and arriving[i][1] > start:
            raise ValueError(f"message: send and receive buffers overlap{hint}")


def _ranges(message: Message) -> list[tuple[int, int]]:
    """First and last address of every block that is not empty."""
    starts = [message.base + displ for displ in message.displs]
    return [(x, x + n) for x, n in zip(starts, message.nbytes, strict=True) if n]
