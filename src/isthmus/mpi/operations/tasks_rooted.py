"""The arguments of collectives between groups that have a root."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mpi4py import MPI

from ...choose import between as choose, recipe_between as recipes
from ...choose.choose import Choice
from ...choose.estimate import Machine
from ...choose.recipe import Recipe
from ...choose.recipe_between import RootedGroup
from ...schedules.registry import named
from ..context.context_inter import InterContext
from ..context.library_requests import made_by
from ..memory import buffers, memory
from ..memory.buffers import Message
from ..memory.reducing import operator
from .alltoallw import NO_BLOCK, Block, alltoallw, nothing, of_both
from .call import Call, chosen
from .negotiation import ask_each, counts_of

#: groups up to this size leave blocks of one node to one request of the MPI library
FEW = 8


def rooted_group(c: InterContext, root: int) -> RootedGroup | None:
    """The root and the other group; none for those who have no part in it."""
    if root == MPI.PROC_NULL:
        return None
    if root == MPI.ROOT:
        return RootedGroup(c.there, 0, c.number, c.there_base, c.placement)
    if not 0 <= root < c.there:
        raise ValueError(
            f"root {root}: the other group has ranks 0 to {c.there - 1}; in the root's "
            "own group, the root gives MPI.ROOT and the others MPI.PROC_NULL"
        )
    return RootedGroup(
        c.here, 1 + c.index, c.there_base + root, c.here_base, c.placement
    )


def _idle(c: InterContext, name: str, collective: str, flat: bool = True) -> Call:
    """The task of a rank that has no part in it, but in the library's one request of a
    nonblocking call."""
    if name not in ("auto", "library", choose.NO_PART):
        named(collective, name)  # it is an error on this rank too if there is none
    if not flat or not _flat(c, name):
        return Call(c, name)
    none = nothing(c.p + c.q)
    return Call(c, name, alltoallw=lambda: alltoallw(none, none))


def _flat(c: InterContext, asked: str) -> bool:
    """Whether all blocks go straight from or to the root, in one request of the MPI
    library: among a few processes of a node, whatever the sizes, as some know none. The
    one message of two alone is a request as it is."""
    return asked == "auto" and c.one_node and 1 < max(c.p, c.q) <= FEW


def _blocks(at: RootedGroup, data: Message) -> list[Block]:
    """At the root everyone's block, elsewhere the own one."""
    places = zip(data.counts, data.displs, strict=True)
    given = [(n, displ, data.datatype) for n, displ in places]
    return given * at.q if at.v == 0 and len(given) == 1 else given


def _straight(
    c: InterContext, at: RootedGroup, data: Message, sends: bool
) -> tuple[list[Any], list[Any]]:
    """What that request takes, among both groups."""
    blocks = _blocks(at, data)
    if at.v:
        i = at.root - c.there_base
        blocks = [*[NO_BLOCK] * i, *blocks, *[NO_BLOCK] * (c.there - 1 - i)]
    mine, none = (data.base, of_both(c, blocks)), nothing(c.p + c.q)
    return alltoallw(mine, none) if sends else alltoallw(none, mine)


def _own_blocks(at: RootedGroup, sends: bool, made: Call) -> MPI.Prequest | None:
    """The persistent one, among those who have a part in it; a short Gather, blocks of
    a size that all know to the root, may be faster in the library's own way."""
    c, (data,) = made.context, made.send or made.recv
    blocks, up = _blocks(at, data), sends == (at.v > 0)
    if up and made.nbytes and made.fallback:
        address = memory.buffer(data.base + data.displs[0])
        spec = [address, data.counts[0], data.datatype]
        both, root = ((spec, None), 0) if at.v else ((None, spec), MPI.ROOT)
        return made_by(c.intercomm(at.root).Gather_init, *both, root)
    blocks = [*blocks, *[NO_BLOCK] * at.q] if at.v else [NO_BLOCK, *blocks]
    mine, none = (data.base, blocks), nothing(1 + at.q)
    sides = (mine, none) if sends else (none, mine)
    return made_by(c.rooted_comm(at.root).Alltoallw_init, *alltoallw(*sides))


def _task(
    c: InterContext,
    name: str,
    recipe: Callable[..., Recipe],
    at: RootedGroup,
    data: tuple[Message, ...],
    sizes: tuple[int, ...],
    down: bool,
    flat: bool = False,
    **more: Any,
) -> Call:
    """The task of a rank whose data go down from the root or up to it."""
    if at.v:
        peers = {at.root: sizes[0]}
    else:
        each = sizes if len(sizes) == at.q else sizes * at.q
        peers = dict(zip(range(at.base, at.base + at.q), each, strict=True))
    sends = down == (at.v == 0)
    more["among"] = tuple(at.numbers)
    if flat:
        more["alltoallw"] = partial(_straight, c, at, data[0], sends)
        more["own"] = partial(_own_blocks, at, sends)
    if sends:
        return Call(c, name, recipe, send=data, root=at.root, sent=peers, **more)
    return Call(c, name, recipe, recv=data, root=at.root, expected=peers, **more)


def bcast(c: InterContext, name: str, buf: Any, root: int) -> Call:
    """Broadcast."""
    at = rooted_group(c, root)
    if at is None:
        return _idle(c, name, "inter_bcast")
    return broadcast(c, name, at, buffers.block(buf, writable=at.v > 0))


def broadcast(c: InterContext, name: str, at: RootedGroup, data: Message) -> Call:
    """Broadcast, of data that may lie in several places."""
    n, flat = sum(data.nbytes), _flat(c, name)
    by_size = partial(choose.whole, "inter_bcast", at.q, n, c.machine, hosts=at.hosts)
    name, fallback = chosen(c, "inter_bcast", name, n, by_size)
    recipe = partial(recipes.bcast, name, at, n, c.machine.startup)
    ends = (data,), (n,), True, flat
    return _task(c, name, recipe, at, *ends, nbytes=n, fallback=fallback)


def reduce(
    c: InterContext, name: str, sendbuf: Any, recvbuf: Any, op: MPI.Op, root: int
) -> Call:
    """Reduce."""
    at = rooted_group(c, root)
    if at is None:
        return _idle(c, name, "inter_reduce", flat=False)
    data = buffers.block(sendbuf if at.v else recvbuf, writable=at.v == 0)
    by = operator(op, data)
    (n,), (count,) = data.nbytes, data.counts
    asked, commutes = name, op.is_commutative
    known = c.machine, commutes, at.hosts
    by_size = partial(choose.whole, "inter_reduce", at.q, n, *known)
    name, fallback = chosen(c, "inter_reduce", name, n, by_size, commutes)
    recipe = partial(recipes.reduce, name, at, count, by.unit, c.machine.startup)
    more: dict[str, Any] = {"operator": by, "nbytes": n, "fallback": fallback}
    if asked == "auto" and at.q > 1 and n and by.is_plain:
        more["own"] = partial(_own_reduce, at)
    return _task(c, name, recipe, at, (data,), (n,), down=False, **more)


def _own_reduce(at: RootedGroup, made: Call) -> MPI.Prequest | None:
    """The MPI library's own persistent Reduce, among those who have a part in it, if
    that is faster."""
    c, by = made.context, made.operator
    assert by is not None
    if at.root in c.unmade or not made.fallback:
        return None
    (place,) = map(memory.in_place, made.send or made.recv)
    both, root = ((place, None), 0) if at.v else ((None, place), MPI.ROOT)
    try:
        found = made_by(c.intercomm(at.root).Reduce_init, *both, by.op, root)
    except MPI.Exception:  # MPICH 4.0 wants to know what the root sends
        found = None
    return found if c.has_made(at.root, found) else None


def blocks(
    c: InterContext,
    name: str,
    collective: str,
    at: RootedGroup,
    data: tuple[Message, ...],
    sizes: tuple[int, ...],
) -> Call:
    """A gather or scatter of blocks of those sizes in bytes: at the root, of everyone's
    if they differ; elsewhere of the own one."""
    v = collective.endswith("v")
    counts, flat = sizes if v else (sizes[0],) * at.q, _flat(c, name)
    by_size = partial(_by_size, collective, at, counts[0], c.machine)
    name, fallback = chosen(c, collective, name, 0 if v else sizes[0], by_size)
    recipe = partial(recipes.blocks, collective, name, at)
    more: dict[str, Any] = {"nbytes": 0 if v else sizes[0], "fallback": fallback}
    if v and at.v and named(collective, name).own_counts:
        more["negotiation"] = ask_each(c, sizes[:1], counts_of)
    else:
        recipe = partial(recipe, counts)
    down = "scatter" in collective
    return _task(c, name, recipe, at, data, sizes, down, flat, **more)


def _by_size(collective: str, at: RootedGroup, k: int, machine: Machine) -> Choice:
    if collective.endswith("v"):
        return Choice("linear", "as only the root knows all sizes")
    return choose.blocks(collective, at.q, k, machine, at.hosts)


def _pieces(
    c: InterContext, name: str, collective: str, whole: Any, piece: Any, root: int
) -> Call:
    """The task of a rank that has all blocks, as the root, or one of them."""
    at = rooted_group(c, root)
    if at is None:
        return _idle(c, name, collective)
    writable = (at.v > 0) == ("scatter" in collective)
    if at.v:
        data = buffers.block(piece, writable)
    elif collective.endswith("v"):
        data = buffers.vector(whole, at.q, writable)
    else:
        data = buffers.block(whole, writable, n=at.q)
    return blocks(c, name, collective, at, (data,), data.nbytes)


def gather(
    c: InterContext, name: str, sendbuf: Any, recvbuf: Any, root: int, v: str = ""
) -> Call:
    """Gather, or Gatherv."""
    return _pieces(c, name, "inter_gather" + v, recvbuf, sendbuf, root)


def scatter(
    c: InterContext, name: str, sendbuf: Any, recvbuf: Any, root: int, v: str = ""
) -> Call:
    """Scatter, or Scatterv."""
    return _pieces(c, name, "inter_scatter" + v, sendbuf, recvbuf, root)
