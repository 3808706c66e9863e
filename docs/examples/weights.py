"""A trainer hands its weights to generators that hold them in another way.

The trainer has a mesh of 2 by 2 ranks, the generators one of 2 by 2: shards of columns,
each of them on two ranks. Beside it, what people write by hand: gather, then broadcast.
"""

from time import perf_counter

import numpy as np
from mpi4py import MPI

import isthmus
from isthmus import Layout, Redistribution, Replicate, Shard

world = MPI.COMM_WORLD
trains = world.rank < 4
inside, others = isthmus.couple(world, "trainer" if trains else "generators")
(other,) = others.values()
rank = inside.rank

SHAPE = 1024, 768
trained = Layout.sharded(SHAPE, mesh=(2, 2), placements=[Shard(0), Shard(1)])
LAYOUTS = {
    "sharded": Layout.sharded(SHAPE, (2, 2), [Shard(1), Shard(0)]),
    "two replicas": Layout.sharded(SHAPE, (2, 2), [Shard(1), Replicate()]),
}


def gather_and_broadcast(weights, wanted):
    """Everything through one rank, to everyone."""
    whole = np.empty(SHAPE, "f4")
    if trains:
        parts = inside.gather(weights)
        for r, part in enumerate(parts or []):
            whole[trained.local(r)] = part
        other.Bcast(whole, MPI.PROC_NULL if rank else MPI.ROOT)
    else:
        other.Bcast(whole, 0)
        weights[...] = whole[wanted.local(rank)]


def start_and_wait(request):
    """One move."""
    request.Start()
    request.Wait()


def timed(call, *args):
    """The seconds of the slowest rank."""
    world.Barrier()
    begin = perf_counter()
    call(*args)
    return world.allreduce(perf_counter() - begin, MPI.MAX)


whole = np.arange(np.prod(SHAPE), dtype="f4").reshape(SHAPE)
for name, wanted in LAYOUTS.items():
    mine = trained if trains else wanted
    role = {"source": mine} if trains else {"target": mine}
    move = Redistribution(other, **role)
    right = whole[mine.local(rank)]
    weights = right.copy() if trains else np.empty_like(right)
    refit = move.init(weights)  # set up once, started after every update
    for _ in range(3):
        ours = timed(start_and_wait, refit)
        assert (weights == right).all()
        by_hand = timed(gather_and_broadcast, weights, wanted)
        assert (weights == right).all()
    refit.Free()
    if world.rank == 0:
        print(f"{name}: {1e3 * ours:.1f} ms; by hand {1e3 * by_hand:.1f} ms")
