"""A collective of one's own: a record, an algorithm, and a call of it in three forms."""

import numpy as np
from mpi4py import MPI

import isthmus
from isthmus.collectives.collective import BLOCK, INSIDE, Collective
from isthmus.collectives.records import add
from isthmus.schedules.ir import Recv, Round, Send, Span
from isthmus.schedules.registry import algorithm
from isthmus.schedules.schedule import SizedCollective
from isthmus.verify.contracts import Contract
from isthmus.verify.marks import blank, marks


def make(algorithm, stage, p, k):
    def promise():
        return Contract(
            before=lambda r: {"send": marks(r, k), "recv": blank(k)},
            after=lambda r: {"recv": marks((r - 1) % p, k)},
        )

    return SizedCollective(promise, lambda r: algorithm.program(p, r, k), (range(p),))


add(
    Collective(
        name="shift",
        operations=("Shift",),
        groups=INSIDE,
        gives=BLOCK,
        gets=BLOCK,
        make=make,
        example={"p": 5, "k": 3},
        cases=lambda rng, p: [{"p": p, "k": k} for k in (4, 1, 0)],
    )
)


@algorithm("shift", paper="mine, 2026", cost=lambda p, k, alpha, beta: alpha + k * beta)
def neighbours(p, r, k):
    """Everyone sends its block to the right, and receives that of the left."""
    send, recv = Span("send", 0, k), Span("recv", 0, k)
    yield Round((Recv((r - 1) % p, (recv,)), Send((r + 1) % p, (send,))))


isthmus.schedule("shift", "neighbours", p=7, k=3).verify()  # is it right?

comm = isthmus.Intracomm(MPI.COMM_WORLD)
mine, left = np.full(2, float(comm.rank)), np.empty(2)
comm.Run("Shift", mine, left)
comm.Irun("Shift", mine, left, algorithm="neighbours").Wait()
request = comm.Run_init("Shift", mine, left)
request.Start()
request.Wait()
if comm.rank == 0:
    print(f"rank 0 has the block of rank {comm.size - 1}: {left}")
