"""Broadcast inside a group: from every root, of any data, by every algorithm."""

from __future__ import annotations

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from groups import same, values
from isthmus.schedules import registry
from support import agree

pytestmark = pytest.mark.mpi(1, 5)

NAMES = [a.name for a in registry.algorithms("bcast")]
NAMES = ["auto", "library", "native", *NAMES]


@pytest.fixture
def group(comm):
    own = comm.Dup()
    yield isthmus.Intracomm(own)
    own.Free()


@pytest.mark.parametrize("name", [*NAMES, "circulant(n=7)", "chain(n=3)"])
def test_everyone_has_the_roots_data(group, name):
    found = []
    for root in sorted({0, group.size // 2, group.size - 1}):
        for n in (0, 1, 5, 1000):
            data = values(root, n, "i4")
            for turn in range(2):  # the second time by the plan that was kept
                room = data.copy() if group.rank == root else np.full(n, -1, "i4")
                group.Bcast(room, root, algorithm=name)
                found.append(None if same(room, data) else f"{root}, {n}, {turn}")
            group.Bcast([room, MPI.INT], root=root, algorithm=name)
    agree(group, not any(found), str([x for x in found if x]))


@pytest.mark.parametrize("name", ["auto", "library", "circulant(n=5)"])
def test_types_that_differ_but_match(group, name):
    """On some ranks with gaps, on some as one element."""
    root, data = group.size - 1, values(7, 60, "i4")
    apart = MPI.INT.Create_vector(60, 1, 2).Commit()
    whole = MPI.INT.Create_contiguous(60).Commit()
    for shift in range(3):
        kind = (group.rank + shift) % 3
        room = np.full(120, -1, "i4")
        if group.rank == root:
            room[: 120 if kind == 0 else 60 : 2 if kind == 0 else 1] = data
        spec = [[room, 1, apart], [room, 1, whole], [room, 60, MPI.INT]][kind]
        group.Bcast(spec, root, algorithm=name)
        found = room[::2].copy() if kind == 0 else room[:60]
        untouched = room[1::2] if kind == 0 else room[60:]
        right = same(found, data) and (untouched == -1).all()
        agree(group, bool(right), f"{name}, {shift}")
    apart.Free()
    whole.Free()


def test_roots_may_change_from_call_to_call(group):
    room = np.empty(300)
    for turn in range(40):
        root = turn * 3 % group.size
        if group.rank == root:
            room[:] = turn
        group.Bcast(room, root, algorithm=NAMES[turn % len(NAMES)])
        assert (room == turn).all()
    agree(group, True)


def test_wrong_calls(group):
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    for error, text, args in (
        (ValueError, "there are ranks 0 to", (np.zeros(3), group.size)),
        (ValueError, "there are ranks 0 to", (np.zeros(3), -1)),
        (ValueError, "needs bytes", ([np.zeros(3), 4, MPI.DOUBLE], 0)),
        (TypeError, "expecting buffer", (None, 0)),
    ):
        with pytest.raises(error, match=text):
            group.Bcast(*args)
    with pytest.raises(ValueError, match="no algorithm 'x'"):
        group.Bcast(np.zeros(3), 0, algorithm="x")
    if group.size > 1:
        root = (group.rank + 1) % group.size
        with pytest.raises(BufferError, match="read-only"):
            group.Bcast(frozen, root)
    agree(group, True)


def test_the_checked_mode_compares_roots_and_sizes(comm, monkeypatch):
    monkeypatch.setenv("ISTHMUS_CHECK", "1")
    own = comm.Dup()
    group = isthmus.Intracomm(own)
    last = comm.size - 1
    if comm.size > 1:
        with pytest.raises(isthmus.MismatchError, match="calls with root"):
            group.Bcast(np.zeros(3), 1 if comm.rank == last else 0)
        with pytest.raises(isthmus.MismatchError, match=f"rank {last} expects 16"):
            group.Bcast(np.zeros(2 if comm.rank == last else 3), 0)
    room = np.full(3, float(comm.rank))
    group.Bcast(room, last)
    agree(comm, bool((room == last).all()))
    own.Free()


def test_a_root_may_send_what_it_cannot_write(comm):
    """Bytes at the root, also by algorithms that bring the root its own data back."""
    ours, right = isthmus.Intracomm(comm.Dup()), True
    sent = bytes(range(200)) * 3
    for name in NAMES:
        for root in (0, comm.size - 1):
            got = bytearray(len(sent))
            ours.Bcast(sent if comm.rank == root else got, root, algorithm=name)
            right &= comm.rank == root or got == sent
    agree(comm, right)
    ours.Free()
