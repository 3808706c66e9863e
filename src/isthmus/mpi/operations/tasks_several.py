"""The arguments of collectives among several groups."""

from __future__ import annotations

from functools import partial
from itertools import accumulate, pairwise
from typing import Any

from ...choose import recipe_several as recipes
from ...choose.recipe import Recipe
from ...schedules.registry import named, resolve
from ..context.context_several import SeveralContext
from ..memory import buffers
from ..memory.buffers import Message
from .call import Call, check_disjoint
from .negotiation import ask_each, counts_of

Counts = tuple[int, ...]


def known(c: SeveralContext, name: str) -> None:
    """Refuse an unknown algorithm."""
    if name != "auto":
        resolve("multi_allgatherv", name)


def allgather(
    c: SeveralContext, name: str, sendbuf: Any, recvbuf: Any, v: bool = False
) -> Call:
    """Allgather, or Allgatherv."""
    known(c, name)
    send = buffers.block(sendbuf, writable=False)
    n = len(c.senders)
    if v and n:
        recv = buffers.vector(recvbuf, n)
    elif n:
        recv = buffers.block(recvbuf, writable=True, n=n)
    else:
        recv = Message(recvbuf, 0, send.datatype, (), ())
    check_disjoint(send, recv)
    if not v and n and sum(send.nbytes) != recv.nbytes[0]:
        raise ValueError(
            f"message: this rank sends {sum(send.nbytes)} bytes and receives "
            f"{recv.nbytes[0]} from each; blocks of different sizes are for Allgatherv"
        )
    return gathered(c, name, send, recv, v)


def gathered(
    c: SeveralContext, name: str, send: Message, recv: Message, v: bool
) -> Call:
    """Allgather, of data that may lie in several places."""
    sent, expected = sum(send.nbytes), recv.nbytes

    def recipe(own: Counts) -> Recipe:
        counts = (*expected[: c.base], *own, *expected[c.base :])
        ends = accumulate(c.sizes, initial=0)
        groups = tuple(counts[low:high] for low, high in pairwise(ends))
        return recipes.allgatherv(name, groups, c.mine, c.index, c.machine)

    more: dict[str, Any] = {
        "negotiation": ask_each(c, [sent], counts_of),
        "recipe": recipe,
    }
    if not v:
        own = (sent,) * c.sizes[c.mine]
        more = {"recipe": partial(recipe, own)}
    wanted = dict(zip(c.senders, expected, strict=True))
    return Call(c, name, send=(send,), recv=(recv,), sent=sent, expected=wanted, **more)


def alltoall(
    c: SeveralContext, name: str, sendbuf: Any, recvbuf: Any, v: bool = False
) -> Call:
    """Alltoall, or Alltoallv."""
    if name == "auto":
        name = "rotated"
    named("multi_alltoallv", name)
    n = len(c.senders)
    if not n:
        return Call(c, name)
    if v:
        send = buffers.vector(sendbuf, n, writable=False)
        recv = buffers.vector(recvbuf, n)
    else:
        send = buffers.block(sendbuf, writable=False, n=n)
        recv = buffers.block(recvbuf, writable=True, n=n)
    check_disjoint(send, recv)
    sizes = send.nbytes, recv.nbytes
    if not v and sizes[0][0] != sizes[1][0]:
        raise ValueError(
            f"message: {sizes[0][0]} bytes are sent to each, {sizes[1][0]} received; "
            "blocks of different sizes are for Alltoallv"
        )
    recipe = partial(recipes.alltoallv, name, c.sizes, c.mine, c.index, *sizes)
    sent, expected = (dict(zip(c.senders, x, strict=True)) for x in sizes)
    return Call(c, name, recipe, (send,), (recv,), sent=sent, expected=expected)


#: what reads the arguments of each operation
OPERATIONS = {
    "Allgather": allgather,
    "Allgatherv": partial(allgather, v=True),
    "Alltoall": alltoall,
    "Alltoallv": partial(alltoall, v=True),
}
