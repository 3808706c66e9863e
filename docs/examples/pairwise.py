"""An algorithm of one's own: mpiexec -n 8 python -m mpi4py pairwise.py"""

from isthmus.schedules.ir import Recv, Round, Send
from isthmus.schedules.registry import algorithm


@algorithm(
    "inter_allgather",
    "inter_allgatherv",
    paper="the documentation of isthmus",
    cost=lambda p, q, ka, kb, alpha, beta, stage: (
        max(p, q) * (alpha + max(ka, kb) * beta)
    ),
)
def pairwise(r, here, there, stage):
    """In round t, ranks i and j of the two groups with i + j = t (mod n) swap blocks.

    n = max(p, q) rounds of one message each way. Where the other group has no rank j,
    the round is empty.
    """
    n = max(here.n, there.n)
    for t in range(n):
        j = (t - r) % n
        yield Round(
            (
                Recv(there.base + j, there.blocks[j], j < there.n),
                Send(there.base + j, here.own(r), j < there.n),
            )
        )


if __name__ == "__main__":
    import isthmus

    isthmus.schedule("inter_allgatherv", "pairwise", a=[3, 0, 5], b=[2, 7]).verify()

    import numpy as np
    from mpi4py import MPI

    world = isthmus.Intracomm(MPI.COMM_WORLD)
    half = world.size // 2
    first = world.rank < half
    local = world.Split(0 if first else 1, world.rank)
    inter = local.Create_intercomm(0, world, half if first else 0)

    mine = np.full(7, world.rank)
    theirs, native = np.empty((2, inter.remote_size, 7), int)
    inter.Allgather(mine, theirs, algorithm="pairwise")
    inter.Allgather(mine, native, algorithm="native")
    alike = world.allreduce(bool((theirs == native).all()), MPI.LAND)
    if world.rank == 0:
        print("pairwise and the MPI library's own call: the same on all ranks:", alike)

    inter.Free()
    local.Free()
