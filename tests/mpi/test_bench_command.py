"""`isthmus bench` as a command: on a lab, and ended before its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest

from isthmus.lab import missing
from isthmus.lab.spaces import everything
from sampling import LONG
from support import once

pytest.importorskip("typer")
pytest.importorskip("rich")

CODE = "import sys; from isthmus.cli import main; main()"
LASTING = ["--groups", "1,1", "--bytes", "8,64MiB", "--seconds", "100"]
SOON = 20.0
LACK = missing()
needs_lab = pytest.mark.skipif(LACK is not None, reason=str(LACK))


def marked(mark: str) -> list[int]:
    """The processes that have a mark in their environment, and run."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def labs_of(pid: int) -> list[str]:
    """The labs that a process has made."""
    return [name for name in everything() if name.startswith(f"lab{pid}x")]


def nobody(mark: str) -> bool:
    """Whether all marked processes are gone, or soon will be."""
    deadline = time.monotonic() + SOON
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not marked(mark)


@pytest.mark.skipif(not Path("/proc").exists(), reason="there is no /proc")
@pytest.mark.parametrize(
    "kind, status, where",
    [
        (signal.SIGINT, 130, []),
        pytest.param(signal.SIGTERM, 143, [], marks=once),
        pytest.param(signal.SIGHUP, 129, [], marks=once),
        pytest.param(signal.SIGTERM, 143, ["--lab", "2"], marks=needs_lab),
    ],
)
def test_nothing_is_left_of_a_bench_that_is_ended(kind, status, where):
    mark = f"bench-{uuid4()}"
    with subprocess.Popen(
        [sys.executable, "-c", CODE, "bench", *LASTING, *where],
        env=os.environ | {"ISTHMUS_TEST_MARK": mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that starts tests in the background has them ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        # The first word about the progress: all ranks run.
        assert process.stderr.readline().split()[-2:] == ["8", "B"]
        assert len(marked(mark)) >= 4
        assert len(labs_of(process.pid)) == ("--lab" in where)
        process.send_signal(kind)
        process.wait(SOON)
    assert process.returncode == status
    assert nobody(mark)
    assert not labs_of(process.pid)


@once
@needs_lab
def test_a_bench_on_a_lab_knows_the_limit(tmp_path):
    path = tmp_path / "x.json"
    kib = 1024 if LONG else 256
    words = "--lab 4 --rate 100mbit --groups 2,2 --seconds 0.1 --launches 1"
    words += f" --bytes {kib}KiB"
    subprocess.run(
        [sys.executable, "-c", CODE, "bench", *words.split(), "--json", str(path)],
        check=True,
        timeout=100,
        stdout=subprocess.DEVNULL,
    )
    found = json.loads(path.read_text())
    native, auto = found["results"]
    assert (native["contender"], auto["contender"]) == ("native", "auto")
    assert native["launches"] == 1 and native["repetitions"] >= 3
    if not found["environment"]["warning"]:
        # No link is faster than its rate, but for what it lets through at once.
        assert auto["limit"] > 0.99 * (2 * kib - 64) * 1024 * 8 / 100e6
        assert auto["multiple"] > 0.97 and native["multiple"] > 0.97
