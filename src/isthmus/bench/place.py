"""Where to measure, and the physical limit there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..lab import Lab, LabError, Network, find, missing
from ..lab.job import placed
from ..lab.links import BURST_BYTES
from ..lab.names import show_rate
from ..launch.mpiexec import own_rank
from .job import Case, must_move
from .launch import Here, Start

#: plain sockets get 0.955 of a link's rate; with less the machine was too busy to tell
LEAST = 0.94
#: so many times what a link lets through at once must be moved
BURSTS = 4


@dataclass(frozen=True)
class Place:
    """How ranks are started; on a lab also what its links let through.

    `rates`: bytes a second that TCP gets on the link of each host.
    """

    start: Start = Here
    rates: tuple[float, ...] = ()
    words: str = ""
    warning: str = ""
    hosts: int = 1
    #: ranks of a host; else as few as will do
    per_host: int | None = None

    @property
    def on_lab(self) -> bool:
        """Whether every byte goes over a link."""
        return bool(self.words)

    def limit(self, case: Case) -> float | None:
        """Seconds that no algorithm can beat; None where that is not known.

        What a link lets through at once after a pause takes no time; where most of the
        bytes are of that kind, there is no limit to speak of.
        """
        if not self.rates:
            return None
        ranks = placed(len(case.a) + len(case.b), self.hosts, self.per_host)
        hosts = [h for h, n in enumerate(ranks) for _ in range(n)]
        passed = must_move(case, hosts)
        if passed.most < BURSTS * BURST_BYTES:
            return None  # it hardly matters
        rates = np.array(self.rates[: len(ranks)])
        each = (np.maximum(passed.enters, passed.leaves) - BURST_BYTES) / rates
        all_together = (passed.total - BURST_BYTES * len(rates)) / rates.sum()
        return float(max(each.max(), all_together))


def _place(net: Network, per_host: int | None = None) -> Place:
    """A lab, after its links have been measured."""

    def start(command: Sequence[str], n: int, output: Any) -> Any:
        return net.start(command, n, per_host=per_host, stdout=output, stderr=output)

    nominal = [link.rate for _, link in sorted(net.links().items())]
    words = f"lab of {net.hosts} hosts at {show_rate(max(nominal))}"
    if net.hosts < 2:
        return Place(start, words=words, hosts=net.hosts, per_host=per_host)
    limits = net.measure()
    part = 8 * limits.rate / min(nominal[:2])
    warning = ""
    if part < LEAST:
        warning = (
            f"TCP gets only {part:.3f} of the links' rate, where 0.955 is usual: the "
            "machine is busy; multiples of the limit are too small, so there are none"
        )
    words += f", {part:.3f} of it for TCP, alpha {limits.alpha * 1e6:.0f} µs"
    rates = () if warning else tuple(part * rate / 8 for rate in nominal)
    return Place(start, rates, words, warning, net.hosts, per_host)


@contextmanager
def place(
    hosts: int | None, rate: str, name: str | None, per_host: int | None = None
) -> Iterator[Place]:
    """A new lab, one that is up, or this host."""
    if hosts is not None and name is not None:
        raise ValueError("--lab puts up a lab, --lab-name uses one: give one of them")
    on_lab = hosts is not None or name is not None
    if per_host is not None and not on_lab:
        raise ValueError("--per-host goes with --lab or --lab-name")
    if on_lab and own_rank() is not None:
        raise ValueError("a lab starts its own processes: call it without mpiexec")
    if on_lab and (lack := missing()):
        raise LabError(lack)
    if name is not None:
        yield _place(find(name), per_host)
    elif hosts is not None:
        with Lab(hosts, rate) as net:
            yield _place(net, per_host)
    else:
        yield Place()
