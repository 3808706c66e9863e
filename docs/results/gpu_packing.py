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
from functools import partial
from time import perf_counter

os.environ["ISTHMUS_DEVICE"] = "direct"

import numpy as np
from mpi4py import MPI

from isthmus import Layout, Redistribution
from isthmus.mpi.buffers import dlpack
from isthmus.mpi.buffers.devices import arrays, libraries, staged
from isthmus.mpi.buffers.devices.libraries import library
from isthmus.mpi.redistribution.fields import field_of, memory_of
from isthmus.redistribution.runs import spread

TIMES, SIDE = 11, 4096


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


def copies(array, by, start, size):
    """The selection of runs, what packs them and what unpacks them."""
    selection, memory = field_of(array, 0).select(start, size), memory_of(array)
    room = by.room(max(selection.nbytes, 1))
    pack = partial(by.pack, memory, selection, room, 0)
    return selection, room, pack, partial(by.unpack, room, 0, memory, selection)


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
                    _, room, pack, _ = copies(known, by, *ends)
                    pack()
                    there = field_of(target, 0).select(*ends)
                    by.unpack(room, 0, memory_of(target), there)
                    index = spread(*ends)
                    got = to_host(zero)[cut].ravel()
                    wrong += not np.array_equal(got[index], near.ravel()[index])
                    checked += 1
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
        selection, _, pack, unpack = copies(known, by, *ends)
        line = f"{name:6} {words:14} {selection.nbytes / 2**20:6.1f} MiB"
        for step in (pack, unpack):
            times = []
            for _ in range(TIMES):
                begin = perf_counter()
                step()
                times.append(perf_counter() - begin)
            took = float(np.median(times))
            line += f" {1e3 * took:8.3f} ms {selection.nbytes / took / 1e9:8.1f} GB/s"
        print(line, flush=True)


def move() -> None:
    """All kinds of layouts on real processes, packed by CuPy in managed memory."""
    import cupy

    cupy.cuda.set_allocator(cupy.cuda.MemoryPool(cupy.cuda.malloc_managed).malloc)
    # CuPy says that managed memory is the host's too: then it would not be packed there
    place = dlpack.place
    for module in (dlpack, arrays, libraries, staged):
        module.place = lambda x: (2, 0) if isinstance(x, cupy.ndarray) else place(x)
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
