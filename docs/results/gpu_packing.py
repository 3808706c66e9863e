"""Packing on a GPU by torch and CuPy, as `Redistribution` does it where the MPI library
takes device memory: compared with numpy's, then timed.

    python docs/results/gpu_packing.py
    mpiexec -n 3 python docs/results/gpu_packing.py --move

Parts of arrays of every form are packed on the device, and unpacked into another array.
Times are medians, of parts of a matrix of 64 MiB; `GB/s` counts what is packed. With
`--move`, arrays of CuPy in managed memory, which every MPI library can touch, are moved
by `ISTHMUS_DEVICE=direct`, in short messages, which no process reads from another.
"""

from __future__ import annotations

import os
import sys
from time import perf_counter

os.environ["ISTHMUS_DEVICE"] = "direct"

import numpy as np
from mpi4py import MPI

from isthmus import Layout, Redistribution
from isthmus.mpi.memory import device
from isthmus.mpi.memory.libraries import NUMPY, library
from isthmus.mpi.redistribution import fields
from isthmus.redistribution.runs import spread

TIMES, SIDE = 11, 4096
_PLACE = device.place


def torch_array(x: np.ndarray):
    import torch

    return torch.from_numpy(x).cuda()


def cupy_array(x: np.ndarray):
    import cupy

    return cupy.asarray(x)


def to_host(x) -> np.ndarray:
    return x.get() if hasattr(x, "get") else x.cpu().numpy()


def parts(shape):
    """Runs of the flattened array, by what they are."""
    n = int(np.prod(shape))
    width = shape[-1]
    rng = np.random.default_rng(3)
    rows = np.arange(0, n, width)
    some = np.sort(rng.permutation(n)[: n // 4])
    return {
        "rows": ([width * (shape[0] // 4)], [n // 4]),
        "columns": (rows + width // 4, np.full(len(rows), width // 4)),
        "every other": (np.arange(0, n, 2), np.ones(n // 2, int)),
        "backwards": (np.arange(0, n, 2)[::-1], np.ones(n // 2, int)),
        "random points": (some, np.ones(len(some), int)),
        "random order": (rng.permutation(some), np.ones(len(some), int)),
        "unequal runs": (rows, np.arange(len(rows)) % width + 1),
    }


def steps(array, by, start, size, packed_by):
    """What packs the runs and what unpacks them, and the packed memory."""
    place = fields.place(fields.array_of(array, by), start, size)
    room = by.room(max(place.nbytes, 1))
    at = packed_by(room)
    return place, place.copier(at), place.copier(at, unpack=True), room


def compare(name, make) -> None:
    """All parts of arrays of several types and strides, against numpy."""
    wrong = checked = 0
    for dtype in ("f8", "f4", "i2", "u1", "c16"):
        whole = (np.arange(24 * 36) % 251).astype(dtype).reshape(24, 36)
        for cut in (np.s_[:], np.s_[1:-1, 2:-2], np.s_[::2, ::3], np.s_[:, 5:]):
            for order in ("C", "F"):
                base = np.asarray(whole, order=order)
                far = make(base.copy(order="K"))
                zero = make(np.zeros_like(base, order="K"))
                view = far[cut]
                by = library([view])
                known = by.described(view, False)
                target = by.described(zero[cut], True)
                near = base[cut]
                for start, size in parts(near.shape).values():
                    ends = np.asarray(start), np.asarray(size)
                    place, pack, _, room = steps(known, by, *ends, by.address)
                    _, pack_here, _, right = steps(near, NUMPY, *ends, NUMPY.address)
                    pack()
                    pack_here()
                    wrong += not np.array_equal(to_host(room)[: place.nbytes], right)
                    there = fields.place(fields.array_of(target, by), *ends)
                    there.copier(by.address(room), unpack=True)()
                    index = spread(*ends)
                    got = to_host(zero)[cut].ravel()
                    wrong += not np.array_equal(got[index], near.ravel()[index])
                    checked += 2
    print(f"{name}: {checked} compared with numpy, {wrong} wrong", flush=True)
    assert not wrong


def measure(name, make) -> None:
    """How long it takes to pack and to unpack parts of a matrix of floats."""
    whole = np.arange(SIDE * SIDE, dtype="f4").reshape(SIDE, SIDE)
    far = make(whole)
    by = library([far])
    known = by.described(far, True)
    for words, (start, size) in parts(whole.shape).items():
        ends = np.asarray(start), np.asarray(size)
        place, pack, unpack, room = steps(known, by, *ends, by.address)
        line = f"{name:6} {words:14} {room.nbytes / 2**20:6.1f} MiB"
        for step in (pack, unpack):
            times = []
            for _ in range(TIMES):
                begin = perf_counter()
                step()
                times.append(perf_counter() - begin)
            took = float(np.median(times))
            line += f" {1e3 * took:8.3f} ms {place.nbytes / took / 1e9:8.1f} GB/s"
        print(line, "as it is" if place.is_direct else "", flush=True)


def move() -> None:
    """All kinds of layouts on real processes, packed by CuPy in managed memory."""
    import cupy

    cupy.cuda.set_allocator(cupy.cuda.MemoryPool(cupy.cuda.malloc_managed).malloc)
    # CuPy says that managed memory is the host's too: then it would not be packed there
    device.place = lambda x: (2, 0) if isinstance(x, cupy.ndarray) else _PLACE(x)
    world = MPI.COMM_WORLD
    n, shape = world.size, (12, 9)
    whole = np.arange(108.0).reshape(shape)
    rng = np.random.default_rng(1)
    points = rng.permutation(108)[world.rank :: n]
    layouts = {
        "rows": Layout.blocks(shape, (n, 1)),
        "columns": Layout.blocks(shape, (1, n)),
        "cyclic": Layout.cyclic(shape, (1, n), (2, 2)),
        "points": Layout.indices(shape, points),
    }

    def mine(x):
        found = x.local(world.rank if x.is_regular else None)
        return np.ascontiguousarray(whole[found])

    right, count = True, 0
    for source in layouts.values():
        for target in layouts.values():
            redistribution = Redistribution(world, source, target)
            for form in ("blocking", "nonblocking", "persistent"):
                out = cupy.asarray(mine(source))
                into = cupy.zeros_like(cupy.asarray(mine(target)))
                if form == "blocking":
                    redistribution(out, into)
                elif form == "nonblocking":
                    redistribution.start(out, into).Wait()
                else:
                    request = redistribution.init(out, into)
                    request.Start()
                    request.Wait()
                    request.Free()
                right &= bool(np.array_equal(into.get(), mine(target)))
                count += 1
            redistribution.Free()
    right = world.allreduce(right, MPI.LAND)
    if world.rank == 0:
        words = "right" if right else "WRONG"
        print(f"{count} redistributions of managed memory: {words}")
    assert right


def main() -> None:
    for name, make in (("torch", torch_array), ("cupy", cupy_array)):
        try:
            __import__(name)
        except ImportError:
            print(f"{name}: not there")
            continue
        compare(name, make)
        measure(name, make)


if __name__ == "__main__":
    move() if "--move" in sys.argv else main()
