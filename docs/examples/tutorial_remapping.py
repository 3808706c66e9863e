"""A field comes from one grid to another, by weights."""

import numpy as np
from mpi4py import MPI

import isthmus
from isthmus import Layout

world = MPI.COMM_WORLD
is_ocean = world.rank < world.size // 2
group, others = isthmus.couple(world, "ocean" if is_ocean else "atmosphere")
(inter,) = others.values()

fine, coarse = (60, 90), (30, 45)  # of each coarse cell, four fine ones
numbers = np.arange(60 * 90).reshape(fine)
columns = numbers.reshape(30, 2, 45, 2).swapaxes(1, 2).ravel()
weights = np.repeat(np.arange(30 * 45), 4), columns, np.full(60 * 90, 0.25)
if is_ocean:
    layout = Layout.blocks(fine, grid=(group.size, 1))
    remap = isthmus.Remapping(inter, source=layout)
    field = numbers[layout.local(group.rank)].astype(float)
else:
    mine = weights if group.rank == 0 else None  # any rank may have any part of them
    layout = Layout.blocks(coarse, grid=(1, group.size))
    remap = isthmus.Remapping(inter, mine, target=layout)
    field = np.empty(layout.local_shape(group.rank))
remap(field)

if is_ocean:
    line = f"ocean {group.rank} gave {field.shape} of {fine}"
else:
    means = numbers.reshape(30, 2, 45, 2).mean((1, 3))  # to compare with
    right = (field == means[layout.local(group.rank)]).all()
    line = f"atmosphere {group.rank} got {field.shape} of {coarse}: right {right}"
lines = world.gather(line)
if world.rank == 0:
    print("\n".join(lines))
