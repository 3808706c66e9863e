"""The arguments of collectives between groups that have a root."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

from .. import choose_between as choose, recipe_between as recipes
from ..choose import Choice
from ..estimate import Machine
from ..recipe import Recipe
from ..recipe_between import Star
from ..registry import named
from . import buffers, task
from .buffers import Message
from .context_inter import InterContext
from .reducing import operator
from .task import Settle, Settling, Task, known


def star(c: InterContext, root: int) -> Star | None:
    """The root and the other group; none for those who have no part in it."""
    _ = c.machine  # by all together, also those who have no part
    if root == MPI.PROC_NULL:
        return None
    if root == MPI.ROOT:
        return Star(c.there, 0, c.number, c.there_base)
    if not 0 <= root < c.there:
        raise ValueError(
            f"root {root}: the other group has ranks 0 to {c.there - 1}; in the root's "
            "own group, the root gives MPI.ROOT and the others MPI.PROC_NULL"
        )
    return Star(c.here, 1 + c.index, c.there_base + root, c.here_base)


def _task(
    c: InterContext,
    name: str,
    settle: Settle,
    at: Star,
    data: tuple[Message, ...],
    sizes: tuple[int, ...],
    down: bool,
    **more: Any,
) -> Task:
    """The task of a rank whose data go down from the root or up to it."""
    if at.v:
        peers = {at.root: sizes[0]}
    else:
        each = sizes if len(sizes) == at.q else sizes * at.q
        peers = dict(zip(range(at.base, at.base + at.q), each, strict=True))
    if down == (at.v == 0):
        return Task(c, name, settle, send=data, root=at.root, sent=peers, **more)
    return Task(c, name, settle, recv=data, root=at.root, expected=peers, **more)


def bcast(c: InterContext, name: str, buf: Any, root: int) -> Task:
    """Broadcast."""
    at = star(c, root)
    if at is None:
        return Task(c, name)
    return broadcast(c, name, at, buffers.block(buf, writable=at.v > 0))


def broadcast(c: InterContext, name: str, at: Star, data: Message) -> Task:
    """Broadcast, of data that may lie in several places."""
    n = sum(data.nbytes)
    name = task.settled(
        "inter_bcast", name, lambda: choose.whole("inter_bcast", at.q, n, c.machine)
    )
    settle = known(partial(recipes.bcast, name, at, n, c.machine.startup))
    return _task(c, name, settle, at, (data,), (n,), down=True)


def reduce(
    c: InterContext, name: str, sendbuf: Any, recvbuf: Any, op: MPI.Op, root: int
) -> Task:
    """Reduce."""
    at = star(c, root)
    if at is None:
        return Task(c, name)
    data = buffers.block(sendbuf if at.v else recvbuf, writable=at.v == 0)
    by = operator(op, data)
    (n,), (count,) = data.nbytes, data.counts
    how = at.q, n, c.machine, op.is_commutative
    name = task.settled(
        "inter_reduce", name, lambda: choose.whole("inter_reduce", *how), how[-1]
    )
    settle = known(partial(recipes.reduce, name, at, count, by.unit, c.machine.startup))
    return _task(c, name, settle, at, (data,), (n,), down=False, operator=by)


def blocks(
    c: InterContext,
    name: str,
    collective: str,
    at: Star,
    data: tuple[Message, ...],
    sizes: tuple[int, ...],
) -> Task:
    """A gather or scatter of blocks of those sizes in bytes: at the root, of everyone's
    if they differ; elsewhere of the own one."""
    v = collective.endswith("v")
    counts = sizes if v else (sizes[0],) * at.q
    name = task.settled(
        collective, name, lambda: _by_size(v, at.q, counts[0], c.machine)
    )
    recipe = partial(recipes.blocks, collective, name, at)
    asks = v and at.v > 0 and named(collective, name).own_counts
    settle = _told(c, sizes[0], recipe) if asks else known(partial(recipe, counts))
    down = "scatter" in collective
    return _task(c, name, settle, at, data, sizes, down, asks=asks)


def _by_size(v: bool, q: int, k: int, machine: Machine) -> Choice:
    if v:
        return Choice("linear", "as only the root knows all sizes")
    return choose.blocks(q, k, machine)


def _told(c: InterContext, own: int, recipe: Callable[..., Recipe]) -> Settle:
    """The rounds of a leaf that must know the blocks of its group."""

    def settle(tag: int) -> Settling:
        counts = np.empty(c.here, np.int64)
        yield [c.local.Iallgather(np.array([own]), counts)]
        return recipe(tuple(counts.tolist()))

    return settle


def _parsed(spec: Any, at: Star, v: str, writable: bool) -> Message:
    """What the root has of everyone, or another of its own."""
    if at.v:
        return buffers.block(spec, writable)
    if v:
        return buffers.vector(spec, at.q, writable)
    return buffers.block(spec, writable, n=at.q)


def gather(
    c: InterContext, name: str, sendbuf: Any, recvbuf: Any, root: int, v: str = ""
) -> Task:
    """Gather, or Gatherv."""
    at = star(c, root)
    if at is None:
        return Task(c, name)
    data = _parsed(sendbuf if at.v else recvbuf, at, v, writable=at.v == 0)
    return blocks(c, name, "inter_gather" + v, at, (data,), data.nbytes)


def scatter(
    c: InterContext, name: str, sendbuf: Any, recvbuf: Any, root: int, v: str = ""
) -> Task:
    """Scatter, or Scatterv."""
    at = star(c, root)
    if at is None:
        return Task(c, name)
    data = _parsed(recvbuf if at.v else sendbuf, at, v, writable=at.v > 0)
    return blocks(c, name, "inter_scatter" + v, at, (data,), data.nbytes)
