"""Every algorithm gives exactly what the native call gives, in every form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from mpi4py import MPI

from groups import NAMES, SHAPES, STAGES, expected, pair, pairs, same, values
from sampling import LONG, some
from support import agree

pytestmark = pytest.mark.mpi(2, 5, 8)
#: for what takes longer, and hardly depends on it
FEWER = (2, 5, 8) if LONG else (5,)


def forms(inter, send, recv, v, name):
    """Run one call in each form; yield the form's name when its data must be there."""
    letter = "v" if v else ""
    getattr(inter, f"Allgather{letter}")(send, recv, algorithm=name)
    yield "blocking"
    getattr(inter, f"Allgather{letter}")(send, recv, algorithm=name)
    yield "blocking again"
    if "library" in name:
        return
    getattr(inter, f"Iallgather{letter}")(send, recv, algorithm=name).Wait()
    yield "nonblocking"
    request = getattr(inter, f"Allgather{letter}_init")(send, recv, algorithm=name)
    for turn in range(3):
        request.Start()
        request.Wait()
        yield f"persistent, turn {turn}"
    request.Free()


def check(groups, send, recv, buffer, wanted, v, name):
    """All forms of a call put the wanted data into the buffer."""
    ok, note = True, ""
    buffer.view("u1")[:] = 0xEE
    for form in forms(groups.ours, send, recv, v, name):
        if not same(buffer, wanted):
            ok, note = False, f"{name} {form}: {buffer!r} is not {wanted!r}"
        buffer.view("u1")[:] = 0xEE
    agree(groups.world, ok, note)


def turn(name, groups):
    """Which cases an algorithm gets: others than the next one, and in other groups."""
    return (NAMES + STAGES).index(name) + groups.p


@pytest.mark.parametrize("name", NAMES + STAGES)
def test_regular(comm, name):
    for groups in pairs(comm, turn=(NAMES + STAGES).index(name)):
        low = comm.rank < groups.p
        cases = ((1, 1), (5, 3), (0, 4), (1000, 30), (0, 0))
        for ka, kb in some(cases, 3 if comm.size < 8 else 5, turn(name, groups)):
            mine, theirs = (ka, kb) if low else (kb, ka)
            counts = [ka] * groups.p + [kb] * (comm.size - groups.p)
            send = values(comm.rank, mine)
            recv = np.empty(theirs * len(groups.there))
            native = np.empty_like(recv)
            groups.native.Allgather(send, native)
            agree(comm, same(native, expected(groups, counts)), "native differs")
            check(groups, send, recv, recv, native, False, name)


def kinds(n):
    """Counts of every kind for n ranks."""
    return {
        "equal": [4] * n,
        "with zeros": [(3 * i) % 5 for i in range(n)],
        "one giant": [0] * (n - 1) + [3001],
        "the first giant": [2000] + [1] * (n - 1),
        "empty": [0] * n,
    }


@pytest.mark.parametrize("name", NAMES + STAGES)
def test_irregular(comm, name):
    for groups in pairs(comm, turn=(NAMES + STAGES).index(name)):
        cases = kinds(comm.size).values()
        for counts in some(cases, 3 if comm.size < 8 else 5, turn(name, groups)):
            rc = [counts[i] for i in groups.there]
            send = values(comm.rank, counts[comm.rank], "i4")
            recv = np.empty(sum(rc), "i4")
            native = np.empty_like(recv)
            groups.native.Allgatherv(send, [native, rc])
            check(groups, send, [recv, rc], recv, native, True, name)


@pytest.mark.mpi(*FEWER)
@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "f4", "i8", "f8", "c16", "?"])
def test_element_types(comm, dtype):
    for shape, groups in enumerate(pairs(comm)):
        counts = [3 + i for i in range(comm.size)]
        rc = [counts[i] for i in groups.there]
        for name in some(("auto", "balanced", "merged"), 2, shape):
            send = values(comm.rank, counts[comm.rank], dtype)
            recv = np.empty(sum(rc), dtype)
            wanted = expected(groups, counts, dtype)
            check(groups, send, [recv, rc], recv, wanted, True, name)


CASES = st.tuples(
    st.sampled_from(NAMES + STAGES),
    st.lists(st.one_of(st.just(0), st.integers(0, 300)), min_size=8, max_size=8),
    st.lists(st.integers(0, 3), min_size=8, max_size=8),
    st.booleans(),
    st.sampled_from(["i1", "f8", "i4"]),
)


@pytest.mark.mpi(5, *[8] * LONG)
@settings(max_examples=60 if LONG else 25)
@given(case=CASES)
def test_any_counts_and_gaps(comm, case):
    """Random counts, gaps between the blocks, the order of blocks turned round."""
    name, counts, gaps, backwards, dtype = case
    groups = kept(comm)
    there = list(groups.there)
    rc = [counts[i] for i in there]
    places, at = {}, 0
    for i in reversed(range(len(there))) if backwards else range(len(there)):
        at += gaps[i]
        places[i] = at
        at += rc[i]
    displs = [places[i] for i in range(len(there))]
    send = values(comm.rank, counts[comm.rank], dtype)
    recv = np.full(at + 3, 111, dtype)
    wanted = recv.copy()
    groups.native.Allgatherv(send, [wanted, (rc, displs)])
    groups.ours.Allgatherv(send, [recv, (rc, displs)], algorithm=name)
    agree(comm, same(recv, wanted), f"{name}: {recv!r} is not {wanted!r}")
    if "library" not in name:
        recv[:] = 111
        groups.ours.Iallgatherv(send, [recv, (rc, displs)], algorithm=name).Wait()
        agree(comm, same(recv, wanted), f"I {name}: {recv!r} is not {wanted!r}")


_kept = {}


def kept(comm):
    """One pair of groups for all examples."""
    if not _kept:
        _kept["pair"] = pair(comm, SHAPES[comm.size][-1][0])
    return _kept["pair"]


@pytest.mark.mpi(*FEWER)
def test_changing_buffers_sizes_and_algorithms(comm):
    """Plans of some calls are kept, of others not, differently on every rank."""
    for groups in pairs(comm):
        rng = np.random.default_rng(5)
        mine = np.random.default_rng(comm.rank)
        pool = [np.empty(4000) for _ in range(3)]
        for turn in range(150 if LONG else 60):
            k = int(rng.integers(0, 40))
            name = NAMES[int(rng.integers(len(NAMES)))]
            send = values(comm.rank + turn, k)
            size = k * len(groups.there)
            fresh = mine.integers(2)
            recv = np.empty(size) if fresh else pool[mine.integers(3)][:size]
            groups.ours.Allgather(send, recv, algorithm=name)
            parts = [values(i + turn, k) for i in groups.there]
            agree(comm, same(recv, np.concatenate(parts)), f"turn {turn}, {name}")


def test_environment(comm, monkeypatch):
    monkeypatch.setenv("ISTHMUS_ALLGATHER", "two_step")
    for groups in pairs(comm):
        send = values(comm.rank, 5)
        recv = np.empty(5 * len(groups.there))
        groups.ours.Allgather(send, recv)
        wanted = expected(groups, [5] * comm.size)
        agree(comm, same(recv, wanted))
    monkeypatch.setenv("ISTHMUS_ALLGATHER", "nonsense")
    for groups in pairs(comm):
        with pytest.raises(ValueError, match="no algorithm 'nonsense'"):
            groups.ours.Allgather(send, recv)


def test_a_view_of_a_freed_communicator_raises(comm):
    groups = pair(comm, SHAPES[comm.size][0][0])
    send, recv = np.zeros(1), np.empty(len(groups.there))
    ours = groups.ours
    ours.Allgather(send, recv)
    ours.Free()
    with pytest.raises(MPI.Exception):
        ours.Allgather(send, recv)
    groups.local.Free()


def test_plans_of_one_operation_do_not_serve_another(comm):
    """The same arrays in Allgather and Allgatherv, kept on some ranks only."""
    for groups in pairs(comm):
        n = len(groups.there)
        send, recv = values(comm.rank, 400), np.empty(400 * n)
        wanted = expected(groups, [400] * comm.size)
        for turn in range(6):
            groups.ours.Allgather(send, recv)
            agree(comm, same(recv, wanted), f"turn {turn}")
            other = recv if (comm.rank + turn) % 2 else np.empty_like(recv)
            groups.ours.Allgatherv(send, other)
            agree(comm, same(other, wanted), f"turn {turn}, v")
