"""Splits of processes by any value: groups, ranks of items, hierarchies, coupling.

MPI's own split takes integers, and MPI libraries gather a table of all processes on
each process. Here colours are any values, and a large split sorts the chain instead, to
avoid the table.
"""

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
from .private import PrivateComm

#: the first tag of leaders that connect two components; tags of dialogues are lower
FIRST_CONNECT_TAG = 2


class Group(Chain):
    """A group of a split; empty on a process that takes no part."""

    def __init__(
        self,
        comm: PrivateComm,
        link: ChainLink | None,
        id: int | None = None,
        groups: int | None = None,
    ) -> None:
        """A group on a private communicator; users call `split`."""
        super().__init__(comm, link)
        #: the number of this group, in the order of the leaders' ranks
        self.id = id
        #: the number of groups
        self.groups = groups
        self._comm: Intracomm | MPI.Comm = MPI.COMM_NULL

    @property
    def comm(self) -> Intracomm | MPI.Comm:
        """The communicator of the group; the first use is collective."""
        if self and not self._comm:
            self._comm = self.to_comm()
        return self._comm

    def free(self) -> None:
        """Free the communicator of the group, if in use."""
        if self._comm:
            self._comm.Free()
        self._comm = MPI.COMM_NULL


def _chain(comm: MPI.Intracomm | Chain) -> Chain:
    """The chain of an argument, of which this process must be a member."""
    chain = comm if isinstance(comm, Chain) else Chain.from_comm(comm)
    chain._own_link()
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

    Colour and key are int, float, str, bytes, None, tuples of these, or of a registered
    type. Colours are equal if Python calls them equal. `color=None` leaves the process
    out; `key=None` comes before all other keys. Without `split` all processes are one
    group; without `reorder` processes keep their order. `comm` may be a chain, or a
    group of another split. `compare_color(x, y)` and `compare_key(x, y)` order colours
    and keys of any type that can be pickled, by a number below, equal to or above 0.
    All processes pass these functions, or none does.
    """
    chain = _chain(comm)
    dialogue = splitting.split(
        chain._own_link(),
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
    """The number and the size of the group of each item, and the item's rank there.

    Equal items of all processes are a group. A process may have no items, and None is
    no item. Groups are numbered in the order of the items.
    """
    chain = _chain(comm)
    return chain._run(ranking.rank_items(chain._own_link(), items))


@dataclass(frozen=True)
class HierarchyLevel:
    """The group of a process at a level of a hierarchy, and on a group's leader the
    group of leaders with a common group at the level above."""

    group: Group
    leaders: Group


def hierarchy(
    comm: MPI.Intracomm | Chain, values: Iterable[Any]
) -> list[HierarchyLevel]:
    """Split by the first value, each group by the second, and so on: a level a value.

    `hierarchy(comm, [rack, node, gpu])[1].group` is the node. None leaves the process
    out of a level and of all levels below.
    """
    chain = _chain(comm)
    levels: list[HierarchyLevel] = []
    for value in chain._run(_check_values(chain, values)):
        if not chain:
            empty = Group(chain._private, None)
            levels.append(HierarchyLevel(empty, empty))
            continue
        group = split(chain, value, reorder=False)
        leaders = split(chain, 0 if group.is_leader else None, reorder=False)
        levels.append(HierarchyLevel(group, leaders))
        chain = group
    return levels


def _check_values(chain: Chain, values: Iterable[Any]) -> Dialogue[list[Any]]:
    """The values as a list; an error on all processes if a value on any is no colour.

    All levels are checked before the first split, since the splits of groups below
    would otherwise fail in some groups only.
    """
    colors: list[Any] = []
    error: Exception | None = None
    try:
        colors = list(values)
        for color in colors:
            canonical(color)
    except Exception as first_error:
        error = first_error
    yield from agree(chain._own_link(), ("hierarchy", len(colors)), (), error)
    return colors


def couple(comm: MPI.Intracomm | Chain, name: Any) -> Coupling:
    """Couple components, of which each process names its own.

    The coupling has the communicator inside the own component, by name an
    intercommunicator to each of the others, and collectives among all. Components are
    in the order of their first ranks. A process with name None takes no part.
    """
    chain = _chain(comm)
    group = split(chain, name, reorder=False)
    leaders = split(chain, 0 if group.is_leader else None, reorder=False)
    if not group:
        return Coupling(chain._private, MPI.COMM_NULL, {}, {})
    rows = leaders.allgather((name, chain.address, group.size)) if leaders else None
    rows = group.bcast(rows)
    inside = group.comm
    assert isinstance(inside, Intracomm) and group.id is not None
    # All connect in the order of their numbers, so that no ring of components waits.
    # Every pair has a tag of its own: leaders that call MPICH 5.0.2 with equal tags at
    # the same time take each other's messages and crash.
    others = {}
    for number, (component, leader, _) in enumerate(rows):
        if number != group.id:
            low, high = sorted((number, group.id))
            tag = FIRST_CONNECT_TAG + low * len(rows) + high
            connect = partial(inside.Create_intercomm, 0, chain._private, leader, tag)
            others[component] = Intercomm(bounded(connect, chain._private.limit))

    def members() -> tuple[list[list[int]], int]:
        """The addresses of all processes, group by group, and the own group's number;
        collective, at the first use."""
        own = group.allgather(chain.address)
        addresses = group.bcast(leaders.allgather(own) if leaders else None)
        assert group.id is not None
        return addresses, group.id

    sizes = {component: size for component, _, size in rows}
    return Coupling(chain._private, inside, others, sizes, members)
