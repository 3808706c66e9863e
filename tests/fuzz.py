"""Random sequences of collectives between groups.

    python tests/fuzz.py 3600

runs for an hour on five ranks, with a new seed every thousand calls, on two
communicators in turn. Every rank draws the same numbers, so that all make the same
calls; when to wait for a call, each draws alone. Beside these calls there is traffic of
the user's own. It ends with what each rank had of memory, descriptors, mappings and
threads after the first thousand calls and in the end.

    python tests/fuzz.py --calls 1000000

makes so many short calls with fresh arrays, and prints the resident memory on the way.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from between import KINDS, OPERATIONS, REDUCING, Case, Kit, call, chain, in_order, names
from groups import SHAPES, Pair, pair
from isthmus.lab.mpiexec import own_rank
from launcher.mpirun import ENVIRONMENT, command, find_mpiexec

FORMS = ("blocking", "nonblocking", "persistent")
#: so many calls may be under way at once
UNDER_WAY = 4


@dataclass
class Started:
    """A call that goes on, and what it must give."""

    what: str
    case: Case
    request: MPI.Request

    def end(self) -> str:
        """Wait for it; what is wrong."""
        self.request.Wait()
        if isinstance(self.request, MPI.Prequest):
            self.request.Free()
        return f"{self.what}: {self.case.fault}" if self.case.fault else ""


def sequence(groups: Pair, seed: int, calls: int) -> list[str]:
    """So many calls; what was wrong with them on this rank."""
    rng = np.random.default_rng(seed)
    alone = np.random.default_rng((seed, groups.world.rank))
    ordered = in_order()
    going: list[Started] = []
    faults: list[str] = []
    for turn in range(calls):
        op, name, form, case = _draw(rng, groups, ordered, turn)
        what = f"seed {seed}, call {turn}: {form} {op} by {name}"
        case.clear()
        if form == "blocking":
            getattr(groups.ours, op)(*case.args, algorithm=name)
            faults += [f"{what}: {case.fault}"] if case.fault else []
        else:
            going.append(Started(what, case, _start(groups, op, form, case, name)))
        while len(going) > UNDER_WAY or (going and alone.random() < 0.3):
            faults += filter(None, [going.pop(alone.integers(len(going))).end()])
    faults += filter(None, [x.end() for x in going])
    ordered.Free()
    return faults


def _draw(
    rng: np.random.Generator, groups: Pair, ordered: MPI.Op, turn: int
) -> tuple[str, str, str, Case]:
    """The next call."""
    op = str(rng.choice(OPERATIONS))
    in_turn = bool(rng.random() < 0.3) and op in REDUCING
    kit = Kit(groups, turn=turn % 100)
    if in_turn:
        kit = Kit(groups, op=ordered, combine=chain, turn=turn % 100)
    name = str(rng.choice(names(op, commutative=not in_turn)))
    kind, root = str(rng.choice(list(KINDS))), int(rng.integers(groups.world.size))
    return op, name, str(rng.choice(FORMS)), call(kit, op, kind, root)


def _start(groups: Pair, op: str, form: str, case: Case, name: str) -> Any:
    if form == "nonblocking":
        return getattr(groups.ours, f"I{op.lower()}")(*case.args, algorithm=name)
    request = getattr(groups.ours, f"{op}_init")(*case.args, algorithm=name)
    request.Start()
    return request


def launched() -> int:
    """The same in five processes."""
    argv = command(str(find_mpiexec()), 5, *sys.argv)
    return subprocess.run(argv, env={**os.environ, **ENVIRONMENT}).returncode


def holdings() -> dict[str, int]:
    """What this process has now; nothing where the system does not say."""
    own = Path("/proc/self")
    if not own.exists():
        return {}
    lines = dict(x.split(":") for x in (own / "status").read_text().splitlines())
    return {
        "KiB": int(lines["VmRSS"].split()[0]),
        "descriptors": len(list((own / "fd").iterdir())),
        "mappings": len((own / "maps").read_text().splitlines()),
        "threads": threading.active_count(),
    }


def _traffic(world: MPI.Intracomm, seed: int) -> bool:
    """A user's own messages and collectives; whether they were right."""
    n, r = world.size, world.rank
    got = world.sendrecv((seed, r), (r + 1) % n, 5, None, (r - 1) % n, 5)
    return got == (seed, (r - 1) % n) and world.allreduce(r) == n * (n - 1) // 2


def timed(world: MPI.Intracomm, seconds: float) -> list[str]:
    """Random sequences for so many seconds, until the first fault."""
    start, seed, found = time.monotonic(), 0, [""]
    shapes = SHAPES.get(world.size, [(world.size // 2, 0)])
    every = [pair(world, shape[0]) for shape in (*shapes, shapes[0])]
    first: dict[str, int] = {}
    while not any(found) and world.bcast(time.monotonic() - start < seconds):
        faults = sequence(every[seed % len(every)], seed, 1000)
        faults += [] if _traffic(world, seed) else ["the user's own traffic"]
        found = world.allgather("; ".join(faults[:1]))
        seed += 1
        if world.rank == 0:
            print(f"\r{1000 * seed} calls", end="", flush=True)
        if seed == len(every):
            first = holdings()
    rows = world.gather((first, holdings()))
    for groups in every:
        groups.free()
    for r, (before, after) in enumerate(rows or ()):
        grown = {x: f"{before.get(x, 0)} to {n}" for x, n in after.items()}
        print(f"\nrank {r}: {grown}", end="")
    return found


def counted(world: MPI.Intracomm, calls: int) -> list[str]:
    """So many calls with fresh arrays; the resident memory of rank 0 on the way."""
    groups, ops = pair(world, world.size // 2), ("Allreduce", "Allgather", "Bcast")
    for k in range(calls):
        case = call(Kit(groups, turn=k % 100), ops[k % 3], "some", 0)
        getattr(groups.ours, ops[k % 3])(*case.args)
        if case.fault:
            return [f"call {k}: {case.fault}"]
        if world.rank == 0 and (k & (k + 1)) == 0 and k > 500:
            print(f"{k + 1} calls: {holdings()}", flush=True)
    if world.rank == 0:
        print(f"{calls} calls: {holdings()}", flush=True)
    groups.free()
    return []


def main() -> None:
    """Run for so many seconds, or calls; stop at the first fault."""
    world = MPI.COMM_WORLD
    if sys.argv[1] == "--calls":
        found = world.allgather("; ".join(counted(world, int(sys.argv[2]))))
    else:
        found = timed(world, float(sys.argv[1]))
    if world.rank == 0:
        print("\n" + "\n".join(filter(None, found)) if any(found) else "\nall right")
    sys.exit(any(found))


if __name__ == "__main__":
    if own_rank() is None:
        sys.exit(launched())
    main()
