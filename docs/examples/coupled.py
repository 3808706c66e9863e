"""An ocean and an atmosphere, on other grids and other numbers of ranks.

The ocean has the first five ranks and a fine grid, the atmosphere the others and a grid
of half as many points each way. `mpiexec -n 8 python -m mpi4py coupled.py picture.png`
draws both.
"""

import sys

import numpy as np
from mpi4py import MPI

import isthmus
from isthmus import Layout, Redistribution

FINE, COARSE, STEPS = (48, 96), (24, 48), 100
world = MPI.COMM_WORLD
is_ocean = world.rank < 5
inside, others = isthmus.couple(world, "ocean" if is_ocean else "atmosphere")
(other,) = others.values()
rank, n = inside.rank, inside.size

# how the own grid lies on the own ranks, and the rows that a rank has
shape = FINE if is_ocean else COARSE
mine = Layout.blocks(shape, grid=(n, 1))
low, high = mine.local(rank)[0].start, mine.local(rank)[0].stop
# with a row of the neighbours above and below: what a step needs
around = Layout.slices(shape, np.s_[max(low - 1, 0) : high + 1])
halo = Redistribution(inside, source=mine, target=around)
# the ocean gives its temperature on its grid: the atmosphere takes the fine rows that
# lie below its own; the atmosphere gives its winds, and the ocean takes the coarse rows
# above its own, of which neighbours may need the same
if is_ocean:
    above = Layout.slices(COARSE, np.s_[low // 2 : (high + 1) // 2])
    give, take = Redistribution(other, source=mine), Redistribution(other, target=above)
else:
    below = Layout.blocks(FINE, grid=(n, 1))
    take, give = Redistribution(other, target=below), Redistribution(other, source=mine)


def smooth(field):
    """Each point a little more like its neighbours; from east to west a circle."""
    wide = np.empty(around.local_shape())
    halo(field, wide)
    edges = int(low == 0), int(high == shape[0])  # there nobody is above, or below
    wide = np.pad(wide, (edges, (0, 0)), mode="edge")
    sides = np.roll(field, 1, 1) + np.roll(field, -1, 1)
    return field + 0.02 * (wide[:-2] + wide[2:] + sides - 4 * field)


y, x = np.mgrid[low:high, : shape[1]] / np.array(shape)[:, None, None]
temperature = (
    24 - 70 * (y - 0.5) ** 2 + 4 * np.sin(6 * np.pi * x) * np.sin(5 * np.pi * y)
)
air = 10.0 + 0 * temperature
for _ in range(STEPS):
    if is_ocean:
        give(temperature)
        take(winds := np.empty(above.local_shape()))
        felt = np.repeat(np.repeat(winds, 2, 0), 2, 1)[low % 2 :][: high - low]
        temperature = smooth(temperature) + 0.01 * (felt - temperature)
    else:
        take(sea := np.empty(below.local_shape(rank)))
        give(air)
        rows, columns = air.shape
        felt = sea.reshape(rows, 2, columns, 2).mean((1, 3))
        air = np.roll(smooth(air), 1, 1)  # the wind blows east
        air += 0.1 * (felt - air)

# all of a field on rank 0 of its group: a layout of one rank
field = temperature if is_ocean else air
gather = Redistribution(inside, mine, whole := Layout.blocks(shape, grid=(1, 1)))
gather(field, picture := np.empty(whole.local_shape(rank)))
heat = inside.allreduce(float(field.sum()))
part = None
if rank == 0:
    assert np.isclose(picture.sum(), heat)  # nothing is missing
    name = "ocean" if is_ocean else "atmosphere"
    part = f"{name}, {shape}, {n} ranks", picture
parts = [x for x in world.gather(part) or [] if x]  # of both groups, on world rank 0
for title, data in parts:
    print(f"{title}: {data.min():.1f} to {data.max():.1f} °C after {STEPS} steps")

if parts and len(sys.argv) > 1:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 2.9), layout="constrained")
    for axes, (title, data) in zip(figure.subplots(1, 2), parts, strict=True):
        image = axes.imshow(data, cmap="coolwarm", vmin=0, vmax=28, aspect="auto")
        axes.set(title=title, xticks=[], yticks=[])
    figure.colorbar(image, label="°C")
    figure.savefig(sys.argv[1], dpi=140)
