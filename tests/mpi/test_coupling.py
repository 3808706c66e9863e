"""Several groups: everyone gets what all groups but its own have."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from mpi4py import MPI

import isthmus
from sampling import LONG, some
from several import OPERATIONS, call, names, numbered, others
from support import TURN, agree, forms
from things import equal, thing

pytestmark = pytest.mark.mpi(3, 8)

#: the group of each rank
SHAPES = {
    3: [(0, 1, 2), (0, 0, 1), (0, 0, 0)],
    8: [(0, 0, 1, 1, 1, 2, 2, 2), (2, 1, 0, 1, 2, 0, 2, 1), (0, 1, 2, 3, 4, 1, 1, 1)],
}
KINDS = {
    "equal": lambda i: 4,
    "zeros": lambda i: 3 * i % 5,
    "giant": lambda i: 1201 if i == 1 else 1,
    "long": lambda i: 997,
    "empty": lambda i: 0,
}


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


@pytest.mark.parametrize("op", OPERATIONS)
def test_every_algorithm_in_every_form(comm, couplings, op):
    for coupling, shape in couplings:
        faults = []
        cases = [call(comm, shape, op, count) for count in KINDS.values()]
        for turn, name in enumerate(names(op), TURN):
            for case in some(cases, 3, turn):
                case.clear()
                for form in forms(coupling, op, case.args, name):
                    faults += (
                        [f"{op} {name} {form}: {case.fault}"] if case.fault else []
                    )
                    case.clear()
        agree(comm, not faults, "; ".join(faults[:1]))


@settings(max_examples=100 if LONG else 10)
@given(st.data(), st.sampled_from(OPERATIONS), st.integers(0, 2))
def test_any_sizes_against_numpy(comm, couplings, draw, op, which):
    coupling, shape = couplings[which]
    count = st.one_of(st.just(0), st.integers(0, 9), st.integers(0, 300))
    counts = draw.draw(st.lists(count, min_size=24, max_size=24))
    name = draw.draw(st.sampled_from(names(op)))
    case = call(comm, shape, op, lambda i: counts[i % 24])
    getattr(coupling, op)(*case.args, algorithm=name)
    agree(comm, not case.fault, f"{op} {name}: {case.fault}")


def test_any_object(comm, couplings):
    for coupling, shape in couplings:
        got = coupling.allgather(thing(comm.rank))
        agree(comm, equal(got, [thing(i) for i in others(shape, comm.rank)]))


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
        case = call(comm, [r % 3 for r in range(comm.size)], "Allgather", lambda i: 3)
        coupling.Allgather(*case.args)
        agree(comm, not case.fault)
        coupling.Free()
