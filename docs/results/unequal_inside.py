"""Unequal hosts inside a group, two of eight at a tenth of the rate: the trees that
know them and `auto` against the MPI library's own call, and what the model says.

isthmus lab up --hosts 8 --rate 200mbit --slow 1:20mbit --slow 4:20mbit
isthmus lab run -- python docs/results/unequal_inside.py "200mbit, hosts 1 and 4 20mbit"

Rank 0 is the root. "blind" is the best of isthmus's algorithms that knows no hosts; in
the model the same against the better tree.
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
from isthmus.choose.unequal_hosts import times
from isthmus.mpi.costs.tuning import library
from isthmus.schedules.registry import algorithms

RATE = sys.argv[1] if len(sys.argv) > 1 else "rates unknown"
#: bytes of the vector, or of each block
SIZES = (1 << 10, 1 << 20)
#: seconds for each way of each case
SECONDS = 0.5
TREES = ("fastest_node_first", "speed_partitioned")
#: what cuts long vectors into many messages is slow for short ones and long to wait for
BLIND = ("binomial", "linear", "circulant", "scatter_allgather")
TOP = WORLD.rank == 0


def call_of(comm: Any, op: str, n: int, **how: str) -> Callable[[], object]:
    """A call of n bytes: of all, or of each rank."""
    one, other = np.ones(n, np.uint8), np.zeros(n, np.uint8)
    every = np.ones(WORLD.size * n, np.uint8) if TOP else None
    if op == "Bcast":
        return lambda: comm.Bcast(one, 0, **how)
    if op == "Reduce":
        return lambda: comm.Reduce(one, other if TOP else None, MPI.MAX, 0, **how)
    if op == "Gather":
        return lambda: comm.Gather(one, every, 0, **how)
    return lambda: comm.Scatter(every, other, 0, **how)


native = WORLD.Dup()
ours = isthmus.Intracomm(WORLD.Dup())
hosts = ours.probe_hosts()
if TOP:
    print(library())
    print(environment()["processor"], WORLD.size, "processes", RATE)
    print("probed, Mbit/s:", " ".join(f"{8e-6 / x:.0f}" for x in hosts.betas))
    print("probed, start-ups in µs:", " ".join(f"{1e6 * x:.0f}" for x in hosts.alphas))
    if not hosts.unequal:
        print("these hosts are taken for equal")
    head = "call | bytes | library | auto | fastest_node_first | speed_partitioned"
    print(f"| {head} | blind | library / auto | blind / tree | in the model |")
    print("|---" * 10 + "|")
for op in ("Bcast", "Reduce", "Gather", "Scatter"):
    collective = op.lower() + "v" * (op in ("Gather", "Scatter"))
    blind = [a.name for a in algorithms(collective) if a.name in BLIND]
    for n in SIZES:
        names = [*TREES, *blind]
        ways = {x: call_of(ours, op, n, algorithm=x) for x in names}
        ways |= {"library": call_of(native, op, n), "auto": call_of(ours, op, n)}
        ways["auto"]()
        taken = ours._last_algorithm()
        ms = medians(ways, SECONDS)
        startup = ours._context().machine.startup_bytes
        model = times(collective, hosts, n, startup, p=WORLD.size, root=0)
        if TOP:
            best, tree = (min(x, key=ms.__getitem__) for x in (blind, TREES))
            says = min(model[x] for x in blind) / min(model[x] for x in TREES)
            cells = [op, str(n), f"{ms['library']:.2f}", f"{ms['auto']:.2f} ({taken})"]
            cells += [f"{ms[x]:.2f}" for x in TREES] + [f"{ms[best]:.2f} ({best})"]
            cells += [f"{ms['library'] / ms['auto']:.2f}"]
            cells += [f"{ms[best] / ms[tree]:.2f}", f"{says:.2f}"]
            print("|", " | ".join(cells), "|", flush=True)
for comm in (ours, native):
    comm.Free()
