"""Runs tests on two cores, some files at a time.

python tests/both_cores.py pure [arguments of pytest]
python tests/both_cores.py mpi [arguments of pytest]

Of those that need no MPI, three parts run at a time; of the others, those that start
programs of their own beside those that share launches. Each part is a process.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TESTS = Path(__file__).parent
#: so many parts at a time: one more than there are cores, as some wait for what they
#: started
AT_ONCE = 3
#: files that take longest come first, each alone, so that all cores end together
FIRST = ("launcher", "predict", "explore")
#: the other files come in so many parts
PARTS = 5
#: what pytest returns if it found no test
NONE = 5


def pure() -> list[list[str]]:
    """All files, those that run in one process together."""
    folder = TESTS / "pure"
    first = [str(folder / f"test_{name}.py") for name in FIRST]
    others = sorted({*map(str, folder.glob("test_*.py"))} - {*first})
    return [*([file] for file in first), *(others[i::PARTS] for i in range(PARTS))]


def mpi() -> list[list[str]]:
    """Launches of many tests, which take longest; the others wait for most of their
    time."""
    folder = str(TESTS / "mpi")
    return [[folder, "-m", "mpi", "--turns"], [folder, "-m", "not mpi"]]


def main(of: str, arguments: list[str]) -> int:
    """Run all parts, and show them one after the other; the worst status."""
    pytest = [sys.executable, "-m", "pytest", *arguments]

    def run(part: list[str], shown: bool) -> subprocess.CompletedProcess[bytes]:
        out = None if shown else subprocess.PIPE
        return subprocess.run([*pytest, *part], stdout=out, stderr=subprocess.STDOUT)

    parts, found = {"pure": pure, "mpi": mpi}[of](), []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in pool.map(run, parts, [True, *[False] * len(parts)]):
            sys.stdout.buffer.write(done.stdout or b"")
            sys.stdout.flush()
            found.append(done.returncode)
    return max((status for status in found if status != NONE), default=NONE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
