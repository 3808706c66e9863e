"""Names of algorithms with options and stages, and the groups they are not made for."""

from __future__ import annotations

from isthmus.collectives.collective import INSIDE, SEVERAL, Collective
from isthmus.schedules.registry import find, resolve

#: values of options that cut blocks or choose a way
OPTIONS: dict[str, tuple[float | str, ...]] = {
    "size": (1, 3, 7, 100),
    "n": (1, 2, 3, 7),
    "parts": (1, 3, 5),
    "window": (1, 3, 32),
    "radix": (2, 3, 4, 7, 32),
    "aggregation": (1, 2, 5),
    "startup": (0.1, 1.0, 4.0, 100.0),
    "lanes": (1, 2, 3),
    "rule": ("sqrt",),
}


def is_declined(record: Collective, name: str, ranks: tuple[int, ...]) -> bool:
    """Whether an algorithm or its stage is not made for groups of so many ranks."""
    entry, _ = resolve(record.name, name)
    stage = name.partition("+")[2]
    if not stage:
        return record.groups == INSIDE and not entry.needs(*ranks)
    needs = find("allgatherv", stage).needs
    is_merged = entry.name == "merged"  # whose stage is of all ranks, into two buffers
    if stage == "library":
        return is_merged or record.groups == SEVERAL
    return not all(map(needs, (sum(ranks),) if is_merged else ranks))
