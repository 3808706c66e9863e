"""Runs the tests that need no MPI on two cores, some files at a time.

python tests/both_cores.py 3 [arguments of pytest]

runs three parts at a time, each in a process.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

#: files that take longest come first, each alone, so that all cores end together
FIRST = (
    "launcher",
    "predict",
    "explore",
    "between_all",
    "cli",
    "inter_rooted",
    "algorithms",
)
#: the other files come in so many parts
PARTS = 4
#: what pytest returns if it found no test
NONE = 5


def parts() -> list[list[str]]:
    """All files, those that run in one process together."""
    folder = Path(__file__).parent / "pure"
    first = [str(folder / f"test_{name}.py") for name in FIRST]
    others = sorted({*map(str, folder.glob("test_*.py"))} - {*first})
    return [*([file] for file in first), *(others[i::PARTS] for i in range(PARTS))]


def main(at_once: int, arguments: list[str]) -> int:
    """Run all parts; show them one after the other; the worst status."""
    pytest = [sys.executable, "-m", "pytest", *arguments]

    def run(part: list[str]) -> subprocess.CompletedProcess[bytes]:
        argv = [*pytest, *part]
        return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    found = []
    with ThreadPoolExecutor(at_once) as pool:
        for done in pool.map(run, parts()):
            sys.stdout.buffer.write(done.stdout)
            sys.stdout.flush()
            found.append(done.returncode)
    return max((status for status in found if status != NONE), default=NONE)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
