"""Python objects between groups."""

from __future__ import annotations

from pickle import PicklingError

import numpy as np
import pytest

from groups import FEW, NAMES, pairs
from support import agree
from things import equal, python_object

pytestmark = pytest.mark.mpi(*FEW)


@pytest.mark.parametrize("name", NAMES)
def test_any_object(comm, name):
    for groups in pairs(comm, turn=NAMES.index(name)):
        for turn in range(3):
            got = groups.ours.allgather(python_object(comm.rank + turn), algorithm=name)
            wanted = [python_object(i + turn) for i in groups.there]
            agree(comm, equal(got, wanted), f"{name}, turn {turn}")


def test_large_arrays_arrive_writable_aligned_and_uncopied(comm):
    for groups in pairs(comm):
        got = groups.ours.allgather(np.full(100_000, comm.rank, "f8"))
        for array in got:
            assert array.flags.writeable and array.ctypes.data % 8 == 0
            assert not array.flags.owndata
            array += 1
        wanted = [i + 1 for i in groups.there]
        agree(comm, [a[-1] for a in got] == wanted)


def test_what_cannot_be_pickled_raises_before_anything_is_sent(comm):
    for groups in pairs(comm):
        with pytest.raises((TypeError, AttributeError, PicklingError)):
            groups.ours.allgather(lambda: None)
        assert groups.ours.allgather(comm.rank) == list(groups.there)


def test_the_native_form(comm):
    for groups in pairs(comm):
        got = groups.ours.allgather(comm.rank, algorithm="native")
        assert got == list(groups.there)
