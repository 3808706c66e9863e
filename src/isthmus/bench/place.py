"""The place of a measurement: this host or a lab, and the physical limit.

A time says little by itself. On a lab the rates of the links are known, and so is the
least time in which the bytes of a case can cross the links.
"""

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
from .job import BenchCase, must_move
from .launch import Here, Start

#: plain sockets get 0.955 of a link's rate; a smaller share means a machine too busy to
#: measure limits
MIN_TCP_SHARE = 0.94
#: a limit is only known for more bytes than so many bursts that a link lets through
MIN_BURSTS = 4


@dataclass(frozen=True)
class Place:
    """The way to start ranks, and on a lab the rates of its links.

    `rates` are the bytes a second of TCP on the link of each host. `words` name the
    lab; they are empty on this host.
    """

    start: Start = Here
    rates: tuple[float, ...] = ()
    words: str = ""
    warning: str = ""
    hosts: int = 1
    #: ranks of a host; with None as few as possible
    per_host: int | None = None

    @property
    def on_lab(self) -> bool:
        """Whether the ranks run on hosts of a lab."""
        return bool(self.words)

    def limit(self, case: BenchCase) -> float | None:
        """The seconds that no algorithm can beat; None if not known.

        The burst that a link lets through after a pause takes no time. Where bursts
        carry most of the bytes, the rates limit nothing.
        """
        if not self.rates:
            return None
        ranks = placed(len(case.a) + len(case.b), self.hosts, self.per_host)
        hosts = [h for h, n in enumerate(ranks) for _ in range(n)]
        moved = must_move(case, hosts)
        if moved.most < MIN_BURSTS * BURST_BYTES:
            return None
        rates = np.array(self.rates[: len(ranks)])
        by_host = (np.maximum(moved.enters, moved.leaves) - BURST_BYTES) / rates
        all_hosts = (moved.total - BURST_BYTES * len(rates)) / rates.sum()
        return float(max(by_host.max(), all_hosts))


def _on_lab(net: Network, per_host: int | None = None) -> Place:
    """The place on a lab, whose links are measured first."""

    def start(command: Sequence[str], n: int, output: Any) -> Any:
        return net.start(command, n, per_host=per_host, stdout=output, stderr=output)

    nominal = [link.rate for _, link in sorted(net.links().items())]
    words = f"lab of {net.hosts} hosts at {show_rate(max(nominal))}"
    if net.hosts < 2:
        return Place(start, words=words, hosts=net.hosts, per_host=per_host)
    limits = net.measure()
    share = 8 * limits.rate / min(nominal[:2])
    warning = ""
    if share < MIN_TCP_SHARE:
        warning = (
            f"TCP gets only {share:.3f} of the links' rate, where 0.955 is usual: the "
            "machine is busy; multiples of the limit are too small, so there are none"
        )
    words += f", {share:.3f} of it for TCP, alpha {limits.alpha * 1e6:.0f} µs"
    rates = () if warning else tuple(share * rate / 8 for rate in nominal)
    return Place(start, rates, words, warning, net.hosts, per_host)


@contextmanager
def place(
    hosts: int | None, rate: str, name: str | None, per_host: int | None = None
) -> Iterator[Place]:
    """A new lab of `hosts`, the lab of a `name`, or this host."""
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
        yield _on_lab(find(name), per_host)
    elif hosts is not None:
        with Lab(hosts, rate) as net:
            yield _on_lab(net, per_host)
    else:
        yield Place()
