"""Where trees that know unequal hosts pay in the model, against the best algorithm that
does not; without MPI.

python docs/results/unequal_model.py

A message of a fast host takes 100 µs to start and then 500 Mbit/s; some hosts, evenly
spread, take so many times as long to start one, and so many times as long for a byte. A
line has the largest gain among all sizes of data, of the better tree over the best of the
other algorithms.
"""

from __future__ import annotations

from itertools import product

from isthmus.choose.unequal_hosts import times
from isthmus.schedules.hosts import Hosts
from isthmus.schedules.registry import algorithms

ALPHA, BETA = 1e-4, 16e-9
#: hosts, and how many of them are slow
HOSTS = ((8, 2), (8, 4), (32, 2), (32, 8))
#: how slow they are: to start a message, and for a byte
SLOW = ((1, 5), (1, 25), (5, 1), (25, 1), (5, 5), (25, 25))
#: bytes of the vector, or of each block
SIZES = (8, 1 << 10, 1 << 13, 1 << 16, 1 << 18, 1 << 20)
OPERATIONS = ("Bcast", "Reduce", "Gather", "Scatter")


def gain(op: str, hosts: Hosts, nbytes: int) -> tuple[float, str, str]:
    """How many times as long the best of the others takes, its name and the tree's."""
    collective = f"inter_{op.lower()}"
    n = len(hosts.alphas)
    found = times(collective, hosts, nbytes, ALPHA / BETA, q=n - 1)
    aware = {a.name for a in algorithms(collective) if "hosts" in a.options}
    tree = min(aware, key=found.__getitem__)
    best = min(found.keys() - aware, key=found.__getitem__)
    return found[best] / found[tree], best, tree


def main() -> None:
    """Print a line for each operation, number of hosts and slowness."""
    print("| call | hosts | slow | start-up | byte | gain | bytes | best, tree |")
    print("|---" * 8 + "|")
    for op, (n, slow), (start, byte) in product(OPERATIONS, HOSTS, SLOW):
        which = {1 + k * (n - 1) // slow for k in range(slow)}
        alphas = tuple(ALPHA * (start if i in which else 1) for i in range(n))
        betas = tuple(BETA * (byte if i in which else 1) for i in range(n))
        gains = {k: gain(op, Hosts(alphas, betas), k) for k in SIZES}
        at = max(gains, key=lambda k: gains[k][0])
        most, best, tree = gains[at]
        cells = op, n, slow, start, byte, f"{most:.2f}", at, f"{best}, {tree}"
        print("|", " | ".join(map(str, cells)), "|", flush=True)


if __name__ == "__main__":
    main()
