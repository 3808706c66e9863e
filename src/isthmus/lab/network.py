"""A lab that is up: running programs, changing links, measuring."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..spelling import unknown
from . import limits, links, names, spaces
from .job import Job, placed
from .tools import LabError


@dataclass(frozen=True)
class Network:
    """The hosts of a lab that is up, numbered from 0."""

    name: str
    hosts: int

    def start(
        self,
        command: Sequence[str],
        n: int | None = None,
        *,
        per_host: int | None = None,
        **popen: Any,
    ) -> Job:
        """Start an MPI program on n ranks; `popen` goes to `subprocess.Popen`.

        Host 0 has the first `per_host` ranks, host 1 the next, and so on; by default
        each host has as few ranks as are needed.
        """
        ranks = placed(n or self.hosts * (per_host or 1), self.hosts, per_host)
        return Job(self.name, command, ranks, **popen)

    def run(
        self,
        command: Sequence[str],
        n: int | None = None,
        *,
        per_host: int | None = None,
        timeout: float | None = None,
        **popen: Any,
    ) -> subprocess.CompletedProcess[Any]:
        """Run an MPI program as `start` does, until its end or its time limit."""
        with self.start(command, n, per_host=per_host, **popen) as job:
            output, errors = job.wait(timeout)
            status = job.process.returncode
        return subprocess.CompletedProcess(list(command), status, output, errors)

    def set_rate(self, host: int, rate: str) -> None:
        """Give a host's link another rate."""
        links.set_rate(self.name, self._known(host), names.read_rate(rate))

    def cut(self, host: int) -> None:
        """Pull a host's cable, so that no packet reaches or leaves the host."""
        links.set_joined(self.name, self._known(host), False)

    def join(self, host: int) -> None:
        """Put the cable back."""
        links.set_joined(self.name, self._known(host), True)

    def links(self) -> dict[int, links.Link]:
        """The rate of each host's link, and whether the link is joined."""
        return links.links(self.name)

    def measure(self, sender: int = 0, receiver: int = 1) -> limits.Limits:
        """The limits of TCP between two hosts, which no MPI program can beat."""
        if self._known(sender) == self._known(receiver):
            raise ValueError(f"host {sender} has no link to itself")
        ends = [self.links()[host] for host in (sender, receiver)]
        if not all(end.joined for end in ends):
            raise LabError(f"host {sender} or {receiver} is cut off")
        slower = min(end.rate for end in ends)
        return limits.measure(self.name, sender, receiver, slower)

    def _known(self, host: int) -> int:
        """A host's number, or an error if the lab has no host of the number."""
        if not 0 <= host < self.hosts:
            raise ValueError(f"no host {host}: they are 0 to {self.hosts - 1}")
        return host


def find(name: str) -> Network:
    """The lab of a name."""
    if name not in spaces.everything():
        running = spaces.everything()
        if running:
            raise LabError(unknown("lab", name, running))
        raise LabError(f"there is no lab {name!r}: isthmus lab up makes one")
    return Network(name, len(links.links(name)))
