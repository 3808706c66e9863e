"""What a message costs between neighbours, measured on all ranks at once."""

from __future__ import annotations

from statistics import median
from time import perf_counter

import numpy as np
from mpi4py import MPI

from ..choose import Machine

#: bytes of a short and of a long message
SHORT, LONG = 1, 1 << 16
#: turns that warm up, and turns of which the median counts
WARM, TIMED = 5, 9


def probe(comm: MPI.Intracomm) -> Machine:
    """Everyone passes messages to the right; what the slowest rank sees counts."""
    times = [_shift(comm, n) for n in (SHORT, LONG)]
    worst = np.array(times)
    comm.Allreduce(MPI.IN_PLACE, worst, MPI.MAX)
    short, long = worst.tolist()
    return Machine(short, max(long - short, 1e-9) / (LONG - SHORT))


def _shift(comm: MPI.Intracomm, nbytes: int) -> float:
    """The median time of a message to the right and one from the left."""
    p, r = comm.Get_size(), comm.Get_rank()
    out, into = np.zeros(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
    send = comm.Send_init(out, (r + 1) % p)
    receive = comm.Recv_init(into, (r - 1) % p)
    times = []
    for _ in range(WARM + TIMED):
        begin = perf_counter()
        receive.Start()
        send.Start()
        receive.Wait()
        send.Wait()
        times.append(perf_counter() - begin)
    send.Free()
    receive.Free()
    return median(times[WARM:])
