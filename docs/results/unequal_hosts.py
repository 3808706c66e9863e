"""Unequal hosts on a lab, two slow of eight: trees that know them against the best
algorithm that does not, and against the MPI library; beside it what the model says.

isthmus lab up --hosts 8 --rate 500mbit --slow 1:20mbit --slow 4:20mbit
isthmus lab run -- python docs/results/unequal_hosts.py "500mbit, hosts 1 and 4 20mbit"

Rank 0 is the root, the others are the group that it talks to.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI
from timing import WORLD, medians

import isthmus
from isthmus.bench.environment import environment
from isthmus.cost.alphabeta import Unequal
from isthmus.schedules.registry import algorithms

RATE = sys.argv[1] if len(sys.argv) > 1 else "rates unknown"
#: seconds for each way of each case
SECONDS = 0.5
TOP = WORLD.rank == 0
ROOT = MPI.ROOT if TOP else 0


def call_of(comm: Any, op: str, n: int, **how: str) -> Callable[[], object]:
    """A call of n bytes: of all, or of each of the group."""
    one, q = np.ones(n, np.uint8), WORLD.size - 1
    every = np.ones(q * n, np.uint8)
    if op == "Bcast":
        return lambda: comm.Bcast(one, ROOT, **how)
    if op == "Reduce":
        ends = (None, one) if TOP else (one, None)
        return lambda: comm.Reduce(*ends, MPI.MAX, ROOT, **how)
    if op == "Gather":
        ends = (None, every) if TOP else (one, None)
        return lambda: comm.Gather(*ends, ROOT, **how)
    ends = (every, None) if TOP else (None, one)
    return lambda: comm.Scatter(*ends, ROOT, **how)


local = WORLD.Split(not TOP)
native = local.Create_intercomm(0, WORLD, 1 if TOP else 0)
inter = isthmus.Intercomm(native)
hosts = inter.probe_hosts()
if TOP:
    print(MPI.Get_library_version().split("\n")[0].strip("\0"))
    print(environment()["processor"], WORLD.size, "processes", RATE)
    print("| call | bytes | library | knows no hosts | trees | gain | in the model |")
    print("|---" * 7 + "|")
for op in ("Bcast", "Reduce", "Gather", "Scatter"):
    known = [a for a in algorithms(f"inter_{op.lower()}") if not a.node_memory]
    trees = [a.name for a in known if "hosts" in a.options]
    for n in (1 << 10, 1 << 13, 1 << 16):
        ways = {a.name: call_of(inter, op, n, algorithm=a.name) for a in known}
        found = medians(ways | {"library": call_of(native, op, n)}, SECONDS)
        size = {"q": WORLD.size - 1, "m" if op in ("Bcast", "Reduce") else "k": n}
        model = {
            a.name: isthmus.schedule(f"inter_{op.lower()}", a.name, hosts=hosts, **size)
            .simulate(Unequal(hosts))
            .time
            for a in known
        }
        if TOP:
            others = [a.name for a in known if a.name not in trees]
            best, tree = (min(x, key=found.__getitem__) for x in (others, trees))
            says = min(model[x] for x in others) / min(model[x] for x in trees)
            words = (f"{found[x]:.2f} ms ({x})" for x in (best, tree))
            library, gain = f"{found['library']:.2f} ms", found[best] / found[tree]
            cells = (op, str(n), library, *words, f"{gain:.2f}", f"{says:.2f}")
            print("|", " | ".join(cells), "|", flush=True)
inter.Free()
local.Free()
