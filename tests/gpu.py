"""The tests of arrays on a device, on a real GPU; then what such calls take there.

    python tests/gpu.py               the tests, then the measurement, on a GPU
    python tests/gpu.py --stand-in    the measurement alone, on a stand-in device
    mpiexec -n 4 python -m mpi4py tests/gpu.py --measure    the measurement, as you like

Of each call: on arrays of the host; the copies alone, both ways at once; on arrays on
the device; and by hand: copied to the host, the call, copied back, with pinned memory.
Medians of the slowest rank, in milliseconds. The last column is to be 1.15 at most.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).parents[1]
RANKS, TIMES = 4, 7
MIB = 1 << 20
#: bytes of a rank's buffer, on a GPU and on the stand-in
SIZES = (MIB, 16 * MIB, 64 * MIB, 256 * MIB)
SHORTER = (8 * MIB, 32 * MIB)


def start() -> int:
    """The tests, and the measurement on some ranks."""
    stand_in = "--stand-in" in sys.argv
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    failed = 0
    if not stand_in:
        environ["ISTHMUS_TEST_GPU"] = "1"
        tests = [sys.executable, "-m", "pytest", "-q", "tests/mpi/test_staged.py"]
        failed = subprocess.run(tests, cwd=ROOT, env=environ).returncode
    mpiexec = Path(sys.executable).with_name("mpiexec")
    ranks = [str(mpiexec if mpiexec.exists() else "mpiexec"), "-n", str(RANKS)]
    program = [sys.executable, "-m", "mpi4py", __file__, "--measure"]
    program += ["--stand-in"] * stand_in
    return failed or subprocess.run([*ranks, *program], env=environ).returncode


def measure() -> None:
    """Calls between two halves of the ranks."""
    import numpy as np
    from mpi4py import MPI

    import standin
    from groups import pair
    from isthmus.mpi.costs.tuning import library
    from isthmus.mpi.memory import device, staged

    stand_in = "--stand-in" in sys.argv
    if stand_in:
        staged.KINDS[standin.KIND] = standin.Slow
        device.present = lambda: True
    kind = standin.Plain if stand_in else standin.GpuMemory
    world = MPI.COMM_WORLD
    groups = pair(world, world.size // 2)
    inter, there = groups.ours, len(groups.there)
    root = MPI.ROOT if world.rank == 0 else MPI.PROC_NULL
    root = 0 if groups.there.start == 0 else root

    def on_device(x):
        return standin.DeviceArray(kind(x.nbytes), x.shape, x.strides, x.dtype)

    def took(call):
        times = []
        for _ in range(TIMES):
            world.Barrier()
            begin = perf_counter()
            call()
            times.append(world.allreduce(perf_counter() - begin, MPI.MAX))
        return 1e3 * float(np.median(times[2:]))

    def by_hand(op, args, copies):
        copies.bring()
        getattr(inter, op)(*copies.args)
        copies.take()

    def copying(copies):
        copies.begin()
        for k, x in enumerate(copies.staged):
            (x.store if k else x.fetch)(0, x.nbytes)
        copies.wait(False)
        copies.wait(True)

    if world.rank == 0:
        name = "a stand-in that copies 1 GB/s each way" if stand_in else "GPU 0"
        print(f"{library()}, {world.size} ranks, {os.cpu_count()} cores, {name}")
        columns = "    host   copies   staged  by hand  staged/limit  algorithm"
        print(f"operation         MiB {columns}")
    for op in ("Allgather", "Alltoall", "Allreduce", "Bcast"):
        for nbytes in SHORTER if stand_in else SIZES:
            n = nbytes // 8 // there * there
            send, recv = np.ones(n if op != "Allgather" else n // there), np.ones(n)
            host = (send, root) if op == "Bcast" else (send, recv)
            here = tuple(on_device(x) if x is send or x is recv else x for x in host)
            copies = staged.copies(op, here, root == MPI.ROOT)
            call = getattr(inter, op)
            for _ in range(17):  # until what may be chosen is tried
                inter.Bcast(np.ones(1), root) if op == "Bcast" else call(send, recv)
            found = [
                took(partial(call, *host)),
                took(partial(copying, copies)),
                took(partial(call, *here)),
            ]
            taken = inter._taken()
            found.append(took(partial(by_hand, op, here, copies)))
            if world.rank == 0:
                words = "".join(f"{x:9.2f}" for x in found)
                ratio = found[2] / max(found[:2])
                print(f"{op:12} {nbytes // MIB:8} {words} {ratio:12.2f}  {taken}")
    groups.free()


if __name__ == "__main__":
    if "--measure" in sys.argv:
        measure()
    else:
        sys.exit(start())
