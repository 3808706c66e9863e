"""A program that finds no memory that the ranks of a node could share.

    unshare --mount mpiexec -n 3 python full.py KIND FOLDER

KIND says what is put in place of /dev/shm: "small", in which not even one room fits,
"read-only", "later", which is full after the first call, or "absent". Every process
writes whether its calls in all forms were right, and how often it said something.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

from mpi4py import MPI

from between import Kit, call
from groups import pair
from isthmus.mpi.buffers import node_memory
from support import forms

OPTIONS = {"small": "size=64k", "read-only": "ro", "later": "size=14m"}

world, (kind, folder) = MPI.COMM_WORLD, sys.argv[1:]
said: list[str] = []
logging.getLogger("isthmus").addFilter(
    lambda record: bool(said.append(str(record.msg)))
)
if kind == "absent":
    node_memory._SHARED_FOLDER = "/dev/shm/not/there"
elif world.rank == 0:
    mount = ["mount", "-t", "tmpfs", "-o", OPTIONS[kind], "tmpfs", "/dev/shm"]
    subprocess.run(mount, check=True)
world.Barrier()
wrong, shares = [], []
for _ in range(2):
    groups = pair(world, 1)
    for op in ("Allreduce", "Allgatherv", "Bcast", "Alltoall", "Barrier"):
        case = call(Kit(groups), op, "some")
        case.clear()
        for form in forms(groups.ours, op, case.args, "node_aware"):
            wrong += [f"{op} {form}: {case.fault}"] if case.fault else []
    shares.append(groups.ours._context().shares_nodes)
Path(folder, f"said-{world.rank}").write_text(f"{wrong} {len(said)} {shares[0]}")
