"""The table of docs/several_groups.md: algorithms for several groups against the bound,
simulated at 2 µs and 12 GB/s. `python docs/several_groups.py`"""

import numpy as np

import isthmus
from isthmus.choose.choice import choice
from isthmus.collectives.records import COLLECTIVES
from isthmus.cost.machine import AlphaBeta

MODEL = AlphaBeta(2e-6, 1 / 12e9)
K = 1 << 20
random = np.random.default_rng(1)
CASES = {
    "3 groups of 8, 1 MiB each": [[K] * 8] * 3,
    "4 groups of 8, 1 MiB each": [[K] * 8] * 4,
    "6 groups of 16, 1 MiB each": [[K] * 16] * 6,
    "groups of 2, 8 and 16, 1 MiB each": [[K] * 2, [K] * 8, [K] * 16],
    "groups of 32, 4, 4 and 1, 1 MiB each": [[K] * 32, [K] * 4, [K] * 4, [K]],
    "groups of 5, 9 and 12, up to 4 MiB": [
        random.integers(0, 4 * K, n).tolist() for n in (5, 9, 12)
    ],
    "4 groups of 8, one block of 64 MiB": [
        [64 * K if (i, j) == (1, 3) else K // 8 for j in range(8)] for i in range(4)
    ],
    "3 groups of 8, two blocks of 64 MiB in each": [[64 * K] * 2 + [K] * 6] * 3,
    "4 groups of 8, 1 KiB each": [[1 << 10] * 8] * 4,
}
#: an intragroup stage, where there is one, is the better of two
NAMES = {
    "g − 1 calls": ("pairs+bruck", "pairs+ring"),
    "one Allgatherv": ("merged+bruck", "merged+circulant"),
    "`balanced`": ("balanced+bruck", "balanced+ring"),
    "`ring`": (f"ring(startup={MODEL.alpha / MODEL.beta})",),
    "`direct`": ("direct",),
}


def seconds(name, groups):
    """What an algorithm takes."""
    made = isthmus.schedule("multi_allgatherv", name, groups=groups)
    return made.simulate(MODEL).time


def chosen(groups):
    """What `auto` takes."""
    record = COLLECTIVES["multi_allgatherv"]
    return choice(record, {"groups": groups}, MODEL).name


print("| | bound |", " | ".join(NAMES), "| `auto` takes |")
print("|---" * (len(NAMES) + 3) + "|")
for label, groups in CASES.items():
    totals = [sum(counts) for counts in groups]
    most = max(sum(totals) - min(totals), *(max(counts) for counts in groups))
    bound = MODEL.alpha + most * MODEL.beta
    times = (min(seconds(x, groups) for x in names) for names in NAMES.values())
    row = " | ".join(f"{t / bound:.2f}" for t in times)
    print(f"| {label} | {1e6 * bound:.0f} µs | {row} | `{chosen(groups)}` |")
