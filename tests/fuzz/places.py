"""Communicators that calls are drawn for: of two groups, of one, of several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpi4py import MPI

import isthmus

from .transfers import Group

Rng = np.random.Generator


@dataclass
class Place:
    """A communicator of ours, and who is who in it."""

    name: str
    comm: Any
    group: Group
    #: a communicator of mpi4py's with all ranks of it, for the fuzz itself
    everyone: MPI.Intracomm
    free: Callable[[], None]
    #: calls that this rank made wrong, and that were refused
    refusals: int = 0

    @property
    def kind(self) -> str:
        """One of "between", "inside" and "several"."""
        return self.name.partition(" ")[0]

    @property
    def ranks(self) -> int:
        """How many ranks have a part in calls on it."""
        return self.everyone.size


def between(world: MPI.Intracomm, p: int) -> Place:
    """The first p ranks and the others."""
    everyone = world.Dup()
    me, n, is_low = world.rank, world.size, world.rank < p
    local = everyone.Split(0 if is_low else 1)
    inter = isthmus.Intercomm(
        local.Create_intercomm(0, everyone, p if is_low else 0, 11)
    )
    low, high = tuple(range(p)), tuple(range(p, n))
    group = Group(me, low, high) if is_low else Group(me, high, low)

    def free() -> None:
        inter.Free()
        local.Free()
        everyone.Free()

    return Place(f"between {p} and {n - p}", inter, group, everyone, free)


def inside(world: MPI.Intracomm, parts: int) -> Place:
    """All ranks, or those of one of several parts."""
    return part_of(world, world.rank % parts)


def part_of(world: MPI.Intracomm, number: int) -> Place:
    """The ranks of one of several parts, each of which gives its number."""
    part = world.Split(number, world.rank)
    everyone = part.Dup()
    comm = isthmus.Intracomm(part)
    ranks = tuple(range(comm.size))

    def free() -> None:
        comm.Free()
        everyone.Free()

    group = Group(comm.rank, ranks, ranks)
    return Place(f"inside {comm.size} of {world.size}", comm, group, everyone, free)


def several(world: MPI.Intracomm, groups: int) -> Place:
    """Groups that found each other by their names."""
    everyone = world.Dup()
    names = [i % groups for i in range(world.size)]
    coupling = isthmus.couple(isthmus.Intracomm(everyone), f"g{names[world.rank]}")
    others = [i for k in range(groups) for i in range(world.size) if names[i] == k]
    mine = names[world.rank]
    there = tuple(i for i in others if names[i] != mine)
    here = tuple(i for i in range(world.size) if names[i] == mine)

    def free() -> None:
        coupling.Free()
        everyone.Free()

    group = Group(world.rank, here, there)
    return Place(f"several {groups}", coupling, group, everyone, free)


def draw(rng: Rng, world: MPI.Intracomm, kinds: str = "bbbiis") -> Place:
    """A communicator of a kind: between (b), inside (i) or several (s)."""
    kind = str(rng.choice(list(kinds)))
    p, parts = int(rng.integers(1, max(world.size, 2))), 1 + int(rng.random() < 0.3)
    if kind == "i" or world.size == 1:
        place = inside(world, parts)
    elif kind == "s" and world.size > 2:
        place = several(world, min(3, world.size))
    else:
        place = between(world, p)
    make_context(place)
    return place


def make_context(place: Place) -> None:
    """Make a first call, so that the variables of now hold."""
    if place.kind == "inside":
        place.comm.Allreduce(np.zeros(1), np.zeros(1))
    else:
        place.comm.Allgather(np.zeros(1), np.zeros(len(place.group.there)))
