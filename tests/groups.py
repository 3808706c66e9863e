"""Two groups of the ranks of a launch, and the right results of their exchanges."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from mpi4py import MPI

import isthmus
from isthmus.schedules import registry
from sampling import some

#: the group sizes tested at each number of ranks
SHAPES = {2: [(1, 1)], 3: [(2, 1)], 5: [(1, 4), (3, 2)], 8: [(5, 3), (2, 6)]}
#: numbers of ranks for tests that hardly depend on the number
FEW = (2, 5)

ALGORITHMS = [a.name for a in registry.algorithms("inter_allgatherv")]
NAMES = ["auto", *ALGORITHMS]


@dataclass
class Pair:
    """Two groups: mpi4py's intercommunicator, and ours on mpi4py's handle."""

    world: MPI.Intracomm
    p: int
    local: MPI.Intracomm
    native: MPI.Intercomm

    @cached_property
    def ours(self) -> isthmus.Intercomm:
        return isthmus.Intercomm(self.native)

    @property
    def there(self) -> range:
        """The numbers of the remote group's ranks."""
        n, p = self.world.size, self.p
        return range(p, n) if self.world.rank < p else range(p)

    def free(self) -> None:
        self.native.Free()
        self.local.Free()


def pair(world: MPI.Intracomm, p: int) -> Pair:
    """Two groups: the first p ranks, and the rest."""
    low = world.rank < p
    local = world.Split(0 if low else 1)
    native = local.Create_intercomm(0, world, p if low else 0, 11)
    return Pair(world, p, local, native)


def pairs(world: MPI.Intracomm, shapes=SHAPES, turn: int | None = None):
    """All shapes of groups for the launch; with `turn`, every second shape."""
    stride = 1 if turn is None else 2
    for p, _ in some(shapes[world.size], stride, turn or 0):
        groups = pair(world, p)
        yield groups
        groups.free()


def values(rank: int, n: int, dtype="f8") -> np.ndarray:
    """The contribution of a rank, which differs by rank and place."""
    return (np.arange(n) * 7 + 13 * rank + 1).astype(dtype)


def expected(groups: Pair, counts, dtype="f8") -> np.ndarray:
    """The elements that a rank must receive if rank i contributes counts[i]."""
    parts = [values(i, counts[i], dtype) for i in groups.there]
    return np.concatenate(parts) if parts else np.empty(0, dtype)


def same(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether two arrays have equal types, shapes and bytes."""
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
