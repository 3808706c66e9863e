"""A process that outlives the maker of a lab, and then takes the lab down.

The keeper waits for the end of its input, which comes however the maker ends. The
keeper has a session of its own, since otherwise Ctrl-C would end the keeper too, and
holds the lock on the lab's name.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from socket import AF_UNIX, socket

from .tools import LabError

#: the word of a maker whose lab is down already, or is to stay
LEAVE_LAB_ALONE = b"leave\n"
#: a shell waits, since it is small; Python is started when the lab must be taken down
WAIT_FOR_MAKER = 'read -r word || exec "$@"'
TAKE_DOWN = (
    "import sys; from isthmus.lab.spaces import take_down; take_down(sys.argv[1])"
)
PACKAGES_FOLDER = Path(__file__).parents[2]


def hold(name: str) -> socket:
    """The lock on a lab's name, which the kernel drops when all holders have ended."""
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
    user_path = os.environ.get("PYTHONPATH")
    python_path = os.pathsep.join(
        [str(PACKAGES_FOLDER), *([user_path] if user_path else [])]
    )
    return subprocess.Popen(
        ["sh", "-c", WAIT_FOR_MAKER, "sh", sys.executable, "-c", TAKE_DOWN, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": python_path},
        pass_fds=[lock.fileno()],
        start_new_session=True,
    )
