"""Several groups: everyone gets what all groups but its own have."""

from __future__ import annotations

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from sampling import LONG
from support import agree
from things import equal, python_object

pytestmark = pytest.mark.mpi(3, 5)

#: the group of each rank
SHAPES = {
    3: [(0, 1, 2), (0, 0, 1), (0, 0, 0)],
    5: [(0, 0, 1, 1, 2), (2, 1, 0, 1, 2), (0, 1, 2, 3, 1)],
}


def numbered(shape):
    """The ranks of each group, in the order of the groups' first ranks."""
    found = {}
    for rank, name in enumerate(shape):
        found.setdefault(name, []).append(rank)
    return list(found.values())


def others(shape, rank):
    return [r for ranks in numbered(shape) if rank not in ranks for r in ranks]


@pytest.fixture(scope="module")
def couplings(comm):
    """The groups of each shape; their communicators serve all tests of a launch."""
    made = [
        (isthmus.couple(comm, f"c{shape[comm.rank]}"), shape) for shape in shapes(comm)
    ]
    yield made
    for coupling, _ in made:
        coupling.Free()


def shapes(comm):
    return SHAPES[comm.size]


def test_any_object(comm, couplings):
    for coupling, shape in couplings:
        got = coupling.allgather(python_object(comm.rank))
        agree(comm, equal(got, [python_object(i) for i in others(shape, comm.rank)]))


def test_who_is_there(comm, couplings):
    for coupling, shape in couplings:
        ranks = numbered(shape)
        wanted = {f"c{shape[found[0]]}": len(found) for found in ranks}
        inside, others_ = coupling
        ok = coupling.sizes == wanted and list(coupling.sizes) == list(wanted)
        ok &= inside is coupling.comm and others_ is coupling.others
        agree(comm, ok and inside.size == wanted[f"c{shape[comm.rank]}"])


def test_some_take_no_part(comm):
    mine = None if comm.rank == 0 else f"c{comm.rank}"
    coupling = isthmus.couple(comm, mine)
    if comm.rank:
        got = np.empty(comm.size - 2)
        coupling.Allgather(np.array([float(comm.rank)]), got)
        ok = got.tolist() == [r for r in range(1, comm.size) if r != comm.rank]
    else:
        with pytest.raises(ValueError, match="none of the groups"):
            coupling.Allgather(np.zeros(1), np.zeros(1))
        ok = coupling.comm == MPI.COMM_NULL and not coupling.sizes
    agree(comm, ok)
    coupling.Free()


def test_wrong_calls_are_refused(comm, couplings):
    coupling, shape = couplings[0]
    n = len(others(shape, comm.rank))
    for form in ("Allgather", "Iallgather", "Allgather_init"):
        with pytest.raises(ValueError, match="are for Allgatherv"):
            getattr(coupling, form)(np.zeros(1), np.zeros(2 * n))
    with pytest.raises(ValueError, match="are for Alltoallv"):
        coupling.Alltoall(np.zeros(n), np.zeros(2 * n))
    with pytest.raises(ValueError, match="no algorithm 'x'"):
        coupling.Allgather(np.zeros(1), np.zeros(n), algorithm="x")
    with pytest.raises(ValueError, match="no call of the MPI library"):
        coupling.Allgather(np.zeros(1), np.zeros(n), algorithm="native")
    got = np.empty(n)
    coupling.Allgather(np.array([float(comm.rank)]), got)
    agree(comm, got.tolist() == others(shape, comm.rank))


def test_the_checked_mode_tells_everyone(comm, monkeypatch):
    monkeypatch.setenv("ISTHMUS_CHECK", "1")
    coupling = isthmus.couple(comm, comm.rank)
    n = 5 if comm.rank == 1 else 4
    with pytest.raises(isthmus.MismatchError, match="group 1 rank 0 sends 40 bytes"):
        coupling.Allgather(np.zeros(n), np.zeros(n * (comm.size - 1)))
    coupling.Free()


def test_more_often_than_there_are_communicators(comm):
    """A coupling that is freed gives back all it made."""
    for _ in range(300 if LONG else 3):
        coupling = isthmus.couple(comm, comm.rank % 3)
        there = others([r % 3 for r in range(comm.size)], comm.rank)
        got = np.empty(len(there))
        coupling.Allgather(np.array([float(comm.rank)]), got)
        agree(comm, got.tolist() == there)
        coupling.Free()
