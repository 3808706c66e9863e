"""The namespaces of all labs there are, who is inside, and taking them down."""

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
from .names import BRIDGE
from .tools import LabError, batch, run

FOLDER = Path("/run/netns")
#: said of a bridge whose lab is complete and to stay after its maker has ended
KEPT = "kept"
OWN = Path("/proc/self/ns/net")
#: seconds between two looks at who is left, and until one gives up
POLL, PATIENCE = 0.02, 20.0
#: seconds within which a process shows its environment or is gone
GLIMPSE = 1.0


def everything() -> dict[str, list[str]]:
    """The namespaces of each lab there is, dead or alive."""
    found: dict[str, list[str]] = {}
    for path in sorted(FOLDER.glob("isthmus-*")):
        if whose := names.owner(path.name):
            found.setdefault(whose[0], []).append(path.name)
    return found


def inside(name: str) -> list[int]:
    """The processes that are on a host of a lab or in its switch."""
    files = (FOLDER / namespace for namespace in everything().get(name, ()))
    # Our own network is never a lab's, whatever a file of that name says.
    wanted = {_identity(file) for file in files} - {_identity(OWN), None}
    return [
        int(process.name)
        for process in Path("/proc").glob("[0-9]*")
        if _identity(process / "ns" / "net") in wanted
    ]


def environment(pid: int) -> list[bytes]:
    """The environment of a process in a lab; empty if it is gone.

    A process shows none while it begins a program or ends: look until it does, or left.
    """
    process, deadline = Path(f"/proc/{pid}"), time.monotonic() + GLIMPSE
    while _identity(process / "ns" / "net") and time.monotonic() < deadline:
        with suppress(OSError):
            if found := (process / "environ").read_bytes():
                return found.split(b"\0")
        time.sleep(POLL)
    return []


def _identity(file: Path) -> tuple[int, int] | None:
    """What tells one namespace from another; None if it is gone."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def end(who: Callable[[], list[int]]) -> None:
    """End processes, and those that they start meanwhile.

    Not politely: MPI libraries that are asked to end wait for hosts that are cut off,
    and say on all hosts what they make of it.
    """
    deadline = time.monotonic() + PATIENCE
    while pids := who():
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise LabError(f"these processes do not end: {pids}")
        time.sleep(POLL)


def take_down(name: str) -> bool:
    """End what runs in a lab and remove it; whether there was one."""
    found = everything().get(name, [])
    end(lambda: inside(name))
    if found:
        batch("ip", [f"netns del {namespace}" for namespace in found])
    for path in Path(gettempdir()).glob(f"{_prefix(name)}*"):
        shutil.rmtree(path, ignore_errors=True)
    return bool(found)


def folder(name: str) -> Path:
    """A new folder for a job on a lab; it goes with the lab at the latest."""
    return Path(mkdtemp(prefix=_prefix(name)))


def _prefix(name: str) -> str:
    """How a lab's folders begin: others, without root, may have a lab of that name."""
    return f"isthmus-lab-{name}-{OWN.stat().st_ino}-"


def keep(name: str) -> None:
    """Mark a lab as complete, so that nobody takes it for the rest of a dead one."""
    batch("ip", [f"link set {BRIDGE} alias {KEPT}"], names.switch(name))


def is_kept(name: str) -> bool:
    """Whether a lab is complete and to stay."""
    with suppress(LabError):
        said = run(["ip", "-n", names.switch(name), "-j", "link", "show", BRIDGE])
        return bool(json.loads(said)[0].get("ifalias") == KEPT)
    return False
