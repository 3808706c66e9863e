"""Random sequences of collectives between groups, on one communicator.

    python tests/fuzz.py 3600

runs for an hour on five ranks, with a new seed every thousand calls. Every rank draws
the same numbers, so that all make the same calls; when to wait for a call, each draws
alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
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


def main() -> None:
    """Run for so many seconds, and stop at the first fault."""
    world, seconds = MPI.COMM_WORLD, float(sys.argv[1])
    start, seed, found = time.monotonic(), 0, [""]
    groups = pair(world, SHAPES.get(world.size, [(world.size // 2, 0)])[0][0])
    while not any(found) and world.bcast(time.monotonic() - start < seconds):
        found = world.allgather("; ".join(sequence(groups, seed, 1000)[:1]))
        seed += 1
        if world.rank == 0:
            print(f"\r{1000 * seed} calls", end="", flush=True)
    groups.free()
    if world.rank == 0:
        print("\n" + "\n".join(filter(None, found)) if any(found) else ", all right")
    sys.exit(any(found))


if __name__ == "__main__":
    if own_rank() is None:
        sys.exit(launched())
    main()
