"""The tests of arrays on a device, on a real GPU; then what such calls take there.

    python tests/gpu.py               the tests, then the measurement, on a GPU
    python tests/gpu.py --stand-in    the measurement alone, on a stand-in device
    mpiexec -n 4 python -m mpi4py tests/gpu.py --measure    the measurement, as you like

Of each call: on arrays of the host; the copies alone, both ways at once; both beside
each other, with nothing in common; on arrays on the device; and by hand: copied to the
host, the call, copied back, with pinned memory. Medians of the slowest rank, in
milliseconds. The limit is the longer of the first two; "staged" is to be 1.15 times
that at most, and cannot be less than "beside", as both need the host's memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).parents[1]
RANKS, TIMES = 4, 15
MIB = 1 << 20
#: bytes of a rank's longest buffer, on a GPU and on the stand-in
SIZES = (MIB, 16 * MIB, 64 * MIB, 256 * MIB)
SHORTER = (8 * MIB,)
COLUMNS = ("host", "copies", "beside", "staged", "by hand")


def start() -> int:
    """The tests, and the measurement on some ranks."""
    stand_in = "--stand-in" in sys.argv
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    failed = 0
    if not stand_in:
        environ["ISTHMUS_TEST_GPU"] = "1"
        environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # JAX would take all of it
        tests = [f"tests/mpi/test_{name}.py" for name in ("staged", "gpu_arrays")]
        pytest = [sys.executable, "-m", "pytest", "-q", "-rs", *tests]
        failed = subprocess.run(pytest, cwd=ROOT, env=environ).returncode
    mpiexec = Path(sys.executable).with_name("mpiexec")
    ranks = [str(mpiexec if mpiexec.exists() else "mpiexec"), "-n", str(RANKS)]
    program = [sys.executable, "-m", "mpi4py", __file__, "--measure"]
    program += ["--stand-in"] * stand_in
    return failed or subprocess.run([*ranks, *program], env=environ).returncode


def machine(stand_in: bool) -> str:
    """The processor and the device, in words."""
    import ctypes

    from isthmus.bench.environment import processor

    if stand_in:
        return f"{processor()}, a stand-in that copies 1 GB/s each way"
    name, cuda = ctypes.create_string_buffer(100), ctypes.CDLL("libcuda.so.1")
    cuda.cuInit(0)
    cuda.cuDeviceGetName(name, 100, 0)
    return f"{processor()}, {name.value.decode()}"


def measure() -> None:
    """Calls between two halves of the ranks."""
    import numpy as np
    from mpi4py import MPI

    import standin
    from groups import pair
    from isthmus import Layout, Redistribution
    from isthmus.bench.stand import settle
    from isthmus.mpi.buffers import on_devices
    from isthmus.mpi.buffers.devices import staged
    from isthmus.mpi.costs.tuning import library

    stand_in = "--stand-in" in sys.argv
    if stand_in:
        staged.KINDS[standin.KIND] = standin.Slow
        on_devices.present = lambda: True
    kind = standin.Plain if stand_in else standin.GpuMemory
    world = MPI.COMM_WORLD
    groups = pair(world, world.size // 2)
    inter, here, there = groups.ours, groups.ours.size, len(groups.there)
    root = MPI.ROOT if world.rank == 0 else MPI.PROC_NULL
    root = 0 if groups.there.start == 0 else root

    def on_device(x):
        if not isinstance(x, np.ndarray):
            return x
        return standin.DeviceArray(kind(x.nbytes), x.shape, x.strides, x.dtype)

    def took(calls):
        """Calls take turns: what else goes on here must not meet one of them alone."""
        times = np.empty((TIMES, len(calls)))
        for row in times:
            for i, call in enumerate(calls):
                world.Barrier()
                begin = perf_counter()
                call()
                row[i] = world.allreduce(perf_counter() - begin, MPI.MAX)
        return 1e3 * np.median(times[2:], axis=0)

    def by_hand(call, copies):
        copies.fetch_all()
        call(*copies.args)
        copies.store_all()

    def copying(copies, written, beside=None):
        copies.begin()
        for x, writes in zip(copies.staged, written, strict=True):
            (x.store if writes else x.fetch)(0, x.nbytes)
        if beside is not None:
            beside()
        copies.wait(False)
        copies.wait(True)

    def collective(op, nbytes):
        n = nbytes // 8 // there * there
        send, recv = np.ones(n if op != "Allgather" else n // there), np.ones(n)
        args = (send, root) if op == "Bcast" else (send, recv)
        call, on = getattr(inter, op), tuple(map(on_device, args))
        copies = staged.copies(op, on, sends=root == MPI.ROOT)
        written = [root != MPI.ROOT] if op == "Bcast" else [False, True]
        settle(inter, op)  # all candidates are tried
        return call, args, on, copies, written

    def rows_to_columns(nbytes):
        shape = 1024 * here * there, nbytes // 8 // 1024 // there
        sends = groups.there.start > 0
        grid = (here, 1) if sends else (1, here)
        mine = Layout.blocks(shape, grid=grid)
        move = Redistribution(inter, **{"source" if sends else "target": mine})
        args = (np.ones(mine.local_shape(inter.rank)),)
        on = tuple(map(on_device, args))
        stand = staged.standing(on[0], not sends)
        copies = staged.Copies(
            [stand], (stand.host,), written=[not sends], read=[sends], arrays={0: 0}
        )
        return move, args, on, copies, [not sends]

    if world.rank == 0:
        where = f"{os.cpu_count()} cores, {machine(stand_in)}"
        print(f"{library()}, {world.size} ranks, {where}")
        columns = "".join(f"{x:>9}" for x in COLUMNS)
        print(f"operation           MiB {columns}  beside/limit  staged/limit")
    for op in ("Allgather", "Alltoall", "Allreduce", "Bcast", "Redistribution"):
        for nbytes in SHORTER if stand_in else SIZES:
            moves = op == "Redistribution"
            operation = rows_to_columns(nbytes) if moves else collective(op, nbytes)
            call, args, on, copies, written = operation
            host, copy = partial(call, *args), partial(copying, copies, written)
            hand = partial(by_hand, call, copies)
            milliseconds = took(
                [host, copy, partial(copy, host), partial(call, *on), hand]
            )
            taken = "" if moves else inter._last_algorithm()
            if world.rank == 0:
                words = "".join(f"{x:9.2f}" for x in milliseconds)
                limit = max(milliseconds[:2])
                words += "".join(f"{x / limit:14.2f}" for x in milliseconds[2:4])
                print(f"{op:14} {nbytes // MIB:8} {words}  {taken}".rstrip())
    groups.free()


if __name__ == "__main__":
    if "--measure" in sys.argv:
        measure()
    else:
        sys.exit(start())
