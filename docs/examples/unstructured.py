"""A mesh of triangles: points in any order, which ranks share at their borders."""

import numpy as np
from mpi4py import MPI

from isthmus import Layout, Redistribution

world = MPI.COMM_WORLD
rank, n = world.rank, world.size

# points in a square, triangles between them; a rank has the triangles of its sector
side = 24
points = np.stack(np.mgrid[:side, :side], -1).reshape(-1, 2)
corner = np.arange(side * side).reshape(side, side)
a, b, c, d = (
    x.ravel()
    for x in (corner[:-1, :-1], corner[1:, :-1], corner[:-1, 1:], corner[1:, 1:])
)
triangles = np.concatenate((np.stack((a, b, c), 1), np.stack((d, c, b), 1)))
middle = points[triangles].mean(1) - (side - 1.2) / 2
sector = ((np.arctan2(*middle.T) / np.pi + 1) / 2 * n).astype(int) % n
mine = triangles[sector == rank]
# global numbers of the points of my triangles; those at a border have other ranks too
local, corners = np.unique(mine, return_inverse=True)
corners = corners.reshape(mine.shape)

# Each triangle gives a third of its area to its points. A point at the border gets some
# from triangles of several ranks: the sum of them, on all that have the point.
shared = Layout.indices(len(points), local)
total = Redistribution(world, source=shared, target=shared, combine=MPI.SUM)
area = np.bincount(corners.ravel(), minlength=len(local)) * 0.5 / 3
whole = np.empty_like(area)
total(area, whole)
everywhere = np.bincount(triangles.ravel()) * 0.5 / 3
assert np.allclose(whole, everywhere[local])
line = f"rank {rank}: {len(mine)} triangles, {len(local)} points"

# The same field in the order of a file: rank 0 has the first points, and so on.
file = Layout.blocks(len(points), grid=(n,))
move = Redistribution(world, source=shared, target=file)
ordered = np.empty(file.local_shape(rank))
move(whole, ordered)
assert np.allclose(ordered, everywhere[file.local(rank)])
lines = world.gather(f"{line}; in the order of the file {len(ordered)} points")
if rank == 0:
    print("\n".join(lines), f"the area of the mesh: {everywhere.sum():g}", sep="\n")
