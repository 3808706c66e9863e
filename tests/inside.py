"""Groups of every size from 1 to 8, made of ranks of one launch; and larger ones."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

import isthmus
from groups import values

#: the launches; their ranks also form smaller groups, two side by side
SIZES = (8,)


def comms(world: MPI.Intracomm):
    """In a launch of 8, all sizes from 1 to 8, two groups at a time; else the world.

    They serve all tests of a launch: to make them, and to measure what a message costs
    on each, takes longer than most tests.
    """
    if world.size not in _made:
        parts = range(1, 5) if world.size == 8 else ()
        found = [*(world.Split(world.rank < k) for k in parts), world.Dup()]
        _made[world.size] = [isthmus.Intracomm(comm) for comm in found]
    return _made[world.size]


_made: dict[int, list[isthmus.Intracomm]] = {}


class Case:
    """What everyone contributes, and where it goes: places with gaps between them."""

    def __init__(self, comm, counts, gap=0, backwards=False, dtype="i4"):
        self.comm, self.counts, self.dtype = comm, list(counts), dtype
        order = range(len(counts))
        places, at = {}, gap
        for i in reversed(order) if backwards else order:
            places[i] = at
            at += counts[i] + gap
        self.displs = [places[i] for i in order]
        self.size = at
        self.mine = values(comm.rank, counts[comm.rank], dtype)

    @property
    def wanted(self):
        """The receive buffer of a right call: data in their places, gaps untouched."""
        room = self.room()
        for i, n in enumerate(self.counts):
            room[self.displs[i] : self.displs[i] + n] = values(i, n, self.dtype)
        return room

    def room(self, in_place=False):
        """A receive buffer; with the own contribution, if it is in place."""
        room = np.full(self.size, 111, self.dtype)
        if in_place:
            at = self.displs[self.comm.rank]
            room[at : at + len(self.mine)] = self.mine
        return room

    def arguments(self, in_place=False):
        """Send and receive specifications, and the receive buffer."""
        room = self.room(in_place)
        send = MPI.IN_PLACE if in_place else self.mine
        return send, [room, (self.counts, self.displs)], room
