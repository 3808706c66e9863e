"""A program one of whose processes is killed in the middle of a call.

mpiexec --with-ft ulfm -n 4 python lost.py OPERATION ALGORITHM VICTIMS

Every process that is left writes a line: what it raised, after how many seconds, and
what the Allreduce of the survivors gave.
"""

from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np
from mpi4py import MPI

import isthmus

world, (form, name, victims) = MPI.COMM_WORLD, sys.argv[1:]
lost = [int(r) for r in victims.split(",")]
low = world.rank < 2
local = world.Split(0 if low else 1)
inter = isthmus.Intercomm(local.Create_intercomm(0, world, 2 if low else 0, 11))
inter.timeout = 20.0
recv = np.empty(1000)


def call() -> None:
    """The call in one of its forms."""
    args = np.full(1000, world.rank + 1.0), recv
    if form == "blocking":
        inter.Allreduce(*args, algorithm=name)
    elif form == "nonblocking":
        inter.Iallreduce(*args, algorithm=name).Wait()
    else:
        request = inter.Allreduce_init(*args, algorithm=name)
        request.Start()
        request.Wait()


for _ in range(3):
    call()
if world.rank in lost:
    os.kill(os.getpid(), signal.SIGKILL)
begin, said = time.monotonic(), "nothing"
try:
    for _ in range(100):
        call()
except isthmus.ProcessLost as error:
    said = f"{type(error).__name__} {','.join(error.who)}"
except Exception as error:
    said = f"{type(error).__name__}: {error}"
took = time.monotonic() - begin
try:
    again, missing = inter.recouple()
    again.Allreduce(np.full(4, world.rank + 1.0), out := np.empty(4))
    then = f"{','.join(missing)}; {again.size}+{again.remote_size}; sum {out[0]:g}"
except isthmus.ProcessLost as error:
    then = str(error)
print(f"{world.rank}; {said}; {took:.2f} s; {then}", flush=True)
with open(f"said-{world.rank}", "w") as file:
    file.write(f"{said}; {then}")
os._exit(0)  # what is left of the old communicators must not hold up the end
