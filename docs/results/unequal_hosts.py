"""Unequal hosts on a lab, two slow of eight: trees that know them against the best
algorithm that does not, and against the MPI library; beside it what the model says, and
what `auto` takes before and after it knows them.

isthmus lab up --hosts 8 --rate 500mbit --slow 1:20mbit --slow 4:20mbit
isthmus lab run -- python docs/results/unequal_hosts.py "500mbit, hosts 1 and 4 20mbit"

Rank 0 is the root, the others are the group that it talks to. A link of a lab lets the
first 64 KB after a pause through at once: rates tell for the longest size.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

import isthmus
from isthmus.bench.compare import medians
from isthmus.bench.environment import environment
from isthmus.bench.stand import Stand, Trial
from isthmus.choose.unequal_hosts import times
from isthmus.mpi.costs.tuning import library
from isthmus.schedules.registry import algorithms

WORLD = MPI.COMM_WORLD
RATE = sys.argv[1] if len(sys.argv) > 1 else "rates unknown"
#: bytes of the vector, or of each block
SIZES = (1 << 13, 1 << 16, 1 << 18)
#: seconds for each way of each case
SECONDS = 0.3
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


stand, local = Stand((WORLD.size,)), WORLD.Split(not TOP)
native, blind = (local.Create_intercomm(0, WORLD, 1 if TOP else 0) for _ in range(2))
inter, blind = isthmus.Intercomm(native), isthmus.Intercomm(blind)
hosts = inter.probe_hosts()
if not hosts.unequal:
    sys.exit("these hosts are equal: there is nothing to compare" if TOP else 0)
if TOP:
    print(library())
    print(environment()["processor"], WORLD.size, "processes", RATE)
    rates = (f"{8e-6 / x:.0f}" for x in hosts.betas)
    print("probed, Mbit/s of each host:", " ".join(rates))
    head = "call | bytes | library | auto, blind | knows no hosts | trees | gain"
    print(f"| {head} | in the model | auto |")
    print("|---" * 9 + "|")
for op in ("Bcast", "Reduce", "Gather", "Scatter"):
    collective = f"inter_{op.lower()}"
    known = [a for a in algorithms(collective) if not a.node_memory]
    trees = [a.name for a in known if "hosts" in a.options]
    others = [a.name for a in known if a.name not in trees]
    for n in SIZES:
        ways = {a.name: call_of(inter, op, n, algorithm=a.name) for a in known}
        ways |= {"library": call_of(native, op, n)}
        ways |= {"blind": call_of(blind, op, n), "auto": call_of(inter, op, n)}
        trials = {name: Trial(call) for name, call in ways.items()}
        found = medians(stand, trials, SECONDS * len(trials))
        startup = inter._context().machine.startup_bytes
        model = times(collective, hosts, n, startup, q=WORLD.size - 1)
        if TOP:
            best, tree = (min(x, key=found.__getitem__) for x in (others, trees))
            says = min(model[x] for x in others) / min(model[x] for x in trees)
            words = (f"{1e3 * found[x]:.2f} ms ({x})" for x in (best, tree))
            first = (f"{1e3 * found[x]:.2f} ms" for x in ("library", "blind"))
            gains = f"{found[best] / found[tree]:.2f}", f"{says:.2f}"
            cells = op, str(n), *first, *words, *gains, f"{1e3 * found['auto']:.2f} ms"
            print("|", " | ".join(cells), "|", flush=True)
for comm in (inter, blind, local):
    comm.Free()
