"""What Python takes in a call, part by part.

mpiexec -n 1 python docs/results/overhead.py

In a group of one rank, so that nothing is sent: an Allgather whose plan is one copy of
8 bytes, with slices at changing places. Microseconds of processor time, the least of
several runs.
"""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time
from typing import Any

import numpy as np
from mpi4py import MPI

import isthmus
from isthmus.mpi.arguments.call import Call
from isthmus.mpi.arguments.values import values_of
from isthmus.mpi.plan.operation import Operation

CALLS, RUNS = 10000, 9


def least(call: Callable[[int], Any]) -> float:
    """Microseconds of a call."""

    def run() -> float:
        begin = thread_time()
        for k in range(CALLS):
            call(k)
        return (thread_time() - begin) / CALLS

    return 1e6 * min(run() for _ in range(RUNS))


def main() -> None:
    """Print a line for each part."""
    comm = isthmus.Intracomm(MPI.COMM_SELF.Dup())
    pool = np.zeros(1 << 12)

    def slices(k: int) -> tuple[np.ndarray, np.ndarray]:
        start = k % 16 * 8
        return pool[start : start + 1], pool[start + 2048 : start + 2049]

    def whole(k: int) -> None:
        comm.Allgather(*slices(k), algorithm="ring")

    def beside(k: int) -> None:
        comm.Iallgather(*slices(k), algorithm="ring").Wait()

    whole(0)
    context, args = comm._context(), slices(0)
    names = "Allgather", "blocking", "ring"
    call = Call(context, *names, args)
    plan = call.plan()

    def operation(k: int) -> Operation:
        return Operation(context.channel, plan, call, call.buffers(plan))

    empty = least(slices)
    for name, part in (
        ("blocking", lambda: least(whole) - empty),
        ("  values of arguments", lambda: least(lambda k: values_of(args, *names))),
        ("  plan", lambda: least(lambda k: call.plan())),
        ("  operation", lambda: least(operation)),
        ("  and its steps", lambda: least(lambda k: operation(k).wait())),
        ("nonblocking and Wait", lambda: least(beside) - empty),
        ("mpi4py's own call", lambda: least(lambda k: MPI.COMM_SELF.Allgather(*args))),
    ):
        print(f"{name:22} {part():6.2f} µs", flush=True)


if __name__ == "__main__":
    main()
