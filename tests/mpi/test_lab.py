"""The lab on this machine: hosts, links, failures, and nothing left behind.

These tests start mpiexec themselves, on the lab.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import gettempdir
from threading import Timer

import pytest

from isthmus.lab import Lab, LabError, OutOfTime, down, find, missing, sweep
from isthmus.lab.lab import state
from isthmus.lab.spaces import everything, inside
from isthmus.lab.tools import rootless
from sampling import LONG
from support import once

LACK = missing()
pytestmark = pytest.mark.skipif(LACK is not None, reason=str(LACK))

EXCHANGE = str(Path(__file__).with_name("exchanging.py"))
LIMIT = 60.0
#: seconds in which a lab must be gone
SOON = 20.0

WHERE = """
import os, socket
from mpi4py import MPI
os.write(1, f"{MPI.COMM_WORLD.rank} {socket.gethostname()}\\n".encode())
"""
SWAP = """
import time
import numpy as np
from mpi4py import MPI
world = MPI.COMM_WORLD
mine, other = np.zeros(10**6, "b"), np.empty(10**6, "b")
times = []
for _ in range(3):
    world.Barrier()
    start = time.perf_counter()
    world.Sendrecv(mine, 1 - world.rank, 0, other, 1 - world.rank, 0)
    times.append(time.perf_counter() - start)
slowest = world.allreduce(sorted(times)[1], MPI.MAX)
if not world.rank:
    print(slowest)
"""
# Holds a lab until it is told to end by a signal.
HOLD = """
import signal, sys, time
from isthmus.lab import Lab
# of what runs in the background, shells let Ctrl-C be ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
made = Lab(2, name=sys.argv[1])
with made as net, net.start(["sleep", "100"]) as job:
    while len(job.processes()) < 3:
        time.sleep(0.05)
    print(made._keeper.pid, flush=True)
    time.sleep(100)
"""


def python(*arguments: str) -> list[str]:
    """A program that ends all ranks when one fails."""
    return [sys.executable, "-m", "mpi4py", *arguments]


def begun(*arguments: str) -> subprocess.Popen[bytes]:
    """A process of this Python, with the variables that this process began with.

    Open MPI 4 adds variables once mpi4py is imported, and with these no mpiexec starts.
    """
    line = [sys.executable, *arguments]
    return subprocess.Popen(line, stdout=subprocess.PIPE, env=os.environ)


def left() -> list[str]:
    """What labs have left on this machine."""
    folders = Path(gettempdir()).glob("isthmus-lab-*")
    return [*everything(), *(path.name for path in folders)]


def gone(name: str) -> bool:
    """Whether a lab is gone, or soon will be."""
    deadline = time.monotonic() + SOON
    while any(name in what for what in left()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(name in what for what in left())


def runs(pid: int) -> bool:
    """Whether a process has not ended, be it that nobody asked for its status."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return words.rpartition(")")[2].split()[0] != "Z"


@pytest.fixture(scope="module")
def net():
    """Four hosts."""
    with Lab(4, "50mbit") as net:
        yield net


@pytest.fixture
def exchange(net):
    """A job whose four ranks exchange data, and the process of each."""
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}

    def start(seconds: float):
        job = net.start(python(EXCHANGE, str(seconds)), **pipe)
        late = Timer(LIMIT, job.process.kill)
        late.start()
        found = {}
        while len(found) < net.hosts:
            word, *numbers = (job.process.stdout.readline() or "ended").split()
            assert word != "ended"
            if word == "begun":
                found[int(numbers[0])] = int(numbers[1])
        late.cancel()
        time.sleep(0.2)
        return job, found

    return start


def test_ranks_are_on_their_hosts(net):
    done = net.run(python("-c", WHERE), n=7, timeout=LIMIT, stdout=subprocess.PIPE)
    found = dict(line.split() for line in done.stdout.decode().splitlines())
    assert found == {str(r): f"{net.name}-{r // 2}" for r in range(7)}
    assert done.returncode == 0


def test_bytes_pass_the_shaped_links(net):
    done = net.run(python("-c", SWAP), n=2, timeout=LIMIT, stdout=subprocess.PIPE)
    seconds = float(done.stdout)
    # 10^6 bytes at 50 Mbit/s take 0.16 s, but for what the bucket lets through at once.
    assert 0.145 < seconds < 1.0


@once
def test_hosts_fill_no_table_of_neighbours(net):
    """The kernel has one for all namespaces; full, it drops packets."""
    program = "from mpi4py import MPI as m; m.COMM_WORLD.alltoall(range(4))"
    assert net.run(python("-c", program), timeout=LIMIT).returncode == 0
    for host in range(net.hosts):
        command = ["ip", "-n", f"isthmus-{net.name}-{host}", "neigh"]
        said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        (line,) = said.stdout.splitlines()
        assert "PERMANENT" in line


@once
def test_a_link_has_the_rate_that_was_set(net):
    net.set_rate(1, "20mbit")
    try:
        assert net.links()[1].rate == 20_000_000
        found = net.measure(0, 1)
    finally:
        net.set_rate(1, "50mbit")
    assert 0.7 < 8 * found.rate / 20e6 < 1
    assert 0 < found.alpha < 0.1


def test_the_exit_status_is_the_programs(net):
    assert net.run(["sh", "-c", "exit 3"], n=2, timeout=LIMIT).returncode == 3


def test_a_time_limit_ends_everything(net):
    words = r"^not over within its time limit of 2 s; all its processes were ended$"
    with pytest.raises(OutOfTime, match=words) as end:
        net.run(["sh", "-c", "echo here; sleep 100"], timeout=2, stdout=subprocess.PIPE)
    assert end.value.output.count(b"here") == net.hosts
    assert inside(net.name) == []


def test_a_killed_rank_ends_the_program_with_an_error(net, exchange):
    job, ranks = exchange(seconds=100)
    with job:
        os.kill(ranks[2], signal.SIGKILL)
        output, _ = job.wait(30)
        assert job.process.returncode != 0
    assert "wrong" not in output and "finished" not in output
    assert inside(net.name) == []


def test_a_host_that_is_cut_off_never_gives_wrong_data(net, exchange):
    job, _ = exchange(seconds=100)
    net.cut(3)
    try:
        with job, pytest.raises(OutOfTime) as end:
            assert not net.links()[3].joined
            job.wait(3 if LONG else 1)
    finally:
        net.join(3)
    assert "wrong" not in end.value.output and "finished" not in end.value.output
    assert inside(net.name) == []


def test_a_host_that_is_joined_again_goes_on(net, exchange):
    job, _ = exchange(seconds=3 if LONG else 1)
    with job:
        net.cut(0)
        time.sleep(1 if LONG else 0.3)
        net.join(0)
        output, _ = job.wait(LIMIT)
    assert job.process.returncode == 0, output
    assert output.count("finished") == net.hosts and "wrong" not in output


@once
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_lab_whose_process_ends(kind):
    name = f"ends{os.getpid()}"
    with begun("-c", HOLD, name) as holder:
        assert holder.stdout.readline()
        assert state(name) == "held" and inside(name)
        with pytest.raises(LabError, match="belongs to a process"):
            down(name)
        holder.send_signal(kind)
    assert holder.returncode != 0
    assert gone(name)


@once
def test_what_a_dead_lab_left_is_swept():
    name = f"dead{os.getpid()}"
    with begun("-c", HOLD, name) as holder:
        os.kill(int(holder.stdout.readline()), signal.SIGKILL)
        holder.kill()
    alive = inside(name)
    assert state(name) == "dead" and alive
    other = f"isthmus-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", other], check=True)
    try:
        assert name in sweep()
        assert gone(name)
    finally:  # it must still be there
        subprocess.run(["ip", "netns", "del", other], check=True)
    assert not any(runs(pid) for pid in alive)


@once
def test_a_session(capsys):
    pytest.importorskip("typer")
    pytest.importorskip("rich")
    from isthmus.cli import main

    name = f"kept{os.getpid()}"

    def isthmus(*words: str) -> str:
        with pytest.raises(SystemExit):
            main(["lab", *words, "--name", name])
        return "".join(capsys.readouterr())

    try:
        said = isthmus("up", "--hosts", "3", "--rate", "20mbit", "--slow", "1:10mbit")
        assert "3 hosts at 20mbit" in said
        assert state(name) == "kept" and name not in sweep()
        assert f"there is a lab {name!r}" in isthmus("up")
        assert isthmus("cut", "2") == isthmus("set", "0", "--rate", "1mbit") == ""
        assert "no host 3" in isthmus("join", "3")
        links = find(name).links()
        assert [links[i].rate for i in range(3)] == [10**6, 10**7, 2 * 10**7]
        assert [links[i].joined for i in range(3)] == [True, True, False]
        with Lab(1) as other:
            assert {name, other.name} <= set(everything())
    finally:
        said = isthmus("down")
    assert said == f"taken down: {name}\n"
    assert gone(name)
    assert f"no lab {name!r}" in isthmus("cut", "0")


def test_run_ends_its_program_when_it_is_ended(net):
    pytest.importorskip("typer")
    pytest.importorskip("rich")
    code = "from isthmus.cli import main; main()"
    line = ["lab", "run", "--name", net.name, "--", "sh", "-c", "echo here; sleep 100"]
    with begun("-c", code, *line) as process:
        assert process.stdout.readline() == b"here\n"
        assert inside(net.name)
        process.terminate()
    assert process.returncode == 128 + signal.SIGTERM
    assert inside(net.name) == []


@once
def test_a_lab_without_root():
    code = "from isthmus.lab import Lab\nwith Lab(2) as net: print(net.measure())"
    trial = subprocess.run(rootless(["true"]), capture_output=True, text=True)
    if trial.returncode:
        pytest.skip(f"users have no namespaces here: {trial.stderr.strip()}")
    command = rootless([sys.executable, "-c", code])
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert done.stdout.startswith("Limits("), done.stderr
