"""The arguments of exchanges between groups in which all do the same."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from .. import choose_between as choose, recipe_between as recipes
from ..choose import Choice
from ..registry import named
from . import buffers, task
from .buffers import Message
from .call import check_disjoint
from .context_inter import InterContext
from .task import Task
from .whole import swap


def exchange(
    c: InterContext,
    name: str,
    send: tuple[Message, ...],
    recv: tuple[Message, ...],
    sent: tuple[int, ...],
    expected: tuple[int, ...],
    collective: str = "inter_alltoallv",
) -> Task:
    """Blocks of so many bytes to each of the other group, and from each."""
    n = max(sent[0], expected[0]) if collective == "inter_alltoall" else 0
    if collective == "inter_alltoall":
        found = partial(choose.exchange, c.here, c.there, n, c.machine)
    else:
        found = partial(Choice, "largest_first", "as blocks may differ")
    name = task.settled(collective, name, found)
    how = collective, name, c.pair, sent, expected, c.machine.startup
    given, wanted = (dict(zip(c.senders, x, strict=True)) for x in (sent, expected))
    return Task(
        c,
        name,
        partial(recipes.alltoall, *how),
        send,
        recv,
        nbytes=n,
        sent=given,
        expected=wanted,
    )


def _at_once(made: Task, collective: str) -> Task:
    """The same, with all messages in one request if they leave at once."""
    entry, c = named(collective, made.name), made.context
    most = max(c.p, c.q)
    if not entry.whole_blocks or entry.options.get("window", most) < most:
        return made
    return replace(made, whole=partial(swap, c, made.send, made.recv))


def alltoall(c: InterContext, name: str, sendbuf: Any, recvbuf: Any) -> Task:
    """Alltoall."""
    send = buffers.block(sendbuf, writable=False, n=c.there)
    recv = buffers.block(recvbuf, writable=True, n=c.there)
    check_disjoint(send, recv)
    sizes = send.nbytes, recv.nbytes
    made = exchange(c, name, (send,), (recv,), *sizes, "inter_alltoall")
    return _at_once(made, "inter_alltoall")


def alltoallv(c: InterContext, name: str, sendbuf: Any, recvbuf: Any) -> Task:
    """Alltoallv."""
    send = buffers.vector(sendbuf, c.there, writable=False)
    recv = buffers.vector(recvbuf, c.there)
    check_disjoint(send, recv)
    made = exchange(c, name, (send,), (recv,), send.nbytes, recv.nbytes)
    return _at_once(made, "inter_alltoallv")


def alltoallw(c: InterContext, name: str, sendbuf: Any, recvbuf: Any) -> Task:
    """Alltoallw."""
    send = buffers.mixed(sendbuf, c.there, writable=False)
    recv = buffers.mixed(recvbuf, c.there, writable=True)
    sent = tuple(x.nbytes[0] for x in send)
    expected = tuple(x.nbytes[0] for x in recv)
    made = exchange(c, name, send, recv, sent, expected)
    return _at_once(made, "inter_alltoallv")


def barrier(c: InterContext, name: str) -> Task:
    """Barrier."""
    name = task.settled("inter_barrier", name, partial(Choice, "dissemination", ""))
    return Task(c, name, partial(recipes.barrier, name, c.pair))
