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
    layout = Layout.blocks(shape, grid=(group.size, 1))  # rows
    move = isthmus.Redistribution(inter, source=layout)
    field = whole[layout.local(group.rank)]
else:
    layout = Layout.blocks(shape, grid=(1, group.size))  # columns
    move = isthmus.Redistribution(inter, target=layout)
    field = np.empty(layout.local_shape(group.rank))
move(field)

right = (field == whole[layout.local(group.rank)]).all()
name = "ocean" if is_ocean else "atmosphere"
lines = world.gather(f"{name} {group.rank} has {field.shape} of {shape}: right {right}")
if world.rank == 0:
    print("\n".join(lines))
