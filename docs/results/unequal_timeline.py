"""A Reduce on unequal hosts, as it ran on a lab and as the model has it, drawn.

isthmus lab up --hosts 8 --rate 500mbit --slow 1:20mbit --slow 4:20mbit
isthmus lab run -- python docs/results/unequal_timeline.py docs/pictures/unequal.png
"""

from __future__ import annotations

import sys

import numpy as np
from mpi4py import MPI

import isthmus
from isthmus.cost.machine import Unequal
from isthmus.draw.gantt import gantts

BYTES, RUNS = 1 << 18, 5
WORLD = MPI.COMM_WORLD
TOP = WORLD.rank == 0

local = WORLD.Split(not TOP)
native = local.Create_intercomm(0, WORLD, 1 if TOP else 0)
inter = isthmus.Intercomm(native)
hosts, q = inter.probe_hosts(), WORLD.size - 1
data = np.ones(BYTES, np.uint8)
ends = (None, data, MPI.MAX, MPI.ROOT) if TOP else (data, None, MPI.MAX, 0)
shown = {}
for name in ("linear", "fastest_node_first"):
    with isthmus.recording(inter) as record:
        for _ in range(RUNS):
            WORLD.Barrier()
            inter.Reduce(*ends, algorithm=name)
    lines = sorted(record.timelines(), key=lambda line: line.time)
    shown[f"recorded: {name}, {BYTES >> 10} KiB"] = lines[RUNS // 2]
    made = isthmus.schedule("inter_reduce", name, hosts=hosts, q=q, m=BYTES)
    shown[f"simulated: {name}"] = made.simulate(Unequal(hosts), record=True)
if TOP:
    gantts(shown, (1, q)).savefig(sys.argv[1], dpi=100)
    print({name: f"{1e3 * line.time:.1f} ms" for name, line in shown.items()})
inter.Free()
local.Free()
