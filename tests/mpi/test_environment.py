"""Environment variables: read once for a communicator, the same for all its ranks."""

from __future__ import annotations

import numpy as np
import pytest

from between import Kit, call
from groups import pair
from isthmus import settings
from isthmus.collectives.records import operations
from support import FORMS, agree, done

pytestmark = pytest.mark.mpi(3)


def _variables():
    """Those that name an algorithm."""
    names = [settings.BETWEEN_PREFIX + op.upper() for op in operations(2)]
    return [*names, *[settings.INSIDE_PREFIX + op.upper() for op in operations(1)]]


@pytest.mark.parametrize("op", operations(2))
def test_a_change_after_the_first_call_has_no_effect(comm, monkeypatch, op):
    groups = pair(comm, 1)
    groups.ours.Barrier()
    for name in _variables():
        monkeypatch.setenv(name, "nonsense")
    monkeypatch.setenv("ISTHMUS_CHECK", str(int(comm.rank == 0)))
    for form in FORMS:
        case = call(Kit(groups), op, "some")
        done(groups.ours, op, form, *case.args)
        agree(comm, not case.fault, f"{form}: {case.fault}")
    groups.free()


def test_ranks_whose_environment_changed_at_different_calls_take_the_same_way(
    comm, monkeypatch
):
    groups, n = pair(comm, 1), 1 << 15
    q = len(groups.there)
    send, recv = np.full(q * n, float(comm.rank)), np.empty(q * n)
    args = [send, [n] * q], [recv, [n] * q]
    groups.ours.Alltoallv(*args)
    monkeypatch.setenv("ISTHMUS_ALLTOALLV", "paced")
    if comm.rank:  # a call that is known, and one that is not
        recv = np.empty(q * n)
        args = [send.copy(), [n] * q], [recv, [n] * q]
    groups.ours.Alltoallv(*args)
    wanted = np.repeat(np.array(groups.there, float), n)
    agree(comm, bool((recv == wanted).all()))
    groups.free()


@pytest.mark.parametrize("where", [0, 2])
def test_what_rank_0_is_asked_for_holds_for_all(comm, monkeypatch, where):
    if comm.rank == where:
        monkeypatch.setenv("ISTHMUS_ALLREDUCE", "nonsense")
        monkeypatch.setenv("ISTHMUS_CHECK", "1")
    groups = pair(comm, 1)
    send, recv = np.ones(4), np.empty(4)
    if where == 0:
        with pytest.raises(ValueError, match="nonsense"):
            groups.ours.Allreduce(send, recv)
    else:
        groups.ours.Allreduce(send, recv)
        agree(comm, bool((recv == len(groups.there)).all()))
    groups.free()
