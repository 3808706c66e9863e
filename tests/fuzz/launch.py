"""Processes that run episodes, each with a limit of time, and their command."""

from __future__ import annotations

import argparse
import faulthandler
import os
import re
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.mpirun import (
    ENVIRONMENT,
    Launch,
    command,
    find_mpiexec,
    give_way,
    library_of,
)

LEVELS = ("single", "funneled", "serialized", "multiple")
#: how often each mode comes, by its share
SHARES = {
    "calls": 5,
    "steady": 4,
    "devices": 2,
    "threads": 2,
    "groups": 1,
    "spawned": 1,
    "checked": 1,
    "sizes": 1,
    "broken": 2,
    "operators": 1,
    "memory": 1,
    "speed": 1,
}
#: modes that leave communicators behind in the middle of a call, which nobody can free
LEAVING = ("broken", "operators", "sizes", "spawned")
#: modes after which what a process holds is not compared: those, and large arrays
UNCOMPARED = (*LEAVING, "memory")
#: what stands in the place of the mode where a process holds more in the end
GROWTH = "growth"
#: episodes after which what is kept for calls does not grow any more
WARM_EPISODES = 75
#: seconds after which an episode hangs, and those of a launch beyond them
EPISODE_SECONDS, GRACE_SECONDS = 60, 30
#: a line of output that tells of a fault
FAULT = re.compile(r"^FAULT (\S+) (\d+) rank (\d+): (.*)$", re.M)
#: the line that a launch ends with
ENDED = re.compile(r"^\d+ episodes, (\d+) calls in", re.M)
#: what a rank had after a tenth of the time, and in the end, in KiB
HOLDINGS = re.compile(r"^rank \d+ has .*'KiB': (\d+).* then .*'KiB': (\d+)", re.M)
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Plan:
    """What one launch is to do."""

    ranks: int
    level: str = "multiple"
    modes: tuple[str, ...] = tuple(SHARES)
    seed: int = 1
    seconds: float = 60.0
    #: episodes; 0 for as many as there is time for
    episodes: int = 0
    #: seconds after which an episode hangs
    patience: float = EPISODE_SECONDS

    def arguments(self) -> list[str]:
        """The arguments of the command that does it."""
        return [
            f"--ranks={self.ranks}",
            f"--level={self.level}",
            f"--modes={','.join(self.modes)}",
            f"--seed={self.seed}",
            f"--seconds={self.seconds:g}",
            f"--episodes={self.episodes}",
            f"--patience={self.patience:g}",
        ]

    def repeat(self, mode: str, seed: int) -> str:
        """The command that does one episode again, or all of them where memory grew."""
        again, left_out = self, ["--episodes", "--patience"]
        if mode != GROWTH:
            again = Plan(self.ranks, self.level, (mode,), seed, episodes=1)
            left_out = ["--seconds", "--patience"]
        short = [x for x in again.arguments() if not x.startswith(tuple(left_out))]
        return f"{sys.executable} tests/fuzz {' '.join(short)}"


@dataclass(frozen=True)
class Fault:
    """What a launch found."""

    mode: str
    seed: int
    text: str
    repeat: str
    seconds: float
    #: all that the ranks printed in its episode
    output: str = ""


@dataclass(frozen=True)
class Report:
    """What came of a launch."""

    faults: list[Fault]
    episodes: int
    output: str

    @property
    def calls(self) -> int:
        """The calls that rank 0 made."""
        return sum(map(int, ENDED.findall(self.output)))

    @property
    def grown_kib(self) -> int | None:
        """What the process that grew most has more than after a tenth of the time;
        None where that is not compared."""
        sizes = HOLDINGS.findall(self.output)
        return max((int(last) - int(first) for first, last in sizes), default=None)

    def __str__(self) -> str:
        grown = self.grown_kib
        memory = "" if grown is None else f", {grown:+} KiB after the first tenth"
        return (
            f"{self.episodes} episodes, {self.calls} calls, {len(self.faults)} faults"
            f"{memory}"
        )


def run(plan: Plan) -> Report:
    """Run a launch to its end, or to the end of its time."""
    script = [str(_HERE), *plan.arguments(), "--on-a-rank"]
    paths = [str(_HERE.parent), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, **ENVIRONMENT}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    # MPICH's collectives in shared memory, which it uses from the fifth call on below
    # MPI_THREAD_MULTIPLE, never give way: an Allreduce of 4 MB by 5 ranks on 2 cores
    # takes 6.4 s with them and 0.03 s without (5.0)
    env["MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD"] = str(10**9)
    argv = command(str(find_mpiexec()), plan.ranks, *script)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        launch = Launch(argv, env, Path.cwd(), folder)
        try:
            limit = plan.seconds + plan.patience + GRACE_SECONDS
            status = launch.wait(limit)
        finally:
            launch.close()
        output = (folder / "launcher").read_text(errors="replace")
    seconds = time.monotonic() - begin
    found: dict[tuple[str, int], str] = {}
    for mode, seed, rank, text in FAULT.findall(output):
        found.setdefault((mode, int(seed)), f"rank {rank}: {text}")
    begun = re.findall(r"^begin (\S+) (\d+)$", output, re.M)
    if _may_leave(plan) and ENDED.search(output):
        status = 0  # Open MPI's launcher takes it ill that MPI was not finalized
    if status != 0 and not found and begun:
        mode, seed = begun[-1]
        found[mode, int(seed)] = f"the launch ended with {status}\n{output[-3000:]}"
    elif status != 0 and not found:
        found["start", plan.seed] = f"the launch ended with {status}\n{output[-3000:]}"
    faults = [
        Fault(
            mode,
            seed,
            text,
            plan.repeat(mode, seed),
            seconds,
            output.rpartition(f"begin {mode} {seed}\n")[2],
        )
        for (mode, seed), text in found.items()
    ]
    return Report(faults, len(begun), output)


def _may_leave(plan: Plan) -> bool:
    """Whether a launch may leave communicators behind that nobody can free."""
    return any(x in plan.modes for x in LEAVING)


# -- on a rank


def mode_of(modes: Sequence[str], seed: int) -> str:
    """The mode of an episode, by its seed."""
    turns = [x for x in modes for _ in range(SHARES[x])]
    return turns[(seed * 7919) % len(turns)]


def on_a_rank(plan: Plan) -> None:
    """Episodes one after the other, until one is wrong or the time is over."""
    give_way()
    import mpi4py

    mpi4py.rc.thread_level = plan.level
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    sys.setswitchinterval(1e-4)  # threads take turns often
    from fuzz.holdings import grown, holdings
    from fuzz.series import made

    begin, k = time.monotonic(), 0
    first: tuple[int, dict[str, int]] | None = None
    while True:
        over = time.monotonic() - begin > plan.seconds
        ended = k >= plan.episodes if plan.episodes else over
        if world.bcast(ended):
            break
        is_tenth = k >= WARM_EPISODES and time.monotonic() - begin > plan.seconds / 10
        if first is None and world.bcast(is_tenth):
            first = k, holdings()
        seed = plan.seed + k
        mode = mode_of(plan.modes, seed)
        if world.rank == 0:
            print(f"begin {mode} {seed}", flush=True)
        _episode(world, mode, seed, plan.patience)
        k += 1
    if first is not None and not any(x in plan.modes for x in UNCOMPARED):
        last = holdings()
        print(f"rank {world.rank} has {first[1]}, then {last}", flush=True)
        if wrong := grown(first[1], last, k - first[0]):
            faulthandler.dump_traceback()
            threads = dict(Counter(x.name for x in threading.enumerate()))
            _tell(world, GROWTH, plan.seed, f"{wrong} ({threads=})")
    if world.rank == 0:
        took = time.monotonic() - begin
        print(f"{k} episodes, {sum(made.values())} calls in {took:.0f} s", flush=True)
    world.Barrier()
    sys.stdout.flush()
    # communicators that were broken on purpose cannot be freed, nor MPI finalized
    if _may_leave(plan):
        os._exit(0)


def _episode(world: Any, mode: str, seed: int, patience: float) -> None:
    """One episode; what is wrong ends the launch."""
    from fuzz.modes import MODES, Stage

    stage = Stage.of(world, seed)

    def hangs() -> None:
        doing = "; ".join(x.now for x in list(stage.now.values()))
        _tell(world, mode, seed, f"hangs in {doing or 'no call'}")
        with tempfile.TemporaryFile("w+") as file:  # in one piece, not line by line
            faulthandler.dump_traceback(file)
            file.seek(0)
            os.write(2, f"rank {world.rank} stands here:\n{file.read()}".encode())
        time.sleep(3)  # for the other ranks to tell it too
        os._exit(1)

    watch = threading.Timer(patience, hangs)
    watch.daemon = True
    watch.start()
    try:
        MODES[mode](stage)
    except BaseException as error:
        doing = "; ".join(x.now for x in stage.now.values())
        _tell(world, mode, seed, f"{type(error).__name__}: {error} ({doing})")
        traceback.print_exc()
        sys.stderr.flush()
        time.sleep(1)
        world.Abort(1)
    watch.cancel()
    world.Barrier()


def _tell(world: Any, mode: str, seed: int, text: str) -> None:
    line = text.replace("\n", " ")
    print(f"FAULT {mode} {seed} rank {world.rank}: {line}", flush=True)


# -- the command


def parse(
    arguments: Sequence[str] | None = None,
) -> tuple[list[Plan], argparse.Namespace]:
    """The launches that are asked for, and all that is."""
    parser = argparse.ArgumentParser(description="random programs on isthmus")
    parser.add_argument("--seconds", type=float, default=60.0, help="in all")
    parser.add_argument("--ranks", default="3", help="numbers of ranks, as 2,3,5")
    parser.add_argument("--level", default="", help=f"one of {', '.join(LEVELS)}")
    parser.add_argument("--modes", default=",".join(SHARES), help="kinds of episodes")
    parser.add_argument("--seed", type=int, default=1, help="of the first episode")
    parser.add_argument("--episodes", type=int, default=0, help="0: by the time")
    parser.add_argument("--patience", type=float, default=EPISODE_SECONDS, help="s")
    parser.add_argument("--verbose", action="store_true", help="all that ranks print")
    parser.add_argument("--on-a-rank", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--child-of", type=int, default=0, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    sizes = [int(n) for n in asked.ranks.split(",")]
    modes = tuple(asked.modes.split(","))
    # what a process holds can only be compared where nothing is left behind
    clean = tuple(x for x in modes if x not in UNCOMPARED)
    kinds = [(asked.level, modes)]
    if not asked.level:
        kinds = [("multiple", clean), ("multiple", modes), ("serialized", modes)]
    launches = [(n, level, some) for level, some in kinds if some for n in sizes]
    each = asked.seconds / len(launches)
    plans = [
        Plan(
            n,
            level,
            some,
            asked.seed + 100_000 * i,
            each,
            asked.episodes,
            asked.patience,
        )
        for i, (n, level, some) in enumerate(launches)
    ]
    return plans, asked


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the launches; a fault is told with the command that repeats it."""
    plans, asked = parse(arguments)
    if asked.child_of:
        import mpi4py

        mpi4py.rc.thread_level = asked.level  # what is refused, all refuse
        from fuzz.modes import of_child

        of_child(asked.child_of, asked.seed)
        return 0
    if asked.on_a_rank:
        on_a_rank(plans[0])
        return 0
    library, bad, calls = library_of(find_mpiexec() or ""), 0, 0
    for plan in plans:
        report = run(plan)
        print(f"{library}, {plan.ranks} ranks, {plan.level}: {report}", flush=True)
        if asked.verbose:
            print(report.output)
        for fault in report.faults:
            print(f"  {fault.mode} {fault.seed}: {fault.text}\n  {fault.repeat}")
        bad += len(report.faults)
        calls += report.calls
    print(f"status {int(bad > 0)}, {calls} calls")
    return int(bad > 0)
