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

from . import names, spaces
from .mpiexec import QUIET, LaunchError, find_mpiexec, is_open_mpi
from .names import BRIDGE, SUBNET
from .tools import inside

#: in the environment of every process of a job: which job
TOKEN = "ISTHMUS_LAB_JOB"

# TCP gives up a host that is silent after 5 tries, some 15 seconds; its usual 15 tries
# take 15 minutes.
GIVE_UP = "echo 5 >/proc/sys/net/ipv4/tcp_retries2"
# The command comes as words that a shell reads once more, as with ssh. Shared memory is
# each host's own, and goes with the last of its processes.
SSH = f"""\
#!/bin/sh
# called as: ssh [options] address command...
while [ "${{1#-}}" != "$1" ]; do shift; done
rest=${{1#*.*.}}; shift
number=$((${{rest%.*}} * 256 + ${{rest#*.}} - 1))
exec ip netns exec "isthmus-LAB-$number" unshare --uts sh -c "
    hostname LAB-$number
    mount -t tmpfs tmpfs /dev/shm
    {GIVE_UP}
    $*"
"""
SWITCH = ["sh", "-c", f'{GIVE_UP}; exec "$@"', "sh"]

MPICH = {
    "FI_PROVIDER": "tcp",
    "MPIR_CVAR_CH4_NETMOD": "ofi",
    # Built with UCX, which takes all hosts for one machine with one shared memory.
    "UCX_TLS": "tcp,self",
    # An empty name keeps Hydra from leaving a file in /tmp when a job is ended.
    "HWLOC_XMLFILE": "",
}
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    # Each host believes that it has all cores, which it shares with all other hosts.
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_pml": "ob1",
    # Between hosts tcp; vader, the older name of sm, is between processes of one host.
    "OMPI_MCA_btl": "self,vader,tcp",
    "OMPI_MCA_btl_tcp_if_include": str(SUBNET),
    "OMPI_MCA_oob_tcp_if_include": str(SUBNET),
    "PRTE_MCA_prte_if_include": str(SUBNET),
    # All daemons are started from the switch, where the script is.
    "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
    "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
}
#: variables of Open MPI before 5 and since, for what takes ssh's place
AGENTS = ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent")
#: and for where its daemons put their files
FOLDERS = ("OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base")


class OutOfTime(LaunchError):
    """A job was not over within its time limit; `output`: what it had written."""

    def __init__(self, limit: float, output: Any = None) -> None:
        said = f"not over within its time limit of {limit:g} s"
        super().__init__(f"{said}; all its processes were ended")
        self.output = output


def placed(n: int, hosts: int, per_host: int | None = None) -> list[int]:
    """How many ranks each host has: host 0 the first `per_host`, and so on."""
    if n < 1:
        raise ValueError(f"{n} processes: must be at least one")
    each = -(-n // hosts) if per_host is None else per_host
    if not 0 < n <= each * hosts:
        raise ValueError(f"{hosts} hosts, {each} processes each: no room for {n}")
    return [min(each, n - first) for first in range(0, n, each)]


def mpich_command(mpiexec: str, ssh: str, ranks: Sequence[int]) -> list[str]:
    """MPICH's mpiexec, as far as the program."""
    hosts = ",".join(f"{names.address(i)}:{k}" for i, k in enumerate(ranks))
    start = ["-launcher", "ssh", "-launcher-exec", ssh, "-iface", BRIDGE]
    return [mpiexec, *start, "-hosts", hosts, "-n", str(sum(ranks))]


def open_mpi_command(mpiexec: str, ranks: Sequence[int]) -> list[str]:
    """Open MPI's mpiexec, as far as the program."""
    hosts = ",".join(f"{names.address(i)}:{k}" for i, k in enumerate(ranks))
    # Left to itself, every host would put its first rank on the first core.
    where = ["--map-by", "slot", "--bind-to", "none"]
    return [mpiexec, "--host", hosts, "-n", str(sum(ranks)), *where]


def environment(open_mpi: bool, environ: Mapping[str, str]) -> dict[str, str]:
    """The user's environment, what is not set in it, and this Python found first."""
    more = QUIET | (OPEN_MPI if open_mpi else MPICH)
    path = os.pathsep.join([str(Path(sys.executable).parent), environ.get("PATH", "")])
    return more | dict(environ) | {"PATH": path}


class Job:
    """A program that runs on the hosts of a lab; closing it ends all its processes."""

    def __init__(
        self, lab: str, command: Sequence[str], ranks: Sequence[int], **popen: Any
    ) -> None:
        mpiexec = find_mpiexec()
        open_mpi = is_open_mpi(mpiexec)
        self.lab, self.token = lab, secrets.token_hex(8)
        self.folder = spaces.folder(lab)
        ssh = self.folder / "ssh"
        ssh.write_text(SSH.replace("LAB", lab), encoding="utf-8")
        ssh.chmod(0o700)
        if open_mpi:
            start = open_mpi_command(mpiexec, ranks)
        else:
            start = mpich_command(mpiexec, str(ssh), ranks)
        line = [*SWITCH, *start, *command]
        env = environment(open_mpi, os.environ) | {TOKEN: self.token}
        env |= dict.fromkeys(AGENTS, str(ssh)) | dict.fromkeys(
            FOLDERS, str(self.folder)
        )
        self.process: subprocess.Popen[Any] = subprocess.Popen(
            inside(names.switch(lab), line),
            env=env,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            **popen,
        )

    def wait(self, timeout: float | None = None) -> tuple[Any, Any]:
        """Wait for its end; what it wrote, where pipes were asked for."""
        try:
            return self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.stop()
            output, _ = self.process.communicate()
            raise OutOfTime(timeout or 0.0, output) from None

    def processes(self) -> list[int]:
        """Those of its processes that still run, on whatever host."""
        return [pid for pid in spaces.inside(self.lab) if self._owns(pid)]

    def _owns(self, pid: int) -> bool:
        """Whether a process was started by this job."""
        return f"{TOKEN}={self.token}".encode() in spaces.environment(pid)

    def stop(self) -> None:
        """End all its processes, on all hosts."""
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
