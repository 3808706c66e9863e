"""One process of the program that `faults.py` starts: every operation in every form,
each on a communicator of its own, before a fault and then once more.

faults_rank.py FOLDER LIMIT SLOT [recouple]

Calls have a limit of so many seconds, or none for 0. One begins every SLOT seconds, in
a thread of its own, so that one that hangs holds up no other. What became of each is a
line of FOLDER/rank-N.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import numpy as np
from mpi4py import MPI

import isthmus
from isthmus.bench.environment import environment
from isthmus.collectives.records import operations, record_of

WORLD = MPI.COMM_WORLD
FOLDER, LIMIT, SLOT = Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
RECOUPLE = "recouple" in sys.argv
#: doubles of a block: more than libraries send without asking
K = 1 << 14
#: seconds from the last good call to the first one after the fault
PAUSE = 1.5
#: seconds until a call that is not over counts as hanging
PATIENCE = 25.0
FORMS = "blocking", "nonblocking", "persistent"
ROOTED = "Bcast", "Gather", "Gatherv", "Reduce", "Scatter", "Scatterv"


@dataclass
class Case:
    """A call, where its data arrive and what they must be."""

    name: tuple[str, str, str]
    comm: Any
    #: mpi4py's persistent requests do not keep all of them
    buffers: Any
    call: Callable[[], Any]
    out: np.ndarray
    wanted: np.ndarray


def values(n: int) -> np.ndarray:
    """What this rank contributes: whole numbers, whose sums are exact."""
    return (np.arange(n) * 7.0 + 1000 * WORLD.rank) % 8191


def arguments(op: str, comm: Any) -> tuple[tuple[Any, ...], np.ndarray]:
    """What this rank passes to an operation, and the array in which data arrive. World
    rank 0 is the root; groups have one size."""
    n, inter = comm.Get_size(), comm.Is_inter()
    one, every = values(K), values(n * K)
    out, outs, none = np.zeros(K), np.zeros(n * K), np.zeros(0)
    counts = [K] * n
    places = [[8 * K * i for i in range(n)], [MPI.DOUBLE] * n]
    top = WORLD.rank == 0
    root = 0
    if inter and WORLD.rank < WORLD.size // 2:
        root = MPI.ROOT if top else MPI.PROC_NULL
    mine = None if inter else one  # inside a group the root has a block too
    if op in ROOTED and inter and root == MPI.PROC_NULL:
        more = {"Bcast": (None,), "Reduce": (None, None, MPI.SUM)}
        return (*more.get(op, (None, None)), root), none
    v = op.endswith("v")
    match op:
        case "Allgather" | "Allgatherv":
            return (one, [outs, counts] if v else outs), outs
        case "Allreduce":
            return (one, out, MPI.SUM), out
        case "Alltoall":
            return (every, outs), outs
        case "Alltoallv":
            return ([every, counts], [outs, counts]), outs
        case "Alltoallw":
            return ([every, counts, *places], [outs, counts, *places]), outs
        case "Barrier":
            return (), none
        case "Bcast":
            return (one if top else out, root), none if top else out
        case "Gather" | "Gatherv":
            into = [outs, counts] if v else outs
            return ((mine, into, root), outs) if top else ((one, None, root), none)
        case "Reduce":
            more = MPI.SUM, root
            return ((mine, out, *more), out) if top else ((one, None, *more), none)
        case "Reduce_scatter":
            return (every, out, counts, MPI.SUM), out
        case "Reduce_scatter_block":
            return (every, out, MPI.SUM), out
        case _:  # Scatter, Scatterv
            sent = [every, counts] if v else every
            if top and not inter:
                return (sent, out, root), out
            return ((sent, None, root), none) if top else ((None, out, root), out)


def once(make: Callable[[], Any], form: str) -> Callable[[], Any]:
    """The call whose request `make` gives, if it gives one."""
    if form == "nonblocking":
        return lambda: make().Wait()
    request = make()

    def again() -> None:
        request.Start()
        request.Wait()

    return again


def collective(where: str, op: str, form: str, native: Any) -> Case:
    """An operation in a form; the MPI library's own call says what is right."""
    args, out = arguments(op, native)
    getattr(native, op)(*args)
    wanted = out.copy()
    kind = isthmus.Intercomm if native.Is_inter() else isthmus.Intracomm
    comm = kind(native.Dup())
    names = {"nonblocking": f"I{op.lower()}", "persistent": f"{op}_init"}
    method = getattr(comm, names.get(form, op))
    make = lambda: method(*args)  # noqa: E731
    call = make if form == "blocking" else once(make, form)
    return Case((where, op, form), comm, args, call, out, wanted)


def redistribution(where: str, form: str, native: Any) -> Case:
    """Rows become columns."""
    comm, n = native.Dup(), native.Get_size()
    full = np.arange(float(n * n * K)).reshape(n * 8, -1)
    rows = isthmus.Layout.blocks(full.shape, (n, 1))
    columns = isthmus.Layout.blocks(full.shape, (1, n))
    mine = np.split(full, n, 0)[comm.rank].copy()
    wanted = np.split(full, n, 1)[comm.rank].copy()
    out = np.zeros_like(wanted)
    low = WORLD.rank < WORLD.size // 2
    fields: tuple[np.ndarray, ...] = mine, out
    layouts: tuple[Any, ...] = rows, columns
    if where == "between":
        layouts = (rows, None) if low else (None, columns)
        fields = (mine if low else out,)
        out, wanted = (np.zeros(0), np.zeros(0)) if low else (out, wanted)
    move = isthmus.Redistribution(comm, *layouts)
    ours = isthmus.Intercomm(comm) if comm.Is_inter() else isthmus.Intracomm(comm)
    if form == "blocking":
        call: Callable[[], Any] = lambda: move(*fields)  # noqa: E731
    else:
        make = move.start if form == "nonblocking" else move.init
        call = once(lambda: make(*fields), form)
    return Case((where, "Redistribution", form), ours, fields, call, out, wanted)


def attempt(case: Case) -> dict[str, Any]:
    """Make a call, and say what became of it."""
    case.out[...] = -1
    begin = time.monotonic()
    who: tuple[str, ...] = ()
    try:
        case.call()
        right = np.array_equal(case.out, case.wanted)
        said = "right" if right else "wrong bytes"
    except isthmus.Stalled as error:
        said, who = "Stalled", error.waiting_for
    except isthmus.ProcessLost as error:
        said, who = "ProcessLost", error.who
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    return {"said": said, "seconds": time.monotonic() - begin, "who": who}


def recoupled(inter: Any) -> str:
    """What an Allreduce of those who are left gives."""
    try:
        again, missing = inter.recouple()
        again.Allreduce(np.ones(4), out := np.empty(4))
        right = (out == again.remote_size).all()
        return f"{'right' if right else 'wrong'} without {', '.join(missing)}"
    except isthmus.ProcessLost as error:
        return str(error).rpartition("; ")[2]
    except Exception as error:
        return f"{type(error).__name__}: {error}"


half = WORLD.size // 2
low = WORLD.rank < half
local = WORLD.Split(0 if low else 1)
inter = local.Create_intercomm(0, WORLD, half if low else 0, 11)
cases = []
for form in FORMS:
    cases += [collective("between", op, form, inter) for op in operations(2)]
    cases.append(redistribution("between", form, inter))
    # a nonblocking or persistent call of a root inside a group is the MPI library's own
    inside = [
        op
        for op in operations(1, on_mpi=True)
        if form == "blocking" or not record_of(op, 1).is_rooted
    ]
    cases += [collective("inside", op, form, WORLD) for op in inside]
    cases.append(redistribution("inside", form, WORLD))
for case in cases:
    first = attempt(case)
    assert first["said"] == "right", (case.name, first)
    case.comm.timeout = LIMIT or None
pids = WORLD.gather(os.getpid())
start = WORLD.bcast(time.monotonic() + PAUSE)
lock, file = Lock(), open(FOLDER / f"rank-{WORLD.rank}", "w")  # noqa: SIM115


def write(**line: Any) -> None:
    """Write a line."""
    with lock:
        print(json.dumps(line), file=file, flush=True)


def tell(case: Case) -> None:
    """Make the call and write its line."""
    write(case=case.name, **attempt(case))


if WORLD.rank == 0:
    library = MPI.Get_library_version().split("\n")[0].strip("\0")
    about = f"{environment()['processor']} {WORLD.size} processes"
    (FOLDER / "new").write_text(json.dumps([pids, library, about]))
    (FOLDER / "new").rename(FOLDER / "ready")
threads = [Thread(target=tell, args=(case,), daemon=True) for case in cases]
for k, thread in enumerate(threads):
    time.sleep(max(start + k * SLOT - time.monotonic(), 0))
    thread.start()
end = time.monotonic() + PATIENCE
for thread in threads:
    thread.join(max(end - time.monotonic(), 0.01))
for case in cases:
    if RECOUPLE and case.comm.Is_inter():
        write(case=case.name, then=recoupled(case.comm))
write(over=len(cases))
# whoever starts this ends it: others may still be at work
time.sleep(1000)
