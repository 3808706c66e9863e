"""The times of algorithms on hosts that are known to be unequal.

No closed form holds on unequal hosts, so the algorithms without node memory are
simulated, from values that all ranks know.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..collectives.records import COLLECTIVES, schedule
from ..cost.machine import Unequal
from ..schedules.hosts import Hosts
from ..schedules.registry import Algorithm, algorithms, with_startup


def times(
    collective: str,
    hosts: Hosts,
    nbytes: int,
    startup_bytes: float,
    commutative: bool = True,
    **sizes: int,
) -> dict[str, float]:
    """Seconds of each algorithm for the bytes of a vector or of a rank's block.

    Bytes are rounded up to a power of two, since a simulation takes long and its result
    is cached. `startup_bytes` pass in the time of a start-up.
    """
    rounded = 1 << (nbytes - 1).bit_length() if nbytes else 0
    return {
        entry.name: _time(collective, entry, hosts, rounded, startup_bytes, **sizes)
        for entry in algorithms(collective)
        if not entry.node_memory and (commutative or not entry.commutative)
    }


@lru_cache(maxsize=256)
def _time(
    collective: str,
    entry: Algorithm,
    hosts: Hosts,
    nbytes: int,
    startup_bytes: float,
    **sizes: int,
) -> float:
    example = COLLECTIVES[collective].example
    all_sizes: dict[str, Any] = {**sizes, "m" if "m" in example else "k": nbytes}
    if "counts" in example:  # of p ranks
        all_sizes = {"counts": [nbytes] * sizes["p"], "root": sizes["root"]}
    name = with_startup(collective, entry.name, startup_bytes)
    rounds = schedule(collective, name, hosts=hosts, **all_sizes)
    return float(rounds.simulate(Unequal(hosts)).time)
