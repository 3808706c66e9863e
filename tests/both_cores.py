"""Runs the tests that need no MPI on two cores, some files at a time.

python tests/both_cores.py [arguments of pytest]
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

#: one more at a time than there are cores, as some wait for what they started; and many
#: parts, so that all end at about the same time
AT_ONCE, PARTS = 3, 8
#: what pytest returns if it found no test
NONE = 5


def main(arguments: list[str]) -> int:
    """Run all parts; show them one after the other; the worst status."""
    files = sorted(map(str, Path(__file__).parent.glob("pure/test_*.py")))
    pytest = [sys.executable, "-m", "pytest", *arguments]

    def run(part: int) -> subprocess.CompletedProcess[bytes]:
        argv = [*pytest, *files[part::PARTS]]
        return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    found = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in pool.map(run, range(PARTS)):
            sys.stdout.buffer.write(done.stdout)
            sys.stdout.flush()
            found.append(done.returncode)
    return max((status for status in found if status != NONE), default=NONE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
