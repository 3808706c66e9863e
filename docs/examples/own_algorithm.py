"""An algorithm of one's own, verified, simulated and run."""

import numpy as np
from mpi4py import MPI

import isthmus
from isthmus.cost.machines import load
from isthmus.schedules.ir import Recv, Round, Send
from isthmus.schedules.registry import algorithm


def cost(p, q, ka, kb, alpha, beta, stage):
    return max(p, q) * (alpha + max(ka, kb) * beta)


@algorithm("inter_allgather", "inter_allgatherv", paper="mine, 2026", cost=cost)
def in_turn(r, here, there, stage):
    """In round t, ranks i and j of the groups with i + j = t (mod n) swap blocks."""
    n = max(here.n, there.n)
    for t in range(n):
        j = (t - r) % n
        to, known = there.base + j, j < there.n
        yield Round((Recv(to, there.blocks[j], known), Send(to, here.own(r), known)))


for p, q in [(1, 1), (5, 3), (2, 7)]:  # is it right?
    isthmus.schedule("inter_allgather", "in_turn", p=p, q=q, ka=4, kb=2).verify()
large = isthmus.schedule("inter_allgather", "in_turn", p=64, q=32, ka=10**6, kb=10**6)
time = large.simulate(load("hdr-infiniband")).time  # is it fast?

world = MPI.COMM_WORLD  # does it run?
name = "a" if world.rank < world.size // 2 else "b"
(inter,) = isthmus.couple(world, name).others.values()
theirs = np.empty((inter.remote_size, 3))
inter.Allgather(np.full(3, float(world.rank)), theirs, algorithm="in_turn")
if world.rank == 0:
    print(f"{time * 1e3:.1f} ms at 64 + 32 ranks; here {theirs[:, 0]}")
