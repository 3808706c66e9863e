"""Inside a group: every algorithm gives what the native call gives, in every form."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from mpi4py import MPI

import isthmus
from groups import same, values
from inside import SIZES, Case, comms
from isthmus.distributions import DISTRIBUTIONS, counts
from isthmus.schedules import registry
from sampling import LONG, some
from support import (
    agree,
    has_persistent_collectives,
    without_persistent_collectives,
)

pytestmark = pytest.mark.mpi(*SIZES)

ALGORITHMS = [a.name for a in registry.algorithms("allgatherv")]
OPTIONS = ["circulant(n=3)", "blocked_ring(size=400)"]
NAMES = ["auto", *ALGORITHMS, *OPTIONS]


@cache
def places_own_block():
    """Whether the MPI library puts the one block of an Iallgatherv where it belongs;
    MPICH 4.0 does not."""
    recv = np.zeros(2)
    MPI.COMM_SELF.Iallgatherv(np.ones(1), [recv, ([1], [1]), MPI.DOUBLE]).Wait()
    return recv.tolist() == [0, 1]


def works(name, p):
    """Whether an algorithm is made for p ranks."""
    if name == "library" and p == 1 and not places_own_block():
        return False
    return name == "auto" or registry.resolve("allgatherv", name)[0].needs(p)


def call(comm, form, send, recv, name):
    """Run one call in one form."""
    if form == "blocking":
        comm.Allgatherv(send, recv, algorithm=name)
    elif form == "nonblocking":
        comm.Iallgatherv(send, recv, algorithm=name).Wait()
    else:
        request = comm.Allgatherv_init(send, recv, algorithm=name)
        for _ in range(2):
            request.Start()
            request.Wait()
        request.Free()


def check(comm, case, form, name, in_place):
    """One call puts the data where they belong; ask all ranks at once, later."""
    send, recv, room = case.arguments(in_place)
    call(comm, form, send, recv, name)
    ok = same(room, case.wanted)
    return None if ok else f"{name}, {form}, {case.counts}: {room!r}"


def first(found):
    return next((x for x in found if x), "")


@pytest.mark.mpi(8, *[17] * LONG)
@pytest.mark.parametrize("name", NAMES)
def test_every_distribution(comm, name):
    for group in comms(comm):
        found = []
        kinds = product(DISTRIBUTIONS if works(name, group.size) else (), (False, True))
        for kind, in_place in some(kinds, 6, NAMES.index(name) + group.size):
            case = Case(group, counts(kind, group.size, 720), gap=len(kind) % 2)
            found.append(check(group, case, "blocking", name, in_place))
        agree(comm, not any(found), first(found))


@pytest.mark.parametrize("form", ["nonblocking", "persistent"])
@pytest.mark.parametrize("name", NAMES)
def test_every_form(comm, name, form):
    if (form, name) == ("persistent", "library") and not has_persistent_collectives():
        pytest.skip("this MPI library has no persistent collectives")
    for group in comms(comm):
        found = []
        kinds = ("spike-middle", "half") if works(name, group.size) else ()
        cases = product(kinds, (False, True))
        for kind, in_place in some(cases, 3, NAMES.index(name) + group.size):
            case = Case(group, counts(kind, group.size, 720), gap=2, backwards=True)
            found.append(check(group, case, form, name, in_place))
        agree(comm, not any(found), first(found))


@pytest.mark.parametrize("m", [3, 720, 90000])
def test_a_library_without_persistent_collectives(comm, monkeypatch, m):
    """Every choice then has requests of ours; only what the library is asked for by
    name has none."""
    without_persistent_collectives(monkeypatch)
    for group in (group.Dup() for group in comms(comm)):
        found = []
        for kind in ("regular", "half"):
            case = Case(group, counts(kind, group.size, m))
            for in_place in (False, True):
                found.append(check(group, case, "persistent", "auto", in_place))
            for name in ("native", "library"):
                with pytest.raises(NotImplementedError, match="Allgatherv_init"):
                    check(group, case, "persistent", name, in_place)
        agree(comm, not any(found), first(found))
        group.Free()


@pytest.mark.parametrize("name", NAMES)
def test_equal_blocks(comm, name):
    for group in comms(comm):
        found = []
        sizes = (0, 5, 200) if works(name, group.size) else ()
        for k in some(sizes, 2, NAMES.index(name) + group.size):
            wanted = np.concatenate([values(i, k) for i in range(group.size)])
            send, recv = values(group.rank, k), np.empty(k * group.size)
            group.Allgather(send, recv, algorithm=name)
            found.append(None if same(recv, wanted) else f"{name}, {k}")
            room = np.zeros(k * group.size)
            room[k * group.rank : k * (group.rank + 1)] = send
            group.Allgather(MPI.IN_PLACE, room, algorithm=name)
            found.append(None if same(room, wanted) else f"{name}, {k}, in place")
        agree(comm, not any(found), first(found))


@pytest.mark.parametrize("name", NAMES)
def test_equal_blocks_lie_elsewhere_on_each_rank(comm, name):
    """All must take the same call of the library, whatever the places are."""
    for group in comms(comm):
        found = []
        if works(name, group.size):
            gap, backwards = group.rank % 3, group.rank % 2 == 1
            case = Case(group, [6] * group.size, gap=gap, backwards=backwards)
            found = [
                check(group, case, "blocking", name, in_place=bool(group.rank % 4))
                for _ in range(4)
            ]
        agree(comm, not any(found), first(found))


@pytest.mark.mpi(8, *[17] * LONG)
@pytest.mark.parametrize("name", NAMES)
def test_different_types_of_the_same_data(comm, name):
    """Open MPI 5.0.11 chooses by the local send type, and so hangs."""
    hundred = MPI.BYTE.Create_contiguous(100).Commit()
    apart = MPI.BYTE.Create_vector(100, 1, 2).Commit()
    for group in comms(comm):
        p, r = group.size, group.rank
        mine = values(r, 100, "u1")
        spread = np.zeros(200, "u1")
        spread[::2] = mine
        sends = [mine, 1, hundred], [mine, 100, MPI.BYTE], [spread, 1, apart]
        wanted = np.concatenate([values(i, 100, "u1") for i in range(p)])
        recv, wide = np.zeros(100 * p, "u1"), np.zeros(201 * p, "u1")
        into = [recv, [1] * p, hundred] if r % 2 else [recv, [100] * p, MPI.BYTE]
        if works(name, p):
            group.Allgatherv(sends[r % 3], into, algorithm=name)
            group.Allgatherv(sends[(r + 1) % 3], [wide, [1] * p, apart], algorithm=name)
            found = [wide[199 * i : 199 * i + 200 : 2] for i in range(p)]
            right = same(recv, wanted) and same(np.concatenate(found), wanted)
        agree(comm, not works(name, p) or right, name)
    hundred.Free()
    apart.Free()


CASES = st.tuples(
    st.sampled_from(NAMES),
    st.lists(st.one_of(st.just(0), st.integers(0, 300)), min_size=17, max_size=17),
    st.integers(0, 3),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["i1", "f8", "i4"]),
)


@settings(max_examples=40 if LONG else 20)
@given(drawn=CASES)
def test_any_counts_and_gaps(comm, drawn):
    name, sizes, gap, backwards, in_place, dtype = drawn
    group = kept(comm)
    if not works(name, group.size):
        name = "auto"
    case = Case(group, sizes[: group.size], gap, backwards, dtype)
    send, recv, room = case.arguments(in_place)
    group.Allgatherv(send, recv, algorithm=name)
    agree(comm, same(room, case.wanted), f"{name}: {room!r} is not {case.wanted!r}")


_kept = {}


def kept(comm):
    """One communicator for all examples."""
    if not _kept:
        _kept["comm"] = isthmus.Intracomm(comm.Dup())
    return _kept["comm"]


def test_changing_buffers_sizes_and_algorithms(comm):
    """Plans of some calls are kept, of others not, differently on every rank."""
    group = kept(comm)
    rng, mine = np.random.default_rng(5), np.random.default_rng(comm.rank)
    pool = [np.empty(9000) for _ in range(3)]
    names = [name for name in NAMES if works(name, group.size)]
    for turn in range(80 if LONG else 40):
        sizes = (rng.integers(0, 40, group.size) * rng.integers(0, 2)).tolist()
        name = names[int(rng.integers(len(names)))]
        total = sum(sizes)
        recv = np.empty(total) if mine.integers(2) else pool[mine.integers(3)][:total]
        send = values(comm.rank + turn, sizes[comm.rank])
        group.Allgatherv(send, [recv, sizes], algorithm=name)
        parts = [values(i + turn, n) for i, n in enumerate(sizes)]
        agree(comm, same(recv, np.concatenate(parts)), f"turn {turn}, {name}")


def test_large_enough_to_be_measured_for(comm):
    """Sizes for which auto weighs its algorithms against what messages cost here."""
    for group in comms(comm):
        for kind in DISTRIBUTIONS:
            case = Case(group, counts(kind, group.size, 1 << 17))
            wrong = check(group, case, "blocking", "auto", False)
            agree(comm, wrong is None, wrong or "")
