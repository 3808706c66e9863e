"""Many processes on one machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from launcher.mpirun import ENVIRONMENT, Launch, command, find_mpiexec, obstacle

PROGRAM = Path(__file__).with_name("many.py")
#: a process takes about so many bytes
EACH = 70 << 20


@pytest.mark.long
@pytest.mark.parametrize("n", [48, 256])
def test_every_operation(tmp_path, n):
    if obstacle():
        pytest.skip(obstacle())
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < n * EACH:
        pytest.skip(f"{n} processes do not fit into memory")
    line = command(find_mpiexec(), n, str(PROGRAM))
    launch = Launch(line, {**os.environ, **ENVIRONMENT}, tmp_path, tmp_path)
    launch.wait(600)
    launch.close()
    output = (tmp_path / "launcher").read_text()
    assert f"{n} processes" in output, output
