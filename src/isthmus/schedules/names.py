"""The parts of a collective's name: the number of groups, and MPI's operation.

"allgatherv" is inside one group, "inter_allgatherv" between two, "multi_allgatherv"
among several. Each has a name of its own, because the algorithms differ.
"""

from __future__ import annotations

_BETWEEN_PREFIX, _SEVERAL_PREFIX = "inter_", "multi_"


def number_of_groups(collective: str) -> int:
    """The number of groups of a collective: 1, 2, or 3 for several."""
    if collective.startswith(_BETWEEN_PREFIX):
        return 2
    return 3 if collective.startswith(_SEVERAL_PREFIX) else 1


def mpi_name(collective: str) -> str:
    """MPI's name of a collective, in lower case."""
    return collective.removeprefix(_BETWEEN_PREFIX).removeprefix(_SEVERAL_PREFIX)


#: where a collective acts, in words, by the number of groups
WHERE = {1: "inside one group", 2: "between two groups", 3: "among several groups"}


def described(collective: str) -> str:
    """A collective in words: "allgather between two groups"."""
    return f"{mpi_name(collective)} {WHERE[number_of_groups(collective)]}"
