"""The name of a collective as people read it.

A name begins with the groups that a collective is of, and goes on with MPI's name of
the operation in lower case: "allgatherv" is inside one group, "inter_allgatherv"
between two, "multi_allgatherv" among several.
"""

from __future__ import annotations

_BETWEEN_PREFIX, _SEVERAL_PREFIX = "inter_", "multi_"


def number_of_groups(collective: str) -> int:
    """The groups of a collective: 1, 2, or 3 for several."""
    if collective.startswith(_BETWEEN_PREFIX):
        return 2
    return 3 if collective.startswith(_SEVERAL_PREFIX) else 1


def mpi_name(collective: str) -> str:
    """MPI's name of a collective, in lower case."""
    return collective.removeprefix(_BETWEEN_PREFIX).removeprefix(_SEVERAL_PREFIX)


#: by the number of groups
WHERE = {1: "inside one group", 2: "between two groups", 3: "among several groups"}


def described(collective: str) -> str:
    """A collective in words: "allgather between two groups"."""
    return f"{mpi_name(collective)} {WHERE[number_of_groups(collective)]}"
