"""The arguments of exchanges between groups in which all do the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import Any

from ...choose import between as choose, recipe_between as recipes
from ...choose.choose import Choice
from ...choose.estimate import Machine
from ...choose.recipe import Group, Recipe, Sizes, algorithm_for, between
from ...schedules.registry import named, resolve
from ..context.context_inter import InterContext
from ..memory import buffers
from ..memory.buffers import Message
from . import alltoallw as straight
from .alltoallw import of_both, swap
from .call import Call, check_disjoint, chosen
from .negotiation import alone, ask_each, own_group


def exchange(
    c: InterContext,
    name: str,
    send: tuple[Message, ...],
    recv: tuple[Message, ...],
    sent: tuple[int, ...],
    expected: tuple[int, ...],
    collective: str = "inter_alltoallv",
) -> Call:
    """Blocks of so many bytes to each of the other group, and from each."""
    equal = collective == "inter_alltoall"
    n = max(sent[0], expected[0]) if equal else 0
    if equal:
        found = partial(choose.exchange, c.here, c.there, n, c.machine)
    else:
        found = partial(Choice, "largest_first", "as blocks may differ")
    name, fallback = chosen(c, collective, name, n, found)
    how = collective, name, c.pair, sent, expected, c.machine.startup
    recipe: Callable[..., Recipe] = partial(recipes.alltoall, *how)
    negotiation = None
    if not equal and named(collective, name).own_counts:
        negotiation = ask_each(c, [*sent, *expected], lambda rows: (rows.tobytes(),))
        startup = c.machine.startup

        def recipe(rows: bytes) -> Recipe:
            return recipes.alltoall_known(name, c.pair, rows, startup)

    given, wanted = (dict(zip(c.senders, x, strict=True)) for x in (sent, expected))
    return Call(
        c,
        name,
        recipe,
        send,
        recv,
        negotiation=negotiation,
        nbytes=n,
        sent=given,
        expected=wanted,
        fallback=fallback,
    )


def messages(
    c: InterContext, sendbuf: Any, recvbuf: Any, v: bool
) -> tuple[Message, Message]:
    """What is sent to each of the other group, and received from them."""
    send = buffers.block(sendbuf, writable=False)
    if v:
        recv = buffers.vector(recvbuf, c.there)
    else:
        recv = buffers.block(recvbuf, writable=True, n=c.there)
    check_disjoint(send, recv)
    return send, recv


def allgather(
    c: InterContext, name: str, sendbuf: Any, recvbuf: Any, v: bool = False
) -> Call:
    """Allgather, or Allgatherv."""
    if name != "auto":
        resolve("inter_allgatherv" if v else "inter_allgather", name)
    return gathered(c, name, *messages(c, sendbuf, recvbuf, v), v)


def known(c: InterContext, name: str) -> None:
    """Refuse an unknown algorithm."""
    if name not in ("auto", "native"):
        resolve("inter_allgatherv", name)


def gathered(c: InterContext, name: str, send: Message, recv: Message, v: bool) -> Call:
    """Allgather, of data that may lie in several places."""
    fallback = False
    collective = "inter_allgatherv" if v else "inter_allgather"
    sent, expected = sum(send.nbytes), recv.nbytes
    if not v:
        sizes = c.sizes(sent, expected, None)
        name, fallback = _gathering(c, name, sizes)

    def recipe(own: Group | None = None) -> Recipe:
        if v and own is None:
            own = alone(c, sent)
        sizes = c.sizes(sent, expected, own)
        found, _ = _gathering(c, name, sizes)
        return between(found, sizes, c.number, c.machine, c.placement)

    more: dict[str, Any] = {}
    if v and name != "direct" and c.comm.size > 2:  # two know all there is
        more["negotiation"] = own_group(c, name, sent, expected)
    if name != "auto" and resolve(collective, name)[0].whole_blocks:
        more["alltoallw"] = partial(_every, c, send, recv)
    return Call(
        c,
        name,
        recipe,
        (send,),
        (recv,),
        sent=sent,
        expected=dict(zip(c.senders, expected, strict=True)),
        fallback=fallback,
        v=v,
        **more,
    )


def _gathering(c: InterContext, name: str, sizes: Sizes) -> tuple[str, bool]:
    """The algorithm of an Allgather(v), once the sizes are known."""
    if name != "auto":
        return name, False
    whole = sizes.a.blocks.total + sizes.b.blocks.total
    flat = partial(_flat, sizes, c.machine)
    return chosen(c, "inter_allgather", name, whole // (c.p + c.q), flat)


def _flat(sizes: Sizes, machine: Machine) -> Choice:
    return Choice(algorithm_for("auto", sizes, machine), "without node memory")


def at_once(call: Call) -> Call:
    """An Allgather with all messages in one request of the MPI library."""
    whole = partial(_every, call.context, *call.send, *call.recv)
    return replace(call, name="direct", alltoallw=whole, negotiation=None)


def _every(
    c: InterContext, send: Message, recv: Message
) -> tuple[list[Any], list[Any]]:
    """Every message of the direct exchange, in the user's own types."""
    own = [(send.counts[0], send.displs[0], send.datatype)] * c.there
    theirs = list(zip(recv.counts, recv.displs, repeat(recv.datatype)))
    sides = (send.base, of_both(c, own)), (recv.base, of_both(c, theirs))
    return straight.alltoallw(*sides)


def _at_once(made: Call, collective: str) -> Call:
    """The same, with all messages in one request if they leave at once."""
    entry, c = named(collective, made.name), made.context
    most = max(c.p, c.q)
    if not entry.whole_blocks or entry.options.get("window", most) < most:
        return made
    return replace(made, alltoallw=partial(swap, c, made.send, made.recv))


def alltoall(c: InterContext, name: str, sendbuf: Any, recvbuf: Any) -> Call:
    """Alltoall."""
    send = buffers.block(sendbuf, writable=False, n=c.there)
    recv = buffers.block(recvbuf, writable=True, n=c.there)
    check_disjoint(send, recv)
    sizes = send.nbytes, recv.nbytes
    made = exchange(c, name, (send,), (recv,), *sizes, "inter_alltoall")
    return _at_once(made, "inter_alltoall")


def alltoallv(c: InterContext, name: str, sendbuf: Any, recvbuf: Any) -> Call:
    """Alltoallv."""
    send = buffers.vector(sendbuf, c.there, writable=False)
    recv = buffers.vector(recvbuf, c.there)
    check_disjoint(send, recv)
    made = exchange(c, name, (send,), (recv,), send.nbytes, recv.nbytes)
    return _at_once(made, "inter_alltoallv")


def alltoallw(c: InterContext, name: str, sendbuf: Any, recvbuf: Any) -> Call:
    """Alltoallw."""
    send = buffers.mixed(sendbuf, c.there, writable=False)
    recv = buffers.mixed(recvbuf, c.there, writable=True)
    sent = tuple(x.nbytes[0] for x in send)
    expected = tuple(x.nbytes[0] for x in recv)
    made = exchange(c, name, send, recv, sent, expected)
    return _at_once(made, "inter_alltoallv")


def barrier(c: InterContext, name: str) -> Call:
    """Barrier."""
    flat = partial(Choice, "library", "which is one call")
    if name in ("auto", "library"):
        name, fallback = chosen(c, "inter_barrier", "auto", 0, flat)
        if name == "library":
            return Call(c, name, fallback=fallback)
    name, _ = chosen(c, "inter_barrier", name, 0, flat)
    return Call(c, name, partial(recipes.barrier, name, c.pair))
