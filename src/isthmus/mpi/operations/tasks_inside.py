"""The arguments of collectives inside one group."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

from ...choose import choose, recipe
from ...choose.recipe import Equal, Group, Recipe, listed
from ...schedules.registry import fitting, resolve
from ..context.context_intra import IntraContext
from ..memory import buffers
from ..memory.buffers import Message
from . import tasks_inside_all
from .call import Call, check_disjoint, log_choice

#: the call of the MPI library, on the user's communicator or on ours
NATIVE = ("native", "library")
_HINT = "; for data that are in their place already, send MPI.IN_PLACE"


def allgather(
    c: IntraContext, name: str, sendbuf: Any, recvbuf: Any, v: bool = False
) -> Call:
    """Allgather, or Allgatherv."""
    _known(c, "allgatherv", name)
    if v:
        recv = buffers.vector(recvbuf, c.p)
    else:
        recv = buffers.block(recvbuf, writable=True, n=c.p)
    if sendbuf is None or sendbuf is MPI.IN_PLACE:
        return gathered(c, name, None, recv, v)
    send = buffers.block(sendbuf, writable=False)
    check_disjoint(send, recv, _HINT)
    expected, sent = recv.nbytes[c.index], sum(send.nbytes)
    if sent != expected:
        raise ValueError(
            f"message: this rank sends {sent} bytes, and has room for {expected} "
            "of its own"
        )
    return gathered(c, name, send, recv, v)


def known(c: IntraContext, name: str) -> None:
    """Refuse an algorithm that is unknown, or not made for so many ranks."""
    _known(c, "allgatherv", name)


def gathered(
    c: IntraContext, name: str, send: Message | None, recv: Message, v: bool
) -> Call:
    """Allgather, of data that may lie in several places."""
    sizes = recv.nbytes
    if name == "auto":
        counts = np.array(sizes, np.int64)
        found = choose.allgatherv(counts, lambda: c.machine, v, c.small, c.nodes)
        log_choice("Allgather" + "v" * v, found)
        name = found.name
    return Call(
        c,
        name,
        None if name in NATIVE else partial(_gathering, c, name, sizes),
        () if send is None else (send,),
        (recv,),
        nbytes=sum(sizes),
        sent=sizes[c.index],
        expected=dict(zip(c.senders, sizes, strict=True)),
        v=v,
    )


def _gathering(c: IntraContext, name: str, sizes: tuple[int, ...]) -> Recipe:
    startup = _startup(c, "allgatherv", name)
    return recipe.inside(name, _group(sizes), c.number, startup, c.placement)


def _group(sizes: tuple[int, ...]) -> Group:
    """What everyone contributes, in bytes."""
    if min(sizes) == max(sizes):
        return Equal(len(sizes), sizes[0])
    return listed(sizes)


def _startup(c: IntraContext, collective: str, name: str) -> float:
    """What a start-up is in bytes, measured only for who wants to know."""
    options = resolve(collective, name)[0].options
    return c.machine.startup if "startup" in options else 1.0


def _known(c: IntraContext, collective: str, name: str) -> None:
    """Refuse an algorithm that is unknown, or not made for so many ranks."""
    if name not in ("auto", *NATIVE):
        fitting(collective, name, c.p)
    elif name == "library":
        resolve(collective, name)


def bcast(c: IntraContext, name: str, buf: Any, root: int) -> Call:
    """Broadcast."""
    if name != "library":
        _known(c, "bcast", name)
    if not 0 <= root < c.p:
        raise ValueError(f"root {root}: there are ranks 0 to {c.p - 1}")
    data = buffers.block(buf, writable=c.number != root)
    (n,) = data.nbytes
    if name == "auto":
        at = root, c.placement.unequal
        found = choose.bcast(c.p, n, lambda: c.machine, c.small, *at)
        log_choice("Bcast", found)
        name = found.name
    return Call(
        c,
        name,
        None if name in NATIVE else partial(_broadcasting, c, name, n, root),
        (data,) if c.number == root else (),
        () if c.number == root else (data,),
        nbytes=n,
        root=root,
        sent=n,
        expected={root: n},
    )


def _broadcasting(c: IntraContext, name: str, n: int, root: int) -> Recipe:
    how = root, _startup(c, "bcast", name), c.placement
    return recipe.bcast(name, n, c.p, c.number, *how)


#: what reads the arguments of each operation
OPERATIONS = {
    "Allgather": allgather,
    "Allgatherv": partial(allgather, v=True),
    "Bcast": bcast,
    **tasks_inside_all.OPERATIONS,
}
