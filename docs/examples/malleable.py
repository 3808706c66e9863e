"""A program that goes on with fewer ranks, and later with all of them again."""

import numpy as np
from mpi4py import MPI

from isthmus import Layout, Redistribution

world = MPI.COMM_WORLD
SHAPE = 90, 40


def rows(n):
    """Rows on the first n ranks; the others have none."""
    return Layout.blocks(SHAPE, grid=(n, 1))


def resized(field, old, new):
    """The field on other ranks, which all of both must ask for."""
    move = Redistribution(world, source=rows(old), target=rows(new))
    found = np.empty(rows(new).local_shape(world.rank), field.dtype)
    move(field, found)
    return found


whole = np.arange(3600.0).reshape(SHAPE)
field = whole[rows(world.size).local(world.rank)].copy()
few = max(world.size - 3, 1)
field = resized(field, world.size, few)
meanwhile = len(field)
if world.rank < few:
    field *= 2  # the work goes on
else:
    pass  # this rank can do something else
field = resized(field, few, world.size)
assert (field == 2 * whole[rows(world.size).local(world.rank)]).all()

lines = world.gather(f"rank {world.rank}: {meanwhile} rows meanwhile, {len(field)} now")
if world.rank == 0:
    print("\n".join(lines))
