"""The arguments of sums between groups that all receive or share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

from ...choose import between as choose, recipe_between as recipes
from ...choose.recipe import Recipe
from ..context.check import MismatchError
from ..context.context_inter import InterContext
from ..context.library_requests import made_by
from ..memory import buffers, memory
from ..memory.buffers import Message
from ..memory.reducing import Operator, operator
from .alltoallw import swap
from .call import Call, check_disjoint, chosen
from .negotiation import ask_each

Counts = tuple[int, ...]


def _operands(sendbuf: Any, recvbuf: Any) -> tuple[Message, Message]:
    send = buffers.block(sendbuf, writable=False)
    recv = buffers.block(recvbuf, writable=True)
    if send.datatype != recv.datatype:
        raise ValueError("message: the types of what is sent and received differ")
    check_disjoint(send, recv)
    return send, recv


def allreduce(
    c: InterContext, name: str, sendbuf: Any, recvbuf: Any, op: MPI.Op
) -> Call:
    """Allreduce."""
    send, recv = _operands(sendbuf, recvbuf)
    by = operator(op, recv)
    if send.counts != recv.counts:
        raise ValueError(
            f"message: {send.counts[0]} elements are sent, {recv.counts[0]} received"
        )
    n, asked = sum(send.nbytes), name
    name, fallback = _combining(c, "inter_allreduce", name, n, by)
    how = send.counts[0], by.unit, c.machine.startup
    recipe = partial(recipes.allreduce, name, c.pair, *how)
    own = partial(_own, "Allreduce")
    return _combined(c, asked, name, recipe, send, recv, by, own, fallback=fallback)


def reduce_scatter_block(
    c: InterContext, name: str, sendbuf: Any, recvbuf: Any, op: MPI.Op
) -> Call:
    """Reduce_scatter_block."""
    send, recv = _operands(sendbuf, recvbuf)
    by = operator(op, recv)
    total, each = send.counts[0], recv.counts[0]
    if total != each * c.here or total % c.there:
        raise ValueError(
            f"message: {total} elements are sent, and {each} received by each of "
            f"{c.here}; the other group has {c.there}"
        )
    counts, asked = ((each,) * c.here, (total // c.there,) * c.there), name
    n = sum(send.nbytes)
    name, fallback = _combining(c, "inter_reduce_scatter", name, n, by)
    how = *counts, by.unit, c.machine.startup
    recipe = partial(recipes.reduce_scatter, name, c.pair, *how)
    own = partial(_own, "Reduce_scatter", counts=counts[0])
    return _combined(c, asked, name, recipe, send, recv, by, own, fallback=fallback)


def _combined(
    c: InterContext,
    asked: str,
    name: str,
    recipe: Callable[..., Recipe],
    send: Message,
    recv: Message,
    by: Operator,
    own: Callable[..., MPI.Prequest | None],
    **more: Any,
) -> Call:
    """The task of a rank whose data all of the other group combine; of two alone, each
    takes what the other has."""
    n = sum(send.nbytes)
    sizes = dict.fromkeys(c.senders, n)
    if asked == "auto":
        more["own"] = own
        if c.p == c.q == 1:
            more["alltoallw"] = partial(swap, c, (send,), (recv,))
    return Call(
        c,
        name,
        recipe,
        (send,),
        (recv,),
        by,
        nbytes=n,
        sent=sizes,
        expected=sizes,
        **more,
    )


def _own(op: str, made: Call, counts: Counts | None = None) -> MPI.Prequest | None:
    """The MPI library's own persistent request, if that is faster."""
    c, n, by = made.context, made.nbytes, made.operator
    assert by is not None
    if not (n and by.is_plain and made.fallback):
        return None
    places = map(memory.in_place, (*made.send, *made.recv))
    more = () if counts is None else (list(counts),)
    make = getattr(c.intercomm(), f"{op}_init")
    return made_by(make, *places, *more, by.op)


def _combining(
    c: InterContext, collective: str, name: str, n: int, by: Operator
) -> tuple[str, bool]:
    """The algorithm for n bytes a rank, and whether the library's call is faster."""
    commutes = by.op.is_commutative
    sizes = c.here, c.there, n
    by_size = partial(choose.combined, collective, *sizes, c.machine, commutes)
    return chosen(c, collective, name, n, by_size, commutes)


def reduce_scatter(
    c: InterContext,
    name: str,
    sendbuf: Any,
    recvbuf: Any,
    recvcounts: Sequence[int] | None,
    op: MPI.Op,
) -> Call:
    """Reduce_scatter; what the other group receives, it tells."""
    send, recv = _operands(sendbuf, recvbuf)
    by = operator(op, recv)
    own, total = recv.counts[0], send.counts[0]
    if recvcounts is not None:
        counts = buffers.integers(recvcounts, c.here, "counts")
        if min(counts) < 0:
            raise ValueError(f"message: negative count {min(counts)}")
        if own != counts[c.index] or total != sum(counts):
            raise ValueError(
                f"message: the counts are {list(counts)}, of which {own} are received "
                f"by rank {c.index} and {total} are sent by everyone"
            )
    asked, n = name, sum(send.nbytes)
    name, fallback = _combining(c, "inter_reduce_scatter", name, n, by)

    def recipe(here: Counts, there: Counts) -> Recipe:
        how = here, there, by.unit, c.machine.startup
        return recipes.reduce_scatter(name, c.pair, *how)

    def own_request(made: Call, here: Counts, there: Counts) -> MPI.Prequest | None:
        return _own("Reduce_scatter", made, here)

    negotiation = ask_each(c, (own, total), partial(_counts, c), everyone=True)
    ends = send, recv, by, own_request
    return _combined(
        c, asked, name, recipe, *ends, negotiation=negotiation, fallback=fallback
    )


def _counts(c: InterContext, told: np.ndarray) -> tuple[Counts, Counts]:
    """What everyone of the own and of the other group receives."""
    _check_counts(c, told)
    a, b = tuple(told[: c.p, 0].tolist()), tuple(told[c.p :, 0].tolist())
    return (b, a) if c.mine else (a, b)


def _check_counts(c: InterContext, told: np.ndarray) -> None:
    """Everyone sends as much as each group receives in all."""
    sums = {"A": int(told[: c.p, 0].sum()), "B": int(told[c.p :, 0].sum())}
    for number, sent in enumerate(told[:, 1].tolist()):
        for group, received in sums.items():
            if sent != received:
                raise MismatchError(
                    f"isthmus Reduce_scatter: {c.who(number)} sends {sent} elements, "
                    f"and group {group} receives {received} in all"
                )
