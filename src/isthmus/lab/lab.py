"""A lab from up to down: `with Lab(hosts=8, rate="100mbit") as net: net.run(...)`."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from os import getpid
from socket import socket

from . import keeper, links, spaces
from .links import Progress
from .names import MAX_HOSTS, check_name, read_rate
from .network import Network
from .tools import LabError, missing

_numbers = count()


def state(name: str) -> str:
    """Whether a lab is "kept" until down, "held" by a process, or left by a "dead" one.

    A lab under construction is held.
    """
    if spaces.is_permanent(name):
        return "kept"
    try:
        keeper.hold(name).close()
    except LabError:
        return "held"
    return "dead"


def sweep() -> list[str]:
    """Take down labs whose processes have died, and return their names."""
    dead = [name for name in spaces.everything() if state(name) == "dead"]
    return [name for name in dead if down(name)]


def down(name: str) -> bool:
    """Take down a lab that no process holds; return whether the lab was up."""
    with keeper.hold(check_name(name)):
        return spaces.take_down(name)


class Lab:
    """Hosts with shaped links, up for the time of a `with`.

    The lab is taken down at the end, also when the process is interrupted or killed.
    `slow` gives single hosts another rate.
    """

    def __init__(
        self,
        hosts: int,
        rate: str = "50mbit",
        *,
        slow: Mapping[int, str] | None = None,
        name: str | None = None,
        progress: Progress = lambda done: None,
    ) -> None:
        if not 1 <= hosts <= MAX_HOSTS:
            raise ValueError(f"{hosts} hosts: a lab has 1 to {MAX_HOSTS}")
        self.name = check_name(name or f"lab{getpid()}x{next(_numbers)}")
        self.rates = [read_rate(rate)] * hosts
        for host, other in (slow or {}).items():
            if not 0 <= host < hosts:
                raise ValueError(f"no host {host}: they are 0 to {hosts - 1}")
            self.rates[host] = read_rate(other)
        self.progress = progress
        self._lock: socket | None = None
        self._keeper: subprocess.Popen[bytes] | None = None

    def up(self) -> Network:
        """Make the lab; in the end a keeper takes the lab down, whatever happens until
        then."""
        if lack := missing():
            raise LabError(lack)
        sweep()
        self._lock = keeper.hold(self.name)
        try:
            if self.name in spaces.everything():
                raise LabError(f"there is a lab {self.name!r}; first take it down")
            self._keeper = keeper.start(self.name, self._lock)
            links.build(self.name, self.rates, self.progress)
        except BaseException:
            self.down()
            raise
        return Network(self.name, len(self.rates))

    def keep(self) -> None:
        """Let the lab stay after the end of the process, until `isthmus lab down`."""
        spaces.keep(self.name)
        self._release(keeper.LEAVE_LAB_ALONE)

    def down(self) -> None:
        """Take the lab down; after an interrupt, the keeper does so."""
        word = b""
        try:
            if self._keeper is not None:
                spaces.take_down(self.name)
            word = keeper.LEAVE_LAB_ALONE
        finally:
            self._release(word)

    def _release(self, word: bytes) -> None:
        """Let the keeper end, and then the name be free."""
        if self._keeper is not None:
            with suppress(BrokenPipeError):
                self._keeper.communicate(word)
            self._keeper = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Network:
        return self.up()

    def __exit__(self, *error: object) -> None:
        self.down()
