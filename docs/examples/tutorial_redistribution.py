"""A field in blocks of rows goes to a group that holds it in blocks of columns."""

import numpy as np
from mpi4py import MPI

import isthmus
from isthmus import Layout

world = MPI.COMM_WORLD
is_ocean = world.rank < world.size // 2
group, others = isthmus.couple(world, "ocean" if is_ocean else "atmosphere")
(inter,) = others.values()

shape = 60, 90
whole = np.arange(60.0 * 90.0).reshape(shape)  # to compare with
if is_ocean:
    rows = Layout.blocks(shape, grid=(group.size, 1))
    move = isthmus.Redistribution(inter, source=rows)
    move(whole[rows.local(group.rank)])
else:
    columns = Layout.blocks(shape, grid=(1, group.size))
    move = isthmus.Redistribution(inter, target=columns)
    field = np.empty(columns.local_shape(group.rank))
    move(field)
    assert (field == whole[columns.local(group.rank)]).all()
