"""Run tests on two cores, several parts at a time.

python tests/both_cores.py pure [arguments of pytest]
python tests/both_cores.py mpi [arguments of pytest]

Three parts run at a time, each in a process. Of the tests with MPI, one part has those
that share launches, two have those that start programs of their own.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TESTS = Path(__file__).parent
#: parts at a time: one more than cores, because some parts wait for programs
PARTS_AT_ONCE = 3
#: the files that take longest come first, each alone, so that all cores end together
LONGEST_FILES = ("install", "launcher", "explore", "algorithms")
#: the number of parts of all further files
PARTS = 4
#: the files of tests that start programs of their own in which these compute; in the
#: others they mostly wait
COMPUTING_FILES = ("fuzz", "mpi4py_suite", "examples", "rival_collectives")
#: the status of pytest without any test
NO_TESTS_STATUS = 5


def pure() -> list[list[str]]:
    """The files of each part of the tests without MPI."""
    folder = TESTS / "pure"
    first = [str(folder / f"test_{name}.py") for name in LONGEST_FILES]
    others = sorted({*map(str, folder.glob("test_*.py"))} - {*first})
    return [*([file] for file in first), *(others[i::PARTS] for i in range(PARTS))]


def mpi() -> list[list[str]]:
    """The arguments of the parts of the MPI tests: launches that many tests share, and
    programs of their own, those that compute apart from those that mostly wait."""
    folder = str(TESTS / "mpi")
    computing = [str(TESTS / "mpi" / f"test_{name}.py") for name in COMPUTING_FILES]
    waiting = [folder, *(f"--ignore={file}" for file in computing)]
    return [
        [folder, "-m", "mpi", "--turns"],
        [*computing, "-m", "not mpi"],
        [*waiting, "-m", "not mpi"],
    ]


def main(kind: str, arguments: list[str]) -> int:
    """Run all parts, show their output in sequence, and return the worst status."""
    pytest = [sys.executable, "-m", "pytest", *arguments]

    def run(part: list[str], shown: bool) -> subprocess.CompletedProcess[bytes]:
        out = None if shown else subprocess.PIPE
        return subprocess.run([*pytest, *part], stdout=out, stderr=subprocess.STDOUT)

    parts, statuses = {"pure": pure, "mpi": mpi}[kind](), []
    with ThreadPoolExecutor(PARTS_AT_ONCE) as pool:
        for done in pool.map(run, parts, [True, *[False] * len(parts)]):
            sys.stdout.buffer.write(done.stdout or b"")
            sys.stdout.flush()
            statuses.append(done.returncode)
    with_tests = (status for status in statuses if status != NO_TESTS_STATUS)
    return max(with_tests, default=NO_TESTS_STATUS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
