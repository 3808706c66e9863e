"""The set-up and one exchange of scattered index lists, by isthmus and by YAXT:
`mpiexec -n 4 python scattered.py POINTS ROUNDS [blocks] [cyclic] [random]`.

From blocks on the first half of the ranks to index lists on the second half: blocks
again, every so-manyth point, a random permutation. YAXT comes in the wheel of YAC, for
Open MPI 4.1. The two take turns, and a time is that of the slowest rank; a set-up ends
with the first exchange, in which isthmus makes its plan.
"""

import ctypes
import glob
import sys
import time
from functools import partial

import numpy as np
from mpi4py import MPI

import isthmus
from isthmus import Layout

points, rounds, *cases = sys.argv[1:]
points, rounds = int(points), int(rounds)
world = MPI.COMM_WORLD
half = world.size // 2
is_source, me = world.rank < half, world.rank % half
group = world.Split(int(not is_source), world.rank)
inter = isthmus.Intercomm(group.Create_intercomm(0, world, half if is_source else 0))


def list_of(case):
    """The indices of this rank."""
    block = np.arange(points * me // half, points * (me + 1) // half)
    if is_source or case == "blocks":
        return block
    if case == "cyclic":
        return np.arange(me, points, half)
    return np.random.default_rng(1).permutation(points)[block]


def with_isthmus(indices, field):
    role = "source" if is_source else "target"
    layout = Layout.indices(points, indices)
    move = isthmus.Redistribution(inter, **{role: layout})
    move(field)
    return lambda: move(field), move.Free


def with_yaxt(indices, field):
    none = indices[:0]
    lists = [
        ctypes.c_void_p(yaxt.xt_idxvec_new(address(x), len(x)))
        for x in ((indices, none) if is_source else (none, indices))
    ]
    xmap = ctypes.c_void_p(yaxt.xt_xmap_dist_dir_new(*lists, handle(world)))
    redist = ctypes.c_void_p(yaxt.xt_redist_p2p_new(xmap, handle(MPI.DOUBLE)))
    fields = [address(x) for x in (field, field)]

    def exchange():
        yaxt.xt_redist_s_exchange1(redist, *fields)

    def free():
        for delete, x in (
            (yaxt.xt_redist_delete, redist),
            (yaxt.xt_xmap_delete, xmap),
            *((yaxt.xt_idxlist_delete, x) for x in lists),
        ):
            delete(x)

    exchange()
    return exchange, free


def address(array):
    return ctypes.c_void_p(array.ctypes.data)


def handle(mpi_object):
    return ctypes.c_void_p(MPI._handleof(mpi_object))


def loaded_yaxt():
    """The library in YAC's wheel, or None where it is not installed."""
    try:
        import yac
    except ImportError:
        return None
    (path,) = glob.glob(f"{yac.__path__[0]}/../yac.libs/libyaxt_c*")
    library = ctypes.CDLL(path)
    for name in ("xt_idxvec_new", "xt_xmap_dist_dir_new", "xt_redist_p2p_new"):
        getattr(library, name).restype = ctypes.c_void_p
    library.xt_initialize(handle(world))
    return library


def timed(call):
    world.Barrier()
    begin = time.perf_counter()
    result = call()
    return world.allreduce(time.perf_counter() - begin, MPI.MAX), result


yaxt = loaded_yaxt()
makers = {"isthmus": with_isthmus} | ({} if yaxt is None else {"yaxt": with_yaxt})
for case in cases or ["blocks", "cyclic", "random"]:
    indices = list_of(case)
    # YAXT takes 32-bit indices; from random lists it has made nothing after a minute
    names = [x for x in makers if x == "isthmus" or case != "random"]
    lists = {"isthmus": indices, "yaxt": indices.astype(np.int32)}
    fields = {x: indices * 1.5 if is_source else np.zeros(len(indices)) for x in names}
    setups, times = ({x: [] for x in names} for _ in range(2))
    for _ in range(5):
        made = {}
        for name in names:
            make = partial(makers[name], lists[name], fields[name])
            took, made[name] = timed(make)
            setups[name].append(took)
        for _ in range(rounds):
            for name, (exchange, _) in made.items():
                times[name].append(timed(exchange)[0])
        for _, free in made.values():
            free()
    is_right = all(np.array_equal(x, indices * 1.5) for x in fields.values())
    is_right = world.allreduce(is_right, MPI.LAND)
    for name in names if world.rank == 0 else ():
        setup, exchange = (np.median(x[name]) for x in (setups, times))
        print(
            f"{case:7s}{half}+{half} {name:8s} set-up {setup:.3f} s  exchange "
            f"{exchange * 1e3:7.2f} ms  right {is_right}",
            flush=True,
        )
