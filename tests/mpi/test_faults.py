"""A fault in every operation and form, on one machine; docs/results/faults.py is the
same on a lab."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from launcher.mpirun import (
    ENVIRONMENT,
    Launch,
    command,
    find_mpiexec,
    obstacle,
    surviving,
)

PROGRAM = Path(__file__).parents[2] / "docs" / "results" / "faults_rank.py"
N, VICTIM = 4, 3
LIMIT = 0.5
#: seconds until the ranks are ready, and until all calls are over then
READY, OVER = 60.0, 60.0


def lines(folder, rank):
    """What a rank said."""
    path = folder / f"rank-{rank}"
    whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
    return [json.loads(line) for line in whole.splitlines()]


def until(ready, seconds):
    """Look until it is so; whether that was within the time."""
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.skipif(not PROGRAM.exists(), reason="the documentation is not here")
def test_who_waits_for_a_lost_process_raises(tmp_path):
    """Killed, where the library can go on without it; else stopped."""
    if obstacle():
        pytest.skip(obstacle())
    mpiexec = find_mpiexec()
    killed = surviving(mpiexec)
    words = [str(tmp_path), "30" if killed else str(LIMIT), "0.03"]
    line = command(mpiexec, N, str(PROGRAM), *words)
    line[1:1] = killed
    launch = Launch(line, {**os.environ, **ENVIRONMENT}, tmp_path, tmp_path)
    left, pid = range(VICTIM), 0
    try:
        assert until((tmp_path / "ready").exists, READY), (
            tmp_path / "launcher"
        ).read_text()
        pid = json.loads((tmp_path / "ready").read_text())[0][VICTIM]
        os.kill(pid, signal.SIGKILL if killed else signal.SIGSTOP)
        over = until(
            lambda: all("over" in (lines(tmp_path, r) or [{}])[-1] for r in left), OVER
        )
    finally:
        if pid and not killed:
            os.kill(pid, signal.SIGCONT)
        launch.close()
    assert over, (tmp_path / "launcher").read_text()
    error, found = "ProcessLost" if killed else "Stalled", Counter()
    for rank in left:
        for x in lines(tmp_path, rank):
            if "said" in x:
                assert x["said"] in ("right", error), (rank, x)
                assert x["seconds"] < 10, (rank, x)
                found[tuple(x["case"])] += x["said"] == error
    assert len(found) == lines(tmp_path, 0)[-1]["over"]
    silent = {op for (_, op, _), n in found.items() if not n}
    # what is short enough is sent to nobody: only those who receive wait
    assert silent <= {"Bcast", "Scatter", "Scatterv", "Redistribution"}, silent
