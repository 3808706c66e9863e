"""One call that MPI libraries get wrong, by name: `rival.py native|ours case …`.

Five ranks, of which three are group A. A wrong result ends with an error; some of the
libraries' faults are hangs.
"""

from __future__ import annotations

import faulthandler
import sys

import numpy as np
from mpi4py import MPI

import isthmus
from groups import pair

world = MPI.COMM_WORLD
LOW = world.rank < 3


def role(root: int) -> int:
    """What this rank gives for a root of group A."""
    if not LOW:
        return root
    return MPI.ROOT if world.rank == root else MPI.PROC_NULL


def box(value: float) -> np.ndarray:
    return np.full(4, float(value))


def ibcast(inter, root: int) -> None:
    data = box(7 + root if world.rank == root else 0)
    inter.Ibcast(data, role(root)).Wait()
    assert LOW or (data == 7 + root).all(), data


def ibcast_then_ibarrier(inter) -> None:
    ibcast(inter, 0)
    inter.Ibarrier().Wait()


def ibcast_then_iallgather(inter) -> None:
    ibcast(inter, 0)
    there = range(3, 5) if LOW else range(3)
    got = np.empty((len(there), 4))
    inter.Iallgather(box(world.rank), got).Wait()
    assert (got[:, 0] == list(there)).all(), got


def ibcast_from_two_roots(inter) -> None:
    ibcast(inter, 0)
    ibcast(inter, 2)


def ibcast_from_root_1(inter) -> None:
    ibcast(inter, 1)


def bcast_init_from_root_1(inter) -> None:
    data = box(8 if world.rank == 1 else 0)
    request = inter.Bcast_init(data, role(1))
    for _ in range(2):
        request.Start()
        request.Wait()
        assert LOW or (data == 8).all(), data
        data[:] = 8 if world.rank == 1 else 0
    request.Free()


def ireduce_then_iallreduce(inter) -> None:
    for root in (0, 2):
        got = box(0) if role(root) == MPI.ROOT else None
        send = None if LOW else box(world.rank)
        inter.Ireduce(send, got, MPI.SUM, role(root)).Wait()
        assert got is None or (got == 7).all(), got
    total = box(0)
    inter.Iallreduce(box(1), total).Wait()
    assert (total == (2 if LOW else 3)).all(), total


def reduce_init_then_ibarrier(inter) -> None:
    got = box(0) if role(0) == MPI.ROOT else None
    request = inter.Reduce_init(None if LOW else box(1), got, MPI.SUM, role(0))
    request.Start()
    request.Wait()
    request.Free()
    inter.Ibarrier().Wait()
    assert got is None or (got == 2).all(), got


def persistent_after_one_from_nobody(inter) -> None:
    """Ranks 1 and 2 have no part in a first call, but in the second."""
    low = None if LOW else box(0)
    if isinstance(inter, isthmus.Intercomm):
        first = inter.Scatter_init(
            np.ones(8) if world.rank == 0 else None, low, role(0)
        )
    else:
        first = world.Recv_init(box(0), MPI.PROC_NULL)
    first.Start()
    first.Wait()
    first.Free()
    data = box(world.rank)
    if isinstance(inter, isthmus.Intercomm):
        last = 1 if LOW else MPI.ROOT if world.rank == 4 else MPI.PROC_NULL
        second = inter.Scatter_init(np.full(12, 4.0), data if LOW else None, last)
    else:
        second = world.Bcast_init(data, 4)
    for _ in range(2):
        second.Start()
        second.Wait()
    second.Free()
    assert not LOW or (data == 4).all(), data


def gatherv_of_equal_signatures(inter) -> None:
    couple = MPI.INT.Create_contiguous(2).Commit()
    send = np.arange(4, dtype="i4") + 10 * world.rank
    spec = [send, 2, couple] if world.rank == 4 else [send, 4, MPI.INT]
    got = np.zeros(8, "i4")
    at_root = role(0) == MPI.ROOT
    inter.Gatherv(None if LOW else spec, [got, [4, 4]] if at_root else None, role(0))
    assert not at_root or (got == [30, 31, 32, 33, 40, 41, 42, 43]).all(), got
    couple.Free()


def scatterv_of_equal_signatures(inter) -> None:
    couple = MPI.INT.Create_contiguous(2).Commit()
    send = np.arange(8, dtype="i4")
    got = np.zeros(4, "i4")
    spec = [send, [2, 2], couple] if role(0) == MPI.ROOT else None
    inter.Scatterv(spec, None if LOW else [got, 4, MPI.INT], role(0))
    assert LOW or (got == np.arange(4) + 4 * (world.rank - 3)).all(), got
    couple.Free()


CASES = {
    x.__name__: x
    for x in (
        ibcast_then_ibarrier,
        ibcast_then_iallgather,
        ibcast_from_two_roots,
        ibcast_from_root_1,
        bcast_init_from_root_1,
        ireduce_then_iallreduce,
        reduce_init_then_ibarrier,
        persistent_after_one_from_nobody,
        gatherv_of_equal_signatures,
        scatterv_of_equal_signatures,
    )
}


def main() -> None:
    """Do the named cases, each on a communicator of its own."""
    whose, *names = sys.argv[1:]
    if whose == "native":
        # The calls take microseconds: this one hangs.
        faulthandler.dump_traceback_later(0.7, exit=True)
    for name in names:
        groups = pair(world, 3)
        inter = groups.native if whose == "native" else isthmus.Intercomm(groups.native)
        CASES[name](inter)
        if whose == "ours":
            groups.free()
    world.Barrier()
    if world.rank == 0:
        print("all right", flush=True)


if __name__ == "__main__":
    try:
        main()
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        world.Abort(1)
