"""What the fuzz finds in a source that has known defects, and after how many seconds.

    python tests/fuzz_finds.py path/to/old/src --seconds 600

A fuzz that is always clean says nothing of itself. Here it runs on the source of an
earlier version, through the public interface alone, to show which of nine defects that
were mended since it comes upon. Every kind of episode goes on with the next seed when
it has found something, until it has found what it can or its time is over.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from fuzz.launch import Fault, Plan, run

#: the variables that have ranks print every call, and leave operations out
TRACE, WITHOUT = "ISTHMUS_FUZZ_TRACE", "ISTHMUS_FUZZ_WITHOUT"


@dataclass(frozen=True)
class Defect:
    """A defect, and how a fault of the fuzz shows it."""

    number: str
    summary: str
    plan: Plan
    shows: str
    #: what some rank did in the episode
    calls: str = ""
    #: what is left out because it would end episodes before
    without: str = "Reduce_scatter_block"

    def is_shown_by(self, fault: Fault) -> bool:
        """Whether a fault is of this defect."""
        is_seen = re.search(self.shows, fault.text, re.S) is not None
        return is_seen and re.search(self.calls, fault.output) is not None


_WRONG = r"(are wrong|hangs|Error|ended with)"
#: calls of many episodes: two ranks on two cores make most of them
_CALLS = Plan(2, "multiple", ("steady",), seconds=600)
DEFECTS = (
    Defect(
        "04",
        "bytes in a list",
        _CALLS,
        r"are wrong",
        r"blocking .*send list of bytes, code",
        without="Reduce_scatter_block,Reduce_scatter,refused",
    ),
    Defect(
        "01",
        "a refused call counts on the rank that refused it",
        Plan(3, "multiple", ("steady",), seconds=600),
        r"hangs|Stalled|are wrong|truncated",
        r"after \d+ refused",
    ),
    Defect(
        "02",
        "Reduce_scatter with None is refused at the 16th call",
        _CALLS,
        r"TypeError.*Reduce_scatter.*brief",
        without="Reduce_scatter_block,refused",
    ),
    Defect(
        "03",
        "Ialltoall and its kin without MPI_THREAD_MULTIPLE",
        Plan(3, "serialized", ("calls",), seconds=600),
        rf"(nonblocking|persistent) Alltoall.*{_WRONG}|{_WRONG}.*Alltoall",
    ),
    Defect(
        "05",
        "an array on a device in a list",
        Plan(3, "multiple", ("devices",), seconds=600),
        r"ended with|of device",
    ),
    Defect(
        "06",
        "a call behind after MemoryError or Ctrl-C",
        Plan(3, "multiple", ("broken",), seconds=600),
        r"(MemoryError|SIGINT) on rank",
    ),
    Defect(
        "07",
        "checked mode hangs where forms differ",
        Plan(3, "multiple", ("checked",), seconds=600),
        r"hangs in .*mismatch|Stalled",
    ),
    Defect(
        "08",
        "memory that is kept has no bound",
        Plan(3, "multiple", ("memory",), seconds=600),
        r"memory: ",
    ),
    Defect(
        "09",
        "a tuple costs many times what an array costs",
        Plan(2, "multiple", ("speed",), seconds=600),
        r"speed: .*tuple of",
    ),
)


@dataclass(frozen=True)
class Find:
    """When a defect was found, and by which fault."""

    seconds: float
    fault: Fault


def finds(plan: Plan, defects: list[Defect], seconds: float) -> Iterator[object]:
    """What one kind of episode finds: pairs of a defect and a find."""
    begin, missing = time.monotonic(), list(defects)
    while missing and time.monotonic() - begin < seconds:
        left = seconds - (time.monotonic() - begin)
        report = run(replace(plan, seconds=left))
        for fault in report.faults:
            took = time.monotonic() - begin
            shown = [x for x in missing if x.is_shown_by(fault)][:1]
            for defect in shown:
                missing.remove(defect)
                yield defect, Find(took, fault)
            if not shown:
                print(f"  another: {fault.mode} {fault.seed}: {fault.text[:200]}")
            plan = replace(plan, seed=fault.seed + 1)
        if not report.faults:
            break


def main() -> int:
    """Print a table of the defects and how they were found."""
    parser = argparse.ArgumentParser(description="what the fuzz finds in an old source")
    parser.add_argument("source", type=Path, help="the folder that has isthmus")
    parser.add_argument("--seconds", type=float, default=600.0, help="for each mode")
    parser.add_argument("--patience", type=float, default=20.0, help="for an episode")
    parser.add_argument("--only", default="", help="numbers of defects, as 01,05")
    asked = parser.parse_args()
    old = [str(asked.source.resolve()), os.environ.get("PYTHONPATH", "")]
    os.environ[TRACE] = "1"
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, old))
    chosen = [x for x in DEFECTS if x.number in asked.only or not asked.only]
    rows: dict[str, Find] = {}
    for plan, without in dict.fromkeys((x.plan, x.without) for x in chosen):
        same = [x for x in chosen if (x.plan, x.without) == (plan, without)]
        # Reduce_scatter_block with a count is refused where mpi4py takes it
        os.environ[WITHOUT] = without
        for defect, find in finds(  # type: ignore[misc]
            replace(plan, patience=asked.patience), same, asked.seconds
        ):
            rows[defect.number] = find
            print(f"  {defect.number} after {find.seconds:.0f} s", flush=True)
    print(
        "| defect | what | mode | found after | seed | how |\n|---|---|---|---|---|---|"
    )
    for defect in chosen:
        row, mode = rows.get(defect.number), f"{defect.plan.modes[0]}"
        mode += f", {defect.plan.level}, {defect.plan.ranks} ranks"
        if row is None:
            print(f"| {defect.number} | {defect.summary} | {mode} | not found | | |")
            continue
        text = re.sub(r"\s+", " ", row.fault.text)[:160].replace("|", "/")
        print(
            f"| {defect.number} | {defect.summary} | {mode} | {row.seconds:.0f} s | "
            f"{row.fault.seed} | {text} |"
        )
    return int(len(rows) < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
