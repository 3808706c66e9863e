"""Twenty probes of hosts on a lab: how often they say what the hosts are.

isthmus lab up --hosts 8 --rate 50mbit
isthmus lab run -- python docs/results/probes.py "8 hosts at 50mbit"
isthmus lab set 1 --rate 5mbit; isthmus lab set 4 --rate 5mbit
isthmus lab run -- python docs/results/probes.py "hosts 1 and 4 at 5mbit" 1,4

The first argument describes the lab; the second has the slow hosts, if any; the third
may be a number of probes. A probe is right if the hosts whose bytes take over
MIN_UNEQUAL_RATIO times as long as the fastest host's are the slow ones, and hosts are
unequal only where some are slow.
"""

from __future__ import annotations

import sys
from time import perf_counter

from mpi4py import MPI

import isthmus
from isthmus.mpi.costs.tuning import library
from isthmus.schedules.hosts import MIN_UNEQUAL_RATIO

WORLD = MPI.COMM_WORLD
LAB = sys.argv[1] if len(sys.argv) > 1 else "rates unknown"
SLOW = [int(x) for x in sys.argv[2].split(",") if x] if len(sys.argv) > 2 else []
PROBES = int(sys.argv[3]) if len(sys.argv) > 3 else 20


def main() -> None:
    """Print a line with the number of right probes, and the spread of each kind."""
    ours = isthmus.Intracomm(WORLD.Dup())
    right, spreads, seconds = 0, [], []
    for _ in range(PROBES):
        WORLD.Barrier()
        begin = perf_counter()
        hosts = ours.probe_hosts()
        seconds.append(perf_counter() - begin)
        least = min(hosts.betas)
        slow = [r for r, x in enumerate(hosts.betas) if x > MIN_UNEQUAL_RATIO * least]
        right += slow == SLOW and hosts.unequal == bool(SLOW)
        equal = [r for r in range(WORLD.size) if r not in SLOW]
        spreads.append(
            [
                max(x[r] for r in equal) / min(x[r] for r in equal)
                for x in (hosts.alphas, hosts.betas)
            ]
        )
    if WORLD.rank == 0:
        of_alpha, of_beta = (max(column) for column in zip(*spreads, strict=True))
        print(
            f"{library()}, {LAB}: {right} of {PROBES} probes right; equal hosts differ "
            f"by at most {of_alpha:.2f} in start-ups, {of_beta:.2f} in bytes; the "
            f"longest probe {max(seconds):.2f} s",
            flush=True,
        )
    ours.Free()


if __name__ == "__main__":
    main()
