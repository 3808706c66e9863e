"""MPI programs on the hosts of a lab: the command lines, and one job from start to end.

Both MPI libraries start processes on other hosts with ssh. Ours is a script that takes
ssh's place and enters the namespace of the host.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..launch.environment import between_hosts, started_by
from ..launch.mpiexec import LaunchError, find_mpiexec, is_open_mpi
from . import names, spaces
from .names import BRIDGE_DEVICE, SUBNET
from .tools import inside

#: the variable that names the job in the environment of all its processes
JOB_VARIABLE = "ISTHMUS_LAB_JOB"

# TCP gives up a host that is silent after 5 tries, some 15 seconds; its usual 15 tries
# take 15 minutes.
GIVE_UP_SILENT_HOSTS = "echo 5 >/proc/sys/net/ipv4/tcp_retries2"
# The command comes as words that a shell reads once more, as with ssh. Shared memory is
# each host's own, and goes with the last of its processes.
SSH_SCRIPT = f"""\
#!/bin/sh
# called as: ssh [options] address command...
while [ "${{1#-}}" != "$1" ]; do shift; done
rest=${{1#*.*.}}; shift
number=$((${{rest%.*}} * 256 + ${{rest#*.}} - 1))
exec ip netns exec "isthmus-LAB-$number" unshare --uts sh -c "
    hostname LAB-$number
    mount -t tmpfs tmpfs /dev/shm
    {GIVE_UP_SILENT_HOSTS}
    $*"
"""
ENTER_SWITCH = ["sh", "-c", f'{GIVE_UP_SILENT_HOSTS}; exec "$@"', "sh"]


class OutOfTime(LaunchError):
    """A job exceeded its time limit; `output` is the output until then."""

    def __init__(self, limit: float, output: Any = None) -> None:
        cause = f"not over within its time limit of {limit:g} s"
        super().__init__(f"{cause}; all its processes were ended")
        self.output = output


def placed(n: int, hosts: int, per_host: int | None = None) -> list[int]:
    """The number of ranks of each host: host 0 has the first `per_host`, and so on."""
    if n < 1:
        raise ValueError(f"{n} processes: must be at least one")
    if per_host is None:
        per_host = -(-n // hosts)
    if not 0 < n <= per_host * hosts:
        raise ValueError(f"{hosts} hosts, {per_host} processes each: no room for {n}")
    return [min(per_host, n - first) for first in range(0, n, per_host)]


def mpich_command(mpiexec: str, ssh: str, ranks: Sequence[int]) -> list[str]:
    """The command line of MPICH's mpiexec up to the program."""
    hosts = ",".join(f"{names.address(i)}:{k}" for i, k in enumerate(ranks))
    start = ["-launcher", "ssh", "-launcher-exec", ssh, "-iface", BRIDGE_DEVICE]
    return [mpiexec, *start, "-hosts", hosts, "-n", str(sum(ranks))]


def open_mpi_command(mpiexec: str, ranks: Sequence[int]) -> list[str]:
    """The command line of Open MPI's mpiexec up to the program."""
    hosts = ",".join(f"{names.address(i)}:{k}" for i, k in enumerate(ranks))
    # Left to itself, every host would put its first rank on the first core.
    where = ["--map-by", "slot", "--bind-to", "none"]
    return [mpiexec, "--host", hosts, "-n", str(sum(ranks)), *where]


def environment(open_mpi: bool, environ: Mapping[str, str]) -> dict[str, str]:
    """The user's environment, completed for a lab, with this Python first on the
    PATH."""
    path = os.pathsep.join([str(Path(sys.executable).parent), environ.get("PATH", "")])
    return between_hosts(open_mpi, environ, str(SUBNET)) | {"PATH": path}


class Job:
    """A running program on the hosts of a lab; the end of a `with` ends all
    processes."""

    def __init__(
        self, lab: str, command: Sequence[str], ranks: Sequence[int], **popen: Any
    ) -> None:
        mpiexec = find_mpiexec()
        open_mpi = is_open_mpi(mpiexec)
        self.lab, self.token = lab, secrets.token_hex(8)
        self.folder = spaces.folder(lab)
        ssh = self.folder / "ssh"
        ssh.write_text(SSH_SCRIPT.replace("LAB", lab), encoding="utf-8")
        ssh.chmod(0o700)
        if open_mpi:
            start = open_mpi_command(mpiexec, ranks)
        else:
            start = mpich_command(mpiexec, str(ssh), ranks)
        line = [*ENTER_SWITCH, *start, *command]
        env = environment(open_mpi, os.environ) | {JOB_VARIABLE: self.token}
        env |= started_by(str(ssh), str(self.folder))
        self.process: subprocess.Popen[Any] = subprocess.Popen(
            inside(names.switch(lab), line),
            env=env,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            **popen,
        )

    def wait(self, timeout: float | None = None) -> tuple[Any, Any]:
        """Wait for the end of the job; return output and errors as far as both are
        pipes."""
        try:
            return self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.stop()
            output, _ = self.process.communicate()
            raise OutOfTime(timeout or 0.0, output) from None

    def processes(self) -> list[int]:
        """The processes of the job that still run, on any host."""
        return [pid for pid in spaces.inside(self.lab) if self._owns(pid)]

    def _owns(self, pid: int) -> bool:
        """Whether a process is of this job."""
        return f"{JOB_VARIABLE}={self.token}".encode() in spaces.environment(pid)

    def stop(self) -> None:
        """End all processes of the job, on all hosts."""
        spaces.end(self.processes)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
