"""The name of a collective for people, and the names of its forms.

MPI has one name, `Allgather`, whether the communicator has one group or two. Here these
are different problems with different algorithms, so the registry has a form for each:
"allgatherv" inside one group, where blocks of one size are a case of any sizes,
"inter_allgather" between two, "multi_allgatherv" among several. People say the MPI name
and the groups; everything below takes the form.
"""

from __future__ import annotations

from ..spelling import unknown

_FORMS_OF_ONE_NAME = (
    "bcast",
    "reduce",
    "gatherv",
    "scatterv",
    "allgatherv",
    "allreduce",
    "reduce_scatter",
    "alltoall",
    "alltoallv",
    "barrier",
)
#: collectives with blocks of one size, which inside one group are those of any sizes
_FORMS_WITH_EQUAL_BLOCKS = ("gather", "scatter", "allgather", "reduce_scatter_block")
#: the form inside one group, between two, among several, of each collective
FORMS_INSIDE = {name: name for name in _FORMS_OF_ONE_NAME} | {
    "gather": "gatherv",
    "scatter": "scatterv",
    "allgather": "allgatherv",
    "reduce_scatter_block": "reduce_scatter",
}
FORMS_BETWEEN = {
    name: f"inter_{name}" for name in (*_FORMS_OF_ONE_NAME, *_FORMS_WITH_EQUAL_BLOCKS)
}
FORMS_SEVERAL = {
    "allgather": "multi_allgatherv",
    "allgatherv": "multi_allgatherv",
    "alltoall": "multi_alltoallv",
    "alltoallv": "multi_alltoallv",
}
#: by the number of groups, where 3 stands for more
FORMS = {1: FORMS_INSIDE, 2: FORMS_BETWEEN, 3: FORMS_SEVERAL}
WHERE = {
    1: "inside one group",
    2: "between two groups",
    3: "among several groups",
}


def number_of_groups(form: str) -> int:
    """The groups of a form: 1, 2, or 3 for several."""
    return 2 if form.startswith("inter_") else 3 if form.startswith("multi_") else 1


def mpi_name(form: str) -> str:
    """The MPI name of a form, in lower case."""
    return form.removeprefix("inter_").removeprefix("multi_")


def described(form: str) -> str:
    """A form as people read it: "allgather between two groups"."""
    return f"{mpi_name(form)} {WHERE[number_of_groups(form)]}"


def form(collective: str, groups: int) -> str:
    """The form of a collective for a number of groups."""
    if collective not in FORMS_BETWEEN:
        raise ValueError(unknown("collective", collective, sorted(FORMS_BETWEEN)))
    forms = FORMS[min(groups, 3)]
    if collective not in forms:
        raise ValueError(
            f"there is no {collective} {WHERE[min(groups, 3)]}; "
            f"known: {', '.join(sorted(forms))}"
        )
    return forms[collective]
