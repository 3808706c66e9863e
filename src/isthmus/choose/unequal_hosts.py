"""Which algorithm, by default, where hosts are known to be unequal.

No closed form holds there: all that need no node memory are simulated. Only from values
that every rank knows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..collectives.records import COLLECTIVES, schedule
from ..schedules.hosts import Hosts
from ..schedules.registry import Algorithm, algorithms


def times(
    collective: str,
    hosts: Hosts,
    nbytes: int,
    startup: float,
    commutative: bool = True,
    **sizes: int,
) -> dict[str, float]:
    """Seconds of each algorithm for so many bytes, a vector's or a rank's, rounded up
    to a power of two, since to simulate takes its time; `startup` is in bytes."""
    rounded = 1 << (nbytes - 1).bit_length() if nbytes else 0
    return {
        entry.name: _time(collective, entry, hosts, rounded, startup, **sizes)
        for entry in algorithms(collective)
        if not entry.node_memory and (commutative or not entry.commutative)
    }


@lru_cache(maxsize=256)
def _time(
    collective: str,
    entry: Algorithm,
    hosts: Hosts,
    nbytes: int,
    startup: float,
    **sizes: int,
) -> float:
    from ..cost.machine import Unequal

    example = COLLECTIVES[collective].example
    every: dict[str, Any] = {**sizes, "m" if "m" in example else "k": nbytes}
    if "counts" in example:  # of p ranks
        every = {"counts": [nbytes] * sizes["p"], "root": sizes["root"]}
    told = f"(startup={max(startup, 1.0)})" if "startup" in entry.options else ""
    made = schedule(collective, entry.name + told, hosts=hosts, **every)
    return float(made.simulate(Unequal(hosts)).time)
