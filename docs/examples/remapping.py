"""An ocean with coasts and an atmosphere on another grid exchange heat, all of which
stays: `mpiexec -n 8 python -m mpi4py remapping.py picture.png` draws both fields.

Each rank makes the weights of its own rows: how much of a cell each cell of the other
grid covers. The ocean gets the air's temperature, the air the heat that the ocean takes
or gives, while both spread their own heat.
"""

import sys

import numpy as np
from mpi4py import MPI
from scipy.sparse import csr_matrix, diags, kron

import isthmus
from isthmus import Layout, Redistribution, Remapping

OCEAN, AIR, STEPS = (72, 120), (32, 64), 1000
world = MPI.COMM_WORLD
is_ocean = world.rank < 5
inside, others = isthmus.couple(world, "ocean" if is_ocean else "air")
(other,) = others.values()
rank, n = inside.rank, inside.size


def edges(shape):
    """Where the rows and columns of a grid end: sines of latitudes, and longitudes."""
    rows, columns = shape
    latitudes = np.linspace(-np.pi / 2, np.pi / 2, rows + 1)
    return np.sin(latitudes), np.linspace(0, 2 * np.pi, columns + 1)


def overlaps(a, b):
    """How long the piece is that each interval of a has in common with each of b."""
    low = np.maximum(a[:-1, None], b[:-1])
    return csr_matrix(np.maximum(np.minimum(a[1:, None], b[1:]) - low, 0))


def conservative(target, source, rows):
    """The weights of some rows of the target's grid: the part of each cell that a cell
    of the source covers. On a sphere the area of a cell is the product of its sides."""
    (y, x), (y_source, x_source) = edges(target), edges(source)
    y = y[rows.start : rows.stop + 1]
    area = np.outer(np.diff(y), np.diff(x)).ravel()
    covered = kron(overlaps(y, y_source), overlaps(x, x_source))
    part = (diags(1 / area) @ covered).tocoo()
    return part.row + rows.start * target[1], part.col, part.data


# how the own grid lies on the own ranks, in strips of rows, and with a row of the
# neighbours on each side
shape, there = (OCEAN, AIR) if is_ocean else (AIR, OCEAN)
mine = Layout.blocks(shape, grid=(n, 1))
rows = mine.local(rank)[0]
low, high = rows.start, rows.stop
wide_rows = slice(max(low - 1, 0), min(high + 1, shape[0]))
halo = Redistribution(inside, mine, wide := Layout.slices(shape, np.s_[wide_rows]))

# the weights of a rank's own rows are of the other group's field
weights = conservative(shape, there, rows)
if is_ocean:
    feel = Remapping(other, weights, target=mine)  # the air's temperature
    give = Remapping(other, source=mine)  # the heat that the ocean takes
else:
    feel = Remapping(other, source=mine)
    give = Remapping(other, weights, target=mine)

y, x = edges(shape)
latitude, longitude = np.arcsin((y[1:] + y[:-1]) / 2)[:, None], (x[1:] + x[:-1]) / 2
# where there is water: around two continents; the air is everywhere
is_wet = np.ones(shape, bool)
if is_ocean:
    coast = 0.6 * np.cos(2 * latitude) + 0.3 * np.sin(5 * latitude)
    for middle in (1.6, 4.4):
        is_wet &= abs(longitude - middle) > coast * (abs(latitude) < 1.2)
areas = np.outer(np.diff(y), np.diff(x))
area, wet, wet_wide = areas[rows], is_wet[rows], is_wet[wide_rows]
capacity = 4.0 if is_ocean else 1.0
temperature = np.where(wet, 30 * np.cos(latitude[rows]) ** 2 - 5.0, 0.0)
if not is_ocean:
    temperature = temperature + 8 * np.sin(3 * longitude)


def spread(field):
    """The heat that each cell gets from its neighbours: what one gets the other gives;
    nothing goes through coasts and poles."""
    around = np.empty(wide.local_shape())
    halo(field, around)
    north = np.diff(around, axis=0) * (wet_wide[1:] & wet_wide[:-1])
    north *= np.minimum(areas[wide_rows][1:], areas[wide_rows][:-1])
    gain = np.zeros(field.shape)
    if low > 0:
        gain -= north[: high - low]
    else:
        gain[1:] -= north[: high - low - 1]
    last = north[int(low > 0) :]
    gain[: len(last)] += last
    east = (np.roll(field, -1, 1) - field) * (wet & np.roll(wet, -1, 1)) * area
    return 0.1 * (gain + east - np.roll(east, 1, 1))


def all_heat():
    """That of both groups; each hears the sum of the other one."""
    own = np.array(float((capacity * area * temperature).sum()))
    ours, theirs = np.empty(()), np.empty(())
    inside.Allreduce(own, ours)
    other.Allreduce(own, theirs)
    return float(ours + theirs)


before = all_heat()
felt, heat = np.zeros(temperature.shape), np.zeros(temperature.shape)
for _ in range(STEPS):
    request = feel.start(felt if is_ocean else temperature)
    gain = spread(temperature)  # while the air's temperature is on its way
    request.Wait()
    if is_ocean:
        heat = np.where(wet, 0.02 * (felt - temperature), 0.0)  # for a unit of area
        give(heat)
    else:
        give(heat)
    temperature += (gain / area + (heat if is_ocean else -heat)) / capacity
after = all_heat()

# both fields on the first rank of their group, and all on that of the world
gather = Redistribution(inside, mine, whole := Layout.blocks(shape, grid=(1, 1)))
gather(np.where(wet, temperature, np.nan), picture := np.empty(whole.local_shape(rank)))
part = ("ocean" if is_ocean else "air", picture) if rank == 0 else None
parts = [x for x in world.gather(part) or [] if x]
for name, data in parts:
    text = f"{np.nanmin(data):.1f} to {np.nanmax(data):.1f} °C"
    print(f"{name}, {data.shape}: {text} after {STEPS} steps")
if world.rank == 0:
    print(f"heat is kept to 1e-13 of it: {abs(after - before) < 1e-13 * abs(before)}")

if parts and len(sys.argv) > 1:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 2.9), layout="constrained")
    for axes, (name, data) in zip(figure.subplots(1, 2), parts, strict=True):
        axes.set_facecolor("0.75")
        image = axes.imshow(data, cmap="coolwarm", vmin=6, vmax=19, origin="lower")
        axes.set(title=f"{name}, {data.shape}", xticks=[], yticks=[], aspect="auto")
    figure.colorbar(image, label="°C")
    figure.savefig(sys.argv[1], dpi=140)
