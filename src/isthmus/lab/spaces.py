"""The namespaces of all labs, the processes inside, and taking labs down."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir, mkdtemp

from . import names
from .names import BRIDGE_DEVICE
from .tools import LabError, run, run_lines

NAMESPACE_FOLDER = Path("/run/netns")
#: the alias of a bridge whose lab is complete and stays after its maker has ended
PERMANENT_ALIAS = "kept"
OWN_NAMESPACE = Path("/proc/self/ns/net")
#: seconds between two looks at processes that end, and until this is an error
SECONDS_BETWEEN_LOOKS, SECONDS_TO_END_PROCESSES = 0.02, 20.0
#: seconds within which a process shows its environment or is gone
SECONDS_TO_SHOW_ENVIRONMENT = 1.0


def everything() -> dict[str, list[str]]:
    """The namespaces of each lab, dead or alive."""
    namespaces_of_lab: dict[str, list[str]] = {}
    for path in sorted(NAMESPACE_FOLDER.glob("isthmus-*")):
        if lab_and_host := names.owner(path.name):
            namespaces_of_lab.setdefault(lab_and_host[0], []).append(path.name)
    return namespaces_of_lab


def inside(name: str) -> list[int]:
    """The processes on a host of a lab or in its switch."""
    files = (NAMESPACE_FOLDER / namespace for namespace in everything().get(name, ()))
    # Our own network is never a lab's, whatever a file of that name says.
    lab_networks = {_identity(file) for file in files} - {
        _identity(OWN_NAMESPACE),
        None,
    }
    return [
        int(process.name)
        for process in Path("/proc").glob("[0-9]*")
        if _identity(process / "ns" / "net") in lab_networks
    ]


def environment(pid: int) -> list[bytes]:
    """The environment of a process in a lab; empty if the process is gone.

    A process has no environment to read while a program begins or ends, so reading is
    repeated, until the environment appears or the process has left the lab.
    """
    process = Path(f"/proc/{pid}")
    deadline = time.monotonic() + SECONDS_TO_SHOW_ENVIRONMENT
    while _identity(process / "ns" / "net") and time.monotonic() < deadline:
        with suppress(OSError):
            if variables := (process / "environ").read_bytes():
                return variables.split(b"\0")
        time.sleep(SECONDS_BETWEEN_LOOKS)
    return []


def _identity(file: Path) -> tuple[int, int] | None:
    """The device and inode, by which a namespace is known; None without a namespace."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def end(who: Callable[[], list[int]]) -> None:
    """Kill processes, and all that start meanwhile.

    Processes are not asked to end, since MPI libraries would then wait for cut-off
    hosts, and print errors on all hosts.
    """
    deadline = time.monotonic() + SECONDS_TO_END_PROCESSES
    while pids := who():
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise LabError(f"these processes do not end: {pids}")
        time.sleep(SECONDS_BETWEEN_LOOKS)


def take_down(name: str) -> bool:
    """End all processes of a lab and remove the lab; return whether the lab was up."""
    namespaces = everything().get(name, [])
    end(lambda: inside(name))
    if namespaces:
        run_lines("ip", [f"netns del {namespace}" for namespace in namespaces])
    for path in Path(gettempdir()).glob(f"{_prefix(name)}*"):
        shutil.rmtree(path, ignore_errors=True)
    return bool(namespaces)


def folder(name: str) -> Path:
    """A new folder for a job on a lab, removed with the lab at the latest."""
    return Path(mkdtemp(prefix=_prefix(name)))


def _prefix(name: str) -> str:
    """The prefix of a lab's folders, with the inode of our own network.

    Other users, without root, may have a lab of an equal name in a network of their
    own.
    """
    return f"isthmus-lab-{name}-{OWN_NAMESPACE.stat().st_ino}-"


def keep(name: str) -> None:
    """Mark a lab as complete; otherwise a sweep would remove the lab as the rest of a
    dead one."""
    command = f"link set {BRIDGE_DEVICE} alias {PERMANENT_ALIAS}"
    run_lines("ip", [command], names.switch(name))


def is_permanent(name: str) -> bool:
    """Whether a lab is complete and stays after its maker has ended."""
    with suppress(LabError):
        bridge_state = run(
            ["ip", "-n", names.switch(name), "-j", "link", "show", BRIDGE_DEVICE]
        )
        return bool(json.loads(bridge_state)[0].get("ifalias") == PERMANENT_ALIAS)
    return False
