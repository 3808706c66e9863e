"""Faults on a lab of four hosts, in every operation and form: what the processes of two
groups of two say, and after how many seconds.

python docs/results/faults.py [FAULT ...] > docs/results/faults-mpich.txt

The last host is cut off, for good or for some seconds, or its process is killed or
stopped; `faults_rank.py` makes the calls. It needs root, as every lab does.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from isthmus.lab import Lab, Network
from isthmus.launch.mpiexec import find_mpiexec, is_open_mpi

RANK = str(Path(__file__).with_name("faults_rank.py"))
HOSTS, VICTIM = 4, 3
NAMED = "group B rank 1", f"rank {VICTIM}"
FORMS = "blocking", "nonblocking", "persistent"
#: seconds until the ranks must be ready, and until all must be over after that
READY, OVER = 60.0, 75.0
POLL = 0.02


@dataclass(frozen=True)
class Fault:
    """What happens to the last process; the limit and the time between calls, in
    seconds; what mpiexec is told, and the ranks."""

    happens: Callable[[Network, int], None]
    limit: float
    slot: float
    options: tuple[str, ...] = ()
    more: tuple[str, ...] = ()

    @property
    def left(self) -> list[int]:
        """The ranks that have something to say."""
        return [r for r in range(HOSTS) if self.happens is not kill or r != VICTIM]


def cut(net: Network, pid: int) -> None:
    """Cut the host off for good."""
    net.cut(VICTIM)


def cut_and_join(net: Network, pid: int) -> None:
    """Cut the host off; put it back 3 s after the calls have begun."""
    net.cut(VICTIM)
    time.sleep(4.5)
    net.join(VICTIM)


def kill(net: Network, pid: int) -> None:
    """Kill the process."""
    os.kill(pid, signal.SIGKILL)


def stop(net: Network, pid: int) -> None:
    """Stop the process for 10 s."""
    os.kill(pid, signal.SIGSTOP)
    time.sleep(10)
    os.kill(pid, signal.SIGCONT)


FAULTS = {
    "cut off, limit of 1 s": Fault(cut, 1.0, 0.1),
    "cut off for 4.5 s, no limit": Fault(cut_and_join, 0.0, 0.0),
    "stopped for 10 s, limit of 2 s": Fault(stop, 2.0, 0.08),
    "stopped for 10 s, no limit": Fault(stop, 0.0, 0.0),
    "killed, no limit": Fault(kill, 0.0, 0.1),
}
if is_open_mpi(find_mpiexec()):
    ulfm = ("--with-ft", "ulfm"), ("recouple",)
    FAULTS["killed, --with-ft ulfm, limit of 30 s"] = Fault(kill, 30.0, 0.1, *ulfm)
    FAULTS["cut off, --with-ft ulfm, limit of 30 s"] = Fault(cut, 30.0, 0.1, *ulfm)
else:
    keep = ("-disable-auto-cleanup",)
    FAULTS["killed, -disable-auto-cleanup, limit of 1 s"] = Fault(kill, 1.0, 0.1, keep)


def until(ready: Callable[[], Any], seconds: float) -> bool:
    """Look until it is so; whether that was within the time."""
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            return False
        time.sleep(POLL)
    return True


def lines(folder: Path, rank: int) -> list[dict[str, Any]]:
    """What a rank said."""
    path = folder / f"rank-{rank}"
    whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
    return [json.loads(line) for line in whole.splitlines()]


def injected(net: Network, fault: Fault, folder: Path, log: Any) -> list[str]:
    """Start the ranks, let the fault happen when they are ready, wait until all have
    said what they have to say; where this is, and what became of mpiexec."""
    words = [str(folder), str(fault.limit), str(fault.slot), *fault.more]
    line = [*fault.options, sys.executable, RANK, *words]
    with net.start(line, HOSTS, stdout=log, stderr=subprocess.STDOUT) as job:
        ready, ended = folder / "ready", job.process.poll
        if not until(lambda: ready.exists() or ended() is not None, READY) or ended():
            raise RuntimeError("the processes did not begin")
        pids, *about = json.loads(ready.read_text())
        begin = time.monotonic()
        try:
            fault.happens(net, pids[VICTIM])
            said = lambda r: "over" in (lines(folder, r) or [{}])[-1]  # noqa: E731
            until(lambda: all(map(said, fault.left)) or ended() is not None, OVER)
        finally:
            net.join(VICTIM)
        if ended() is not None:
            took = time.monotonic() - begin
            about.append(f"mpiexec ended after {took:.2f} s with status {ended()}")
    return about


def outcome(found: list[dict[str, Any]], calls: int) -> str:
    """What became of some calls, and after how many seconds: on the last process that
    got an error, if one did."""
    then = Counter(x["then"] for x in found if "then" in x)
    found = [x for x in found if "said" in x]
    count = Counter(x["said"] for x in found) + Counter({"no end": calls - len(found)})
    words = ", ".join(f"{n} {said}" for said, n in count.most_common())
    named = sum(any(y in NAMED for y in x["who"]) for x in found)
    whom = f", {named} name it" if named else ""
    errors = [x["seconds"] for x in found if x["said"] != "right"]
    took = errors or [x["seconds"] for x in found] or [0.0]
    usual = f"median {median(took):.2f}, last " if len(took) > HOSTS else ""
    more = ", ".join(f"{n} {said}" for said, n in then.most_common())
    more = f"; then {more}" if more else ""
    return f"{words}{whom}, {usual}{max(took):.2f} s{more}"


def table(fault: Fault, folder: Path) -> None:
    """Print what became of every call."""
    found: dict[tuple[str, str], dict[str, list[Any]]] = {}
    said = [x for r in fault.left for x in lines(folder, r)]
    every = [x for x in said if "case" in x]
    for x in every:
        where, op, form = x["case"]
        found.setdefault((where, op), {}).setdefault(form, []).append(x)
    n, calls = len(fault.left), max((x["over"] for x in said if "over" in x), default=0)
    print("all:", outcome(every, n * calls), "\n")
    print("| | operation |", " | ".join(FORMS), "|")
    print("|---" * 5 + "|")
    for (where, op), forms in sorted(found.items()):
        cells = (outcome(forms[x], n) if x in forms else "" for x in FORMS)
        print(f"| {where} | {op} |", " | ".join(cells), "|", flush=True)


def main() -> None:
    """Each fault on the same lab, or those that are named."""
    with Lab(HOSTS, "1gbit", name=f"faults{os.getpid()}") as net:
        for name in sys.argv[1:] or FAULTS:
            print(f"\n## {name}\n", flush=True)
            with TemporaryDirectory() as made:
                folder, fault = Path(made), FAULTS[name]
                with open(folder / "log", "w") as log:
                    try:
                        print("\n".join(injected(net, fault, folder, log)))
                    except RuntimeError:
                        print((folder / "log").read_text(), file=sys.stderr)
                        raise
                if lines(folder, 0):
                    table(fault, folder)


if __name__ == "__main__":
    main()
