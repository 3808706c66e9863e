"""Runs the tests that need no MPI on two cores: half of the files each.

python tests/halves.py [arguments of pytest]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

#: what pytest returns if it found no test
NONE = 5


def main(arguments: list[str]) -> int:
    """Run both halves at once; show one after the other; the worse status."""
    files = sorted(map(str, Path(__file__).parent.glob("pure/test_*.py")))
    pytest = [sys.executable, "-m", "pytest", *arguments]
    with tempfile.TemporaryFile() as said:
        other = subprocess.Popen([*pytest, *files[1::2]], stdout=said, stderr=said)
        first = subprocess.run([*pytest, *files[::2]]).returncode
        second = other.wait()
        said.seek(0)
        sys.stdout.buffer.write(said.read())
    if first == second == NONE:
        return NONE
    return max(status for status in (first, second) if status != NONE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
