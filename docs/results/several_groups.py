"""Several groups on a lab: one call of a coupling against g - 1 intercommunicator calls
and against one Allgatherv over all processes; the two gains are over these.

isthmus lab up --hosts 12 --rate 200mbit
isthmus lab run -- python docs/results/several_groups.py 200mbit
"""

from __future__ import annotations

import sys

import numpy as np
from mpi4py import MPI

import isthmus
from isthmus.bench.compare import medians
from isthmus.bench.environment import environment
from isthmus.bench.stand import Stand, Trial

WORLD = MPI.COMM_WORLD
RATE = sys.argv[1] if len(sys.argv) > 1 else "rate unknown"
#: seconds for each way of each case
SECONDS = 2.0


def ways_of(coupling: isthmus.Coupling, k: int, giant: int) -> dict[str, Trial]:
    """The ways; a process has k bytes, and the last of all `giant` in their place."""
    last = WORLD.size - 1
    mine = giant or k if WORLD.rank == last else k
    send = np.ones(mine, np.uint8)
    every = WORLD.allgather((coupling.comm.rank, mine))
    names = list(coupling.sizes)
    own = next(x for x in names if x not in coupling.others)
    ranks = {x: [r for r in range(WORLD.size) if group_of(r) == x] for x in names}
    counts = {x: [every[r][1] for r in ranks[x]] for x in names}
    others = [n for x in names if x != own for n in counts[x]]
    theirs = np.empty(sum(others), np.uint8)
    counts_of_all = [n for _, n in every]
    whole = [np.empty(sum(counts_of_all), np.uint8), counts_of_all]
    rooms = {x: np.empty(sum(counts[x]), np.uint8) for x in coupling.others}

    def pairs() -> None:
        # in turn t groups i and t - i meet: no group waits for a third
        turns = {(int(x) + int(own)) % len(names): x for x in coupling.others}
        for _, x in sorted(turns.items()):
            coupling.others[x].Allgatherv(send, [rooms[x], counts[x]])

    ours = isthmus.Intracomm(WORLD)
    return {
        "coupling": Trial(lambda: coupling.Allgatherv(send, [theirs, others])),
        "g - 1 calls": Trial(pairs),
        "one Allgatherv": Trial(lambda: ours.Allgatherv(send, whole)),
        "library, one Allgatherv": Trial(lambda: WORLD.Allgatherv(send, whole)),
    }


def group_of(rank: int) -> str:
    """Groups of consecutive ranks, as even as may be."""
    return str(rank * GROUPS // WORLD.size)


stand = Stand((WORLD.size,))
for GROUPS in (3, 4):
    coupling = isthmus.couple(WORLD, group_of(WORLD.rank))
    for k, giant in ((1 << 10, 0), (1 << 18, 0), (1 << 14, 1 << 20)):
        ways = ways_of(coupling, k, giant)
        found = medians(stand, ways, SECONDS * len(ways))
        if WORLD.rank == 0:
            if (GROUPS, k) == (3, 1 << 10):
                print(MPI.Get_library_version().split("\n")[0].strip("\0"))
                print(environment()["processor"], WORLD.size, "processes", RATE)
                print("| groups | bytes |", " | ".join(found), "| gain |")
                print("|---" * (len(found) + 3) + "|")
            times = " | ".join(f"{1e3 * t:.2f} ms" for t in found.values())
            ours, calls, one, native = found.values()
            gains = f"{calls / ours:.2f}, {min(one, native) / ours:.2f}"
            size = f"{k}, one of {giant}" if giant else f"{k}"
            print(f"| {GROUPS} | {size} | {times} | {gains} |", flush=True)
    coupling.Free()
