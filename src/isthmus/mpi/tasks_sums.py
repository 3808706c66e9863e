"""The arguments of sums between groups that all receive or share."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

from .. import choose_between as choose, recipe_between as recipes
from ..recipe import Recipe
from . import buffers, laid, memory, requests, task
from .board import Ways
from .buffers import Message
from .call import check_disjoint
from .check import MismatchError
from .context_inter import InterContext
from .reducing import Operator, operator
from .task import Asking, Laid, Task
from .whole import swap

Counts = tuple[int, ...]
#: an operator of MPI's and a type, as numbers
Kind = tuple[int, ...]
NO_KIND: Kind = (0,) * 5


def _operands(sendbuf: Any, recvbuf: Any) -> tuple[Message, Message]:
    send = buffers.block(sendbuf, writable=False)
    recv = buffers.block(recvbuf, writable=True)
    if send.datatype != recv.datatype:
        raise ValueError("message: the types of what is sent and received differ")
    check_disjoint(send, recv)
    return send, recv


def allreduce(
    c: InterContext, name: str, sendbuf: Any, recvbuf: Any, op: MPI.Op
) -> Task:
    """Allreduce."""
    send, recv = _operands(sendbuf, recvbuf)
    by = operator(op, recv)
    if send.counts != recv.counts:
        raise ValueError(
            f"message: {send.counts[0]} elements are sent, {recv.counts[0]} received"
        )
    n, asked = sum(send.nbytes), name
    name = _combining(c, "inter_allreduce", name, n, by)
    recipe = partial(recipes.allreduce, name, c.pair, send.counts[0], by.unit)
    own, total = partial(_own, "Allreduce"), send.counts[0]
    question = partial(_total, c, (total, *_kind(asked, by)))
    make = partial(laid.allreduce, c, send, recv, by)
    more = _shared(c, asked, by, question, make)
    return _combined(c, asked, name, recipe, send, recv, by, own, **more)


def reduce_scatter_block(
    c: InterContext, name: str, sendbuf: Any, recvbuf: Any, op: MPI.Op
) -> Task:
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
    name = _combining(c, "inter_reduce_scatter", name, sum(send.nbytes), by)
    how = *counts, by.unit, c.machine.startup
    recipe = partial(recipes.reduce_scatter, name, c.pair, *how)
    own = partial(_own, "Reduce_scatter", counts=counts[0])
    question = partial(_counts, c, (each, total, *_kind(asked, by)))
    make = partial(laid.reduce_scatter, c, send, recv, by)
    more = _shared(c, asked, by, question, make)
    return _combined(c, asked, name, recipe, send, recv, by, own, **more)


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
) -> Task:
    """The task of a rank whose data all of the other group combine; of two alone, each
    takes what the other has."""
    n = sum(send.nbytes)
    sizes = dict.fromkeys(c.senders, n)
    if asked == "auto":
        more["own"] = own
        if c.p == c.q == 1:
            more["whole"] = partial(swap, c, (send,), (recv,))
    return Task(
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


def _own(op: str, made: Task, counts: Counts | None = None) -> MPI.Prequest | None:
    """The MPI library's own persistent request, if that is faster."""
    c, n, by = made.context, made.nbytes, made.operator
    assert by is not None
    if not (n and by.is_plain and c.leaves(op, n, persistent=True)):
        return None
    places = map(memory.in_place, (*made.send, *made.recv))
    more = () if counts is None else (list(counts),)
    make = getattr(c.intercomm(), f"{op}_init")
    return requests.own(make, *places, *more, by.op)


def _combining(
    c: InterContext, collective: str, name: str, n: int, by: Operator
) -> str:
    """The algorithm for n bytes a rank."""
    commutative = by.op.is_commutative
    return task.settled(
        collective,
        name,
        lambda: choose.combined(collective, c.here, c.there, n, c.machine, commutative),
        commutative,
    )


def reduce_scatter(
    c: InterContext,
    name: str,
    sendbuf: Any,
    recvbuf: Any,
    recvcounts: Sequence[int] | None,
    op: MPI.Op,
) -> Task:
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
    asked = name
    name = _combining(c, "inter_reduce_scatter", name, sum(send.nbytes), by)

    def recipe(here: Counts, there: Counts, kind: Kind) -> Recipe:
        how = here, there, by.unit, c.machine.startup
        return recipes.reduce_scatter(name, c.pair, *how)

    def own_request(
        made: Task, here: Counts, there: Counts, kind: Kind
    ) -> MPI.Prequest | None:
        return _own("Reduce_scatter", made, here) if kind != NO_KIND else None

    question = partial(_counts, c, (own, total, *_kind(asked, by)))
    make = partial(laid.reduce_scatter, c, send, recv, by)
    more = {"question": question, "among": c.all_agree}
    more |= _shared(c, asked, by, question, make)
    return _combined(c, asked, name, recipe, send, recv, by, own_request, **more)


def _kind(asked: str, by: Operator) -> Kind:
    """The operator and the type by their names, in numbers, if that says all."""
    if asked != "auto" or not by.is_plain:
        return NO_KIND
    text = f"{by.op.__reduce__()} {by.datatype.__reduce__()}".encode()
    assert len(text) <= 8 * len(NO_KIND), text
    words = np.frombuffer(text.ljust(8 * len(NO_KIND)), np.int64)
    return tuple(words.tolist())


def _shared(
    c: InterContext,
    asked: str,
    by: Operator,
    question: Callable[[bool], Asking],
    make: Callable[..., Ways | None],
) -> dict[str, Any]:
    """How it is done in memory that all share, where nothing else was asked for."""
    if asked != "auto" or not (by.is_plain and c.one_node):
        return {}
    return {"among": c.all_agree, "laid": Laid(question, partial(_alike, make))}


def _alike(make: Callable[..., Ways | None], *said: Any) -> Ways | None:
    """The ways of a call, if all combine alike: that is what was said last."""
    *sizes, kind = said
    return None if kind == NO_KIND else make(*sizes)


def _told(
    c: InterContext, own: tuple[int, ...], at_once: bool
) -> Generator[Sequence[MPI.Request], None, tuple[np.ndarray, Kind]]:
    """The numbers of everyone, and how all combine, if they do it alike."""
    told = np.empty((c.p + c.q, len(own)), np.int64)
    if at_once:
        c.comm.Allgather(np.array(own), told)
    else:
        yield [c.comm.Iallgather(np.array(own), told)]
    kinds = set(map(tuple, told[:, -len(NO_KIND) :].tolist()))
    return told, kinds.pop() if len(kinds) == 1 else NO_KIND


def _total(c: InterContext, own: tuple[int, ...], at_once: bool) -> Asking:
    """The elements of every vector."""
    told, kind = yield from _told(c, own, at_once)
    for number, total in enumerate(told[:, 0].tolist()):
        if total != told[0, 0]:
            raise MismatchError(
                f"isthmus Allreduce: {c.who(number)} has {total} elements, and "
                f"{c.who(0)} {told[0, 0]}"
            )
    return own[0], kind


def _counts(c: InterContext, own: tuple[int, ...], at_once: bool) -> Asking:
    """What everyone of the own and of the other group receives."""
    told, kind = yield from _told(c, own, at_once)
    _check_counts(c, told)
    a, b = tuple(told[: c.p, 0].tolist()), tuple(told[c.p :, 0].tolist())
    return (b, a, kind) if c.mine else (a, b, kind)


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
