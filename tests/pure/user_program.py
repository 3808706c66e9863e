"""A user's program for type checkers: `make lint` reads the file, and no test runs
it."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

import isthmus


def main() -> None:
    """Exchange arrays between two groups in every form."""
    world = isthmus.Intracomm(MPI.COMM_WORLD)
    color = world.Get_rank() % 2
    group: isthmus.Intracomm = world.Split(color)
    inter: isthmus.Intercomm = group.Create_intercomm(0, world, 1 - color)
    sent = np.ones(4)
    received = np.empty((inter.Get_remote_size(), 4))

    inter.Allgather(sent, received, algorithm="segmented+ring")
    inter.Allgatherv([sent, MPI.DOUBLE], [received, [4] * inter.Get_remote_size()])
    inter.Allreduce(sent, received[0], op=MPI.MAX)
    inter.Reduce(None, None, root=MPI.PROC_NULL)
    request: MPI.Request = inter.Iallgather(sent, received)
    request.Wait()
    lasting: MPI.Prequest = inter.Allgather_init(sent, received)
    lasting.Start()
    lasting.Wait()
    answers: list[object] = inter.allgather({"rank": color})
    print(len(answers))

    merged: isthmus.Intracomm = inter.Merge()
    merged.Allgatherv(MPI.IN_PLACE, [received, [4, 4]], algorithm="blocked_ring")
    halves: isthmus.Intercomm = inter.Split(0)
    halves.Barrier()

    layout = isthmus.Layout.blocks((8, 8), grid=(2, 2))
    move = isthmus.Redistribution(inter, source=layout, target=layout)
    move(np.zeros(layout.local_shape(0)))
    for comm in (move, halves, merged, inter, group):
        comm.Free()
