"""A torch trainer on GPUs hands its weights to generators, and takes back their scores.

Half of the ranks train, half generate. Where there is no GPU, or no torch, the same
program runs with arrays of the host.
"""

import numpy as np
from mpi4py import MPI

import isthmus
from isthmus import Layout, Redistribution, Shard

try:
    import torch

    gpus = torch.cuda.device_count()
except ImportError:
    gpus = 0

world = MPI.COMM_WORLD
half = world.size // 2
trains = world.rank < half
inside, others = isthmus.couple(world, "trainer" if trains else "generators")
(other,) = others.values()


def array(values):
    """Values on this rank's GPU, if there is one."""
    if not gpus:
        return values
    return torch.from_numpy(values).to(f"cuda:{inside.rank % gpus}")


# the trainer has shards of rows, the generators shards of columns
SHAPE = 64 * half, 96 * (world.size - half)
rows = Layout.sharded(SHAPE, (half,), [Shard(0)])
columns = Layout.sharded(SHAPE, (world.size - half,), [Shard(1)])
mine = rows if trains else columns
whole = np.arange(np.prod(SHAPE), dtype="f4").reshape(SHAPE)
right = np.ascontiguousarray(whole[mine.local(inside.rank)])

weights = array(right.copy() if trains else np.zeros_like(right))
move = Redistribution(other, **{"source" if trains else "target": mine})
refit = move.init(weights)

for _ in range(3):
    if trains:
        weights += 1  # an update
    refit.Start()
    refit.Wait()
    score, everyone = array(np.ones(1, "f4")), array(np.zeros(1, "f4"))
    other.Allreduce(score, everyone)  # what the other group found, summed
    assert float(everyone[0]) == (world.size - half if trains else half)

refit.Free()
assert np.array_equal(weights.cpu() if gpus else weights, right + 3)
if world.rank == 0:
    print(f"3 updates of {whole.nbytes >> 10} KiB")
