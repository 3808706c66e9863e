"""How much of a remapping is its messages, and how much its product.

`mpiexec -n 16 python -m mpi4py overlap.py SIDE ROUNDS`, or on a lab
`isthmus lab run --name NAME -- python overlap.py SIDE ROUNDS`. The remapping, the same
bytes without the product, and the product without the bytes, in turns; a time is that
of the slowest rank. Multiplied while messages come, a remapping should take little more
than the longer of the two. Of the set-up also the largest growth of a rank's memory.
"""

import resource
import sys
import time

import numpy as np
from grids import entries, field, strip
from mpi4py import MPI

import isthmus
from isthmus import Layout

side, rounds = int(sys.argv[1]), int(sys.argv[2])
world = MPI.COMM_WORLD
half = world.size // 2
is_source, me = world.rank < half, world.rank % half
group = world.Split(int(not is_source), world.rank)
inter = group.Create_intercomm(0, world, half if is_source else 0)
points = strip(side, me, half, of_columns=not is_source)
layout = Layout.blocks((side, side), (half, 1) if is_source else (1, half))
world.Barrier()
kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begin = time.perf_counter()
if is_source:
    remap = isthmus.Remapping(inter, source=layout)
else:
    columns, weights = entries(side, points)
    given = np.repeat(points, 9), columns.ravel(), weights.ravel()
    remap = isthmus.Remapping(inter, given, target=layout)
setup = world.allreduce(time.perf_counter() - begin, MPI.MAX)
kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - kib
kib = world.allreduce(kib, MPI.MAX)
values = field(points) if is_source else np.zeros(len(points))
values = values.reshape(layout.local_shape(me))
moved = values if is_source else np.zeros(len(remap.needed))
cases = {
    "remapping": lambda: remap(values),
    "its bytes alone": lambda: remap.columns(moved),
    "its product alone": lambda: is_source or remap.matrix @ moved,
}
times = {name: [] for name in cases}
for k in range(rounds + 2):
    for name, call in cases.items():
        world.Barrier()
        begin = time.perf_counter()
        call()
        took = world.allreduce(time.perf_counter() - begin, MPI.MAX)
        if k >= 2:  # the first calls make plans
            times[name].append(took)
if world.rank == 0:
    print(
        f"{MPI.get_vendor()[0]}, {side}x{side}, {half}+{half}: set-up {setup:.3f} s, "
        f"{kib / 1024:.0f} MiB"
    )
    for name, each in times.items():
        low, middle, high = np.percentile(each, [10, 50, 90]) * 1e3
        print(f"  {name:18s}{middle:8.2f} ms (10-90 %: {low:.2f}-{high:.2f})")
