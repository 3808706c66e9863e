"""Parts of mpi4py's own suite on our communicators; `make test-mpi4py` runs all of it.

Each of them with some of the suite's element types for every kind of array, others for
each kind: all of them take minutes.
"""

from __future__ import annotations

import pytest

from launcher.mpirun import obstacle
from mpi4py_suite import TYPE_STRIDE, NoSourcesError, faults, sources
from sampling import LONG
from support import has_persistent_collectives, once, once_too


@pytest.fixture(scope="session")
def suite(pytestconfig):
    """The folder of mpi4py's tests, kept for all MPI libraries."""
    if obstacle():
        pytest.skip(obstacle())
    try:
        return sources(pytestconfig.cache.mkdir("mpi4py-source"))
    except NoSourcesError as error:
        pytest.skip(str(error))


#: number of ranks, algorithms, test files, how many tests there are at least, and
#: methods that they call
CASES = [
    pytest.param(3, {"ISTHMUS_ALLGATHER": "auto"}, ["inter"], 75, marks=once),
    pytest.param(
        4, {"ISTHMUS_ALLGATHER": "balanced"}, ["inter"], 75, marks=pytest.mark.long
    ),
    pytest.param(1, {}, ["cco_.*buf.py", "cco_.*vec.py", "comm"], 400, marks=once_too),
    pytest.param(2, {}, ["cco_buf.py", "cco_obj.py"], 90, marks=once),
    pytest.param(
        2,
        {"ISTHMUS_INTRA_ALLGATHER": "circulant"},
        ["cco_pr_vec"],
        60,
        marks=pytest.mark.long,
    ),
]
CALLED = {
    "inter": {"Allgather", "Allgatherv", "Bcast", "Alltoallw"},
    "cco_buf.py": {"Allgather", "Bcast"},
    "cco_.*vec.py": {"Allgatherv", "Iallgatherv"},
    "cco_.*buf.py": {"Allgather", "Iallreduce", "Bcast"},
    "cco_obj.py": {"allgather"},
    "cco_pr_vec": {"Allgatherv_init"} if has_persistent_collectives() else set(),
}


@pytest.mark.parametrize(("size", "variables", "files", "least"), CASES)
def test_a_view_passes_what_a_communicator_passes(suite, size, variables, files, least):
    sampled = {} if LONG else {TYPE_STRIDE: "3"}
    wrong, outcome = faults(suite, size, files, {**variables, **sampled})
    assert not wrong
    assert len(outcome.passed) >= least
    assert {*outcome.calls} >= set().union(*(CALLED.get(x, set()) for x in files))
