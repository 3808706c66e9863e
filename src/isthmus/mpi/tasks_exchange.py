"""The arguments of exchanges between groups in which all do the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

from .. import choose_between as choose, recipe_between as recipes
from ..choose import Choice
from ..recipe import Recipe, between, listed
from ..registry import named
from . import buffers, laid, memory, task
from .board import Ways
from .buffers import Message, is_dense
from .call import check_disjoint
from .check import agree
from .context_inter import InterContext
from .device import on_device
from .forms_inter import messages
from .task import Asking, Laid, Task
from .whole import swap

#: the bytes of each block of every rank
Blocks = tuple[tuple[int, ...], ...]


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
    equal, shares = collective == "inter_alltoall", False
    n = max(sent[0], expected[0]) if equal else 0
    if equal:
        # of long blocks, or where not all know how long they are, messages are faster
        most = max(sent[0] * c.there, expected[0] * c.here)
        short = n <= laid.SHORT and laid.fits(c.p + c.q, most)
        shares = name == "auto" and c.one_node and short
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
        **(_shared(c, collective, send, recv) if shares else {}),
    )


def _shared(
    c: InterContext, op: str, send: tuple[Message, ...], recv: tuple[Message, ...]
) -> dict[str, Any]:
    """How it is done in memory that all share."""
    sends, recvs = memory.blocks(send), memory.blocks(recv)
    plain = all(is_dense(x.datatype) and not on_device(x.owner) for x in send + recv)
    sizes = [n for _, n in sends], [n for _, n in recvs]
    question = partial(_sizes, c, op, *sizes, plain)
    ways = partial(_plain, partial(laid.exchange, c, op, sends, recvs))
    return {"among": c.all_agree, "laid": Laid(question, ways)}


def _plain(make: Callable[..., Ways | None], sizes: Blocks, plain: bool) -> Ways | None:
    """The ways of a call, if everyone's data can be copied as they lie."""
    return make(sizes) if plain else None


def _sizes(
    c: InterContext,
    op: str,
    sent: Sequence[int],
    expected: Sequence[int],
    plain: bool,
    at_once: bool,
) -> Asking:
    """The bytes of everyone's blocks, one for each receiver or one for all of them, and
    whether these can all be copied as they lie."""
    yield from ()
    row = np.zeros(2 + max(c.p, c.q), np.int64)
    row[: 2 + len(sent)] = plain, len(sent), *sent
    told = np.empty((c.p + c.q, len(row)), np.int64)
    c.comm.Allgather(row, told)
    sizes = tuple(tuple(x[2 : 2 + x[1]]) for x in told.tolist())
    wanted = dict(zip(c.senders, expected, strict=True))
    fit = np.array(all(_for(c, sizes[i]) == n for i, n in wanted.items()))
    c.comm.Allreduce(MPI.IN_PLACE, fit, MPI.LAND)
    if not fit:
        given = dict(zip(c.senders, sent, strict=False))
        name = op.removeprefix("inter_").capitalize()
        agree(c, name, "auto", given if len(sent) == c.there else sent[0], wanted)
    return sizes, bool(told[:, 0].all())


def _for(c: InterContext, blocks: Sequence[int]) -> int:
    """What one of the other group has for this rank."""
    return blocks[c.index % len(blocks)]


def allgather(
    c: InterContext, name: str, sendbuf: Any, recvbuf: Any, v: bool = False
) -> Task:
    """Allgather or Allgatherv, as it is done in memory that all share."""
    send, recv = messages(c, sendbuf, recvbuf, v)
    collective = "inter_allgatherv" if v else "inter_allgather"
    shared = _shared(c, collective, (send,), (recv,))
    sent, expected = sum(send.nbytes), recv.nbytes

    def recipe(sizes: Blocks, plain: bool) -> Recipe:
        here = sizes[c.here_base : c.here_base + c.here]
        own = listed([n for (n,) in here]) if v else None
        found = c.sizes(sent, expected, own)
        return between(c.name(name, v), found, c.number, c.machine)

    return Task(
        c,
        name,
        recipe,
        (send,),
        (recv,),
        question=shared["laid"].question,
        sent=dict.fromkeys(c.senders, sent),
        expected=dict(zip(c.senders, expected, strict=True)),
        **shared,
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
