"""A process that outlives the maker of a lab, and takes the lab down after it.

It waits for the end of its input, which comes however its maker ends. It has a session
of its own, so that Ctrl-C is not for it, and it holds the lock on the lab's name.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from socket import AF_UNIX, socket

from .tools import LabError

#: what a maker says whose lab is down already, or is to stay
LEAVE = b"leave\n"
#: a shell waits, since it is small; Python is started when there is something to do
WAIT = 'read -r word || exec "$@"'
DOWN = "import sys; from isthmus.lab.spaces import take_down; take_down(sys.argv[1])"
PACKAGES = Path(__file__).parents[2]


def hold(name: str) -> socket:
    """The lock on a lab's name; the kernel drops it when all its holders have ended."""
    lock = socket(AF_UNIX)
    try:
        # A name that is no file: it is gone with the socket.
        lock.bind(f"\0isthmus-lab-{name}")
    except OSError:
        lock.close()
        raise LabError(f"the lab {name!r} belongs to a process that runs") from None
    return lock


def start(name: str, lock: socket) -> subprocess.Popen[bytes]:
    """Start the keeper of a lab."""
    found = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(PACKAGES), *([found] if found else [])])
    return subprocess.Popen(
        ["sh", "-c", WAIT, "sh", sys.executable, "-c", DOWN, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": path},
        pass_fds=[lock.fileno()],
        start_new_session=True,
    )
