"""One exchange by isthmus or by YAC, timed: `mpiexec -n 8 python exchange.py NAME SIDE
ROUNDS`, with `isthmus`, `yac-target` or `yac-source` (who multiplies), in a folder with
`weights-SIDE.yac.nc`.

A round is a barrier and the slowest rank's time. The first half of the ranks has the
source.
"""

import sys
import time

import numpy as np
from grids import entries, expected, field, strip
from mpi4py import MPI

name, side, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
world = MPI.COMM_WORLD
half = world.size // 2
is_source, me = world.rank < half, world.rank % half
points = strip(side, me, half, of_columns=not is_source)
values = field(points) if is_source else np.zeros(len(points))


def with_isthmus():
    import isthmus

    group = world.Split(int(not is_source), world.rank)
    inter = group.Create_intercomm(0, world, half if is_source else 0)
    grid = (half, 1) if is_source else (1, half)
    layout = isthmus.Layout.blocks((side, side), grid)
    shaped = values.reshape(layout.local_shape(me))
    if is_source:
        remap = isthmus.Remapping(inter, source=layout)
    else:
        columns, weights = entries(side, points)
        given = np.repeat(points, 9), columns.ravel(), weights.ravel()
        remap = isthmus.Remapping(inter, given, target=layout)
    remap(shaped)  # its first call makes the plan
    return lambda: remap(shaped), remap


def with_yac():
    import yac

    yac.def_calendar(yac.Calendar.PROLEPTIC_GREGORIAN)
    instance = yac.YAC(comm=world)
    instance.def_datetime("2020-01-01T00:00:00", "2020-01-02T00:00:00")
    role = "source" if is_source else "target"
    component = instance.def_comp(role)
    longitudes, latitudes = np.linspace(0, 0.2, side), np.linspace(-0.1, 0.1, side)
    rows, columns = np.unique(points // side), np.unique(points % side)
    corners = longitudes[columns], latitudes[rows]
    grid = yac.Reg2dGrid(role + "grid", *corners)
    grid.set_global_index(points.astype(np.int32), yac.Location.CORNER)
    place = grid.def_points(yac.Location.CORNER, *corners)
    second = yac.TimeUnit.SECOND
    shared = yac.Field.create("temperature", component, place, 1, "1", second)
    # not by add_user_file, which raises an AttributeError in yac 3.21.0
    words = f"- user_file:\n    filename: weights-{side}.yac.nc\n"
    stack = yac.InterpolationStack.from_string_yaml(words)
    ends = [(x, f"{x}grid", "temperature") for x in ("source", "target")]
    how = {"mapping_on_source": int(name == "yac-source")}
    none = yac.Reduction.TIME_NONE
    instance.def_couple(*ends[0], *ends[1], "1", second, none, stack, **how)
    instance.enddef()
    buffer = values.reshape(1, -1)

    def exchange():
        if is_source:
            shared.put(values)
            shared.wait()
        else:
            shared.get(buffer)

    exchange()
    return exchange, (instance, grid, place)  # YAC does not keep them alive


world.Barrier()
begin = time.perf_counter()
exchange, owners = with_isthmus() if name == "isthmus" else with_yac()
setup = world.allreduce(time.perf_counter() - begin, MPI.MAX)
times = []
for _ in range(rounds):
    world.Barrier()
    begin = time.perf_counter()
    exchange()
    times.append(world.allreduce(time.perf_counter() - begin, MPI.MAX))
difference = 0.0 if is_source else float(np.abs(values - expected(side)[points]).max())
difference = world.allreduce(difference, MPI.MAX)
if world.rank == 0:
    low, middle, high = np.percentile(times, [10, 50, 90]) * 1e3
    print(
        f"{name:12s} {side}x{side} {half}+{half}  set-up {setup:7.3f} s  exchange "
        f"{middle:7.2f} ms (10-90 %: {low:.2f}-{high:.2f})  difference {difference:.1e}"
    )
