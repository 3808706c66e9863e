"""Splitting processes by any value, and what is built on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from mpi4py import MPI

from ...groups import items as ranking, split as splitting
from ...groups.agree import agree
from ...groups.chain import ChainLink
from ...groups.compare import Compare
from ...groups.dialogue import Dialogue
from ...groups.encoding import canonical
from ...groups.items import Item
from ..comm.coupling import Coupling
from ..comm.intercomm import Intercomm
from ..comm.intracomm import Intracomm
from ..waiting.bounded import bounded
from .chain import Chain
from .private import Private

#: the first tag for leaders that connect two components; those of dialogues are less
CONNECT = 2


class Group(Chain):
    """One of the groups of a split; empty on a process that was left out."""

    def __init__(
        self,
        comm: Private,
        link: ChainLink | None,
        id: int | None = None,
        groups: int | None = None,
    ) -> None:
        """A group on a private communicator; users call `split`."""
        super().__init__(comm, link)
        #: the number of this group, in the order of the leaders' ranks
        self.id = id
        #: how many groups there are
        self.groups = groups
        self._comm: Intracomm | MPI.Comm = MPI.COMM_NULL

    @property
    def comm(self) -> Intracomm | MPI.Comm:
        """A communicator of the group, made together when first asked for."""
        if self and not self._comm:
            self._comm = self.to_comm()
        return self._comm

    def free(self) -> None:
        """Free the communicator, if one was made."""
        if self._comm:
            self._comm.Free()
        self._comm = MPI.COMM_NULL


def _chain(comm: MPI.Intracomm | Chain) -> Chain:
    """The chain to work on; its members are those that call."""
    chain = comm if isinstance(comm, Chain) else Chain.from_comm(comm)
    chain._here()
    return chain


def split(
    comm: MPI.Intracomm | Chain,
    color: Any,
    key: Any = None,
    *,
    split: bool = True,
    reorder: bool = True,
    algorithm: str = "auto",
    compare_color: Compare | None = None,
    compare_key: Compare | None = None,
) -> Group:
    """Split processes into groups of the same colour, ordered by key and then by rank.

    Colour and key are int, float, str, bytes, None, tuples of them, or of a registered
    type. Colours are the same if Python calls them equal. `color=None` leaves the
    process out; `key=None` comes before all other keys. Without `split` all are one
    group, without `reorder` they stay in their order. `comm` may be a chain, or a group
    of another split. `compare_color(x, y)` and `compare_key(x, y)` put the colours and
    keys of this call in order, of any type that can be pickled: they return a number
    below, equal to or above 0. All processes give them, or none does.
    """
    chain = _chain(comm)
    dialogue = splitting.split(
        chain._here(),
        chain._private.size,
        color,
        key,
        split=split,
        reorder=reorder,
        algorithm=algorithm,
        compare_color=compare_color,
        compare_key=compare_key,
    )
    place = chain._run(dialogue)
    return Group(chain._private, place.link, place.id, place.groups)


def rank_items(comm: MPI.Intracomm | Chain, items: Iterable[Any]) -> list[Item | None]:
    """For each item of this process: the number of its group, its size, its rank in it.

    Items of all processes that are equal are a group. A process may have none; None is
    no item. Groups are numbered in the order of the items.
    """
    chain = _chain(comm)
    return chain._run(ranking.rank_items(chain._here(), items))


@dataclass(frozen=True)
class Level:
    """A process's group at one level of a hierarchy, and if it leads it, the group of
    the leaders beside it, under the same group of the level above."""

    group: Group
    leaders: Group


def hierarchy(comm: MPI.Intracomm | Chain, values: Iterable[Any]) -> list[Level]:
    """Split by the first value, each group by the second, and so on: a level for each.

    `hierarchy(comm, [rack, node, gpu])[1].group` is the node. None leaves the process
    out of its level and of those below.
    """
    chain = _chain(comm)
    levels: list[Level] = []
    for value in chain._run(_checked(chain, values)):
        if not chain:
            empty = Group(chain._private, None)
            levels.append(Level(empty, empty))
            continue
        group = split(chain, value, reorder=False)
        leaders = split(chain, 0 if group.is_leader else None, reorder=False)
        levels.append(Level(group, leaders))
        chain = group
    return levels


def _checked(chain: Chain, values: Iterable[Any]) -> Dialogue[list[Any]]:
    """The values; if one process has a bad one at any level, all refuse theirs."""
    found: list[Any] = []
    error: Exception | None = None
    try:
        found = list(values)
        for value in found:
            canonical(value)
    except Exception as wrong:
        error = wrong
    yield from agree(chain._here(), ("hierarchy", len(found)), (), error)
    return found


def couple(comm: MPI.Intracomm | Chain, name: Any) -> Coupling:
    """Every process names its component: the communicator inside the own one, by name
    an intercommunicator to each of the others, and collectives among all.

    They are in the order of the components' first ranks. `None` takes no part.
    """
    chain = _chain(comm)
    group = split(chain, name, reorder=False)
    leaders = split(chain, 0 if group.is_leader else None, reorder=False)
    if not group:
        return Coupling(chain._private, MPI.COMM_NULL, {}, {})
    rows = leaders.allgather((name, chain.address, group.size)) if leaders else None
    rows = group.bcast(rows)
    mine = group.comm
    assert isinstance(mine, Intracomm) and group.id is not None
    # All connect in the order of their numbers, so none wait for each other in a ring.
    # Every pair has a tag of its own: leaders that call MPICH 5.0.2 with the same one
    # at the same time take each other's messages and crash.
    others = {}
    for number, (other, leader, _) in enumerate(rows):
        if number != group.id:
            low, high = sorted((number, group.id))
            tag = CONNECT + low * len(rows) + high
            ends = 0, chain._private, leader, tag
            make = partial(mine.Create_intercomm, *ends)
            made = bounded(make, chain._private.limit)
            others[other] = Intercomm(made)

    def members() -> tuple[list[list[int]], int]:
        """The addresses of all processes, group by group, and the own group's number;
        asked for by all together when they first need it."""
        own = group.allgather(chain.address)
        every = group.bcast(leaders.allgather(own) if leaders else None)
        assert group.id is not None
        return every, group.id

    sizes = {other: n for other, _, n in rows}
    return Coupling(chain._private, mine, others, sizes, members)
