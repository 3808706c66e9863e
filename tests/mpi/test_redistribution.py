"""Redistributions on real processes, against numpy."""

from __future__ import annotations

import time
from random import Random

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
import standin
from groups import pair
from isthmus import Layout, Redistribution, Replicate, Shard
from isthmus.mpi.buffers.devices.arrays import ALL_STREAMS
from isthmus.mpi.plan.cache import MOST_PLANS
from redistributions import Case, case, field, moved, part, sources
from sampling import LONG
from support import FORMS, agree, once, raised_alike

CASES = 400 if LONG else 20
TYPES = ("f8", "f4", "i2", "c16", "S3")


def expected(found: Case, whole: np.ndarray, combine) -> np.ndarray:
    """The global array after elements of several sources are combined."""
    return whole * sources(found.sources) if combine == MPI.SUM else whole


class Groups:
    """Both ways between the groups of a launch, or inside the one group."""

    def __init__(self, world: MPI.Intracomm, p: int) -> None:
        self.inside = p == world.size
        self.groups = None if self.inside else pair(world, p)
        self.comm = world if self.groups is None else self.groups.native
        self.p, self.q = p, p if self.inside else world.size - p
        self.is_a = world.rank < p
        self.rank = world.rank if self.is_a else world.rank - p

    def free(self) -> None:
        if self.groups is not None:
            self.groups.free()


def check(world, groups: Groups, rng: Random, own: Random, make=field) -> bool:
    """One random redistribution, of arrays that are made of data; whether this rank got
    what it must."""
    there = case(rng, groups.p, groups.q)
    dtype = rng.choice(TYPES)
    combine = rng.choice((None, None, MPI.SUM, MPI.MAX, "mean"))
    if dtype in ("S3", "c16") or (combine == "mean" and dtype == "i2"):
        combine = None
    n, form = rng.choice((1, 1, 2)), rng.choice(FORMS)
    size = int(np.prod(there.shape))
    whole = (np.arange(size) % 1000 + 1).astype(dtype).reshape(there.shape)
    source = there.sources[groups.rank] if groups.inside or groups.is_a else None
    target = there.targets[groups.rank] if groups.inside or not groups.is_a else None
    move = Redistribution(groups.comm, source, target, combine)
    out = [make(own, part(source, groups.rank, whole)) for _ in range(n * bool(source))]
    wanted = expected(there, whole, combine).astype(dtype)
    into = []
    if target is not None:
        wanted = part(target, groups.rank, wanted)
        into = [make(own, np.zeros_like(wanted)) for _ in range(n)]
    args = [x if n > 1 else x[0] for x in (out, into) if x]
    moved(move, form, *args)
    move.Free()
    got = [x if isinstance(x, np.ndarray) else x.get() for x in into]
    return all((x == wanted).all() for x in got)


@pytest.mark.mpi(1, 2, 3, 5, 8, timeout=120)
def test_all_layouts_in_all_forms_are_as_numpy_has_them(comm):
    every: dict[int, Groups] = {}
    for seed in range(CASES):
        rng, own = Random(seed), Random(1000 * seed + comm.rank)
        p = rng.randint(1, comm.size)
        if p not in every:
            every[p] = Groups(comm, p)
        agree(comm, check(comm, every[p], rng, own), f"seed {seed}")
    for groups in every.values():
        groups.free()


@pytest.mark.mpi(3)
def test_an_mpi_library_that_takes_device_memory_gets_what_is_packed_there(
    comm, monkeypatch
):
    """Without a copy to the host, but where data are combined, or some fields of a rank
    are on the host."""
    on, every = standin.direct(monkeypatch), [Groups(comm, p + 1) for p in range(3)]
    staged, packed = 0, standin.done[0]
    for seed in range(3 * CASES):
        rng, own = Random(seed), Random(1000 * seed + comm.rank)
        host = seed % 5 == 4 and comm.rank == seed % 3

        def make(own, data, host=host, mixed=seed % 7 == 6):
            if host or (mixed and own.random() < 0.5):
                return field(own, data)
            return standin.field(own, data, standin.Plain, standin.LibraryArray)

        begun = on.begun
        right = check(comm, every[seed % 3], rng, own, make)
        staged += on.begun > begun
        agree(comm, right, f"seed {seed}")
    agree(comm, ALL_STREAMS in on.after_streams)  # before persistent requests start
    packed = standin.done[0] - packed
    agree(comm, packed > CASES and 0 < staged < 2 * CASES, f"{packed} {staged}")
    for groups in every:
        groups.free()


@pytest.mark.mpi(12 if LONG else 5, timeout=600)
def test_some_ranks_of_the_world_in_two_groups(comm):
    """Up to 6 + 6 of them, with `--long`."""
    for seed in range(CASES // 4):
        rng, own = Random(seed), Random(1000 * seed + comm.rank)
        p, q = (rng.randint(1, comm.size // 2) for _ in "ab")
        some = comm.Split(0 if comm.rank < p + q else 1)
        if comm.rank < p + q:
            groups = Groups(some, p)
            agree(some, check(some, groups, rng, own), f"seed {seed}")
            groups.free()
        some.Free()


@pytest.mark.mpi(5)
def test_both_directions_at_once(comm):
    groups = Groups(comm, 2)
    whole = np.arange(35.0).reshape(5, 7)
    rows, columns = Layout.blocks((5, 7), (2, 1)), Layout.blocks((5, 7), (1, 3))
    mine = rows if groups.is_a else columns
    move = Redistribution(groups.comm, source=mine, target=mine)
    sign = 1 if groups.is_a else -1
    out = sign * part(mine, groups.rank, whole)
    for form in FORMS:
        into = np.zeros_like(out)
        moved(move, form, out, into)
        agree(comm, (into == -out).all(), form)
    groups.free()


@pytest.mark.mpi(3)
def test_fields_of_several_types_travel_together(comm):
    rows = Layout.blocks((6, 4), (comm.size, 1))
    columns = Layout.blocks((6, 4), (1, comm.size))
    move = Redistribution(comm, rows, columns)
    whole = np.arange(24).reshape(6, 4)
    kinds = ("f8", "i2", [("a", "i4"), ("b", "f8")])
    every = [np.zeros((6, 4), kind) for kind in kinds]
    every[0][...], every[1][...], every[2]["b"] = whole, -whole, whole
    into = [np.zeros(columns.local_shape(comm.rank), kind) for kind in kinds]
    move([part(rows, comm.rank, x) for x in every], into)
    right = [
        (x == part(columns, comm.rank, y)).all()
        for x, y in zip(into, every, strict=True)
    ]
    agree(comm, all(right), str(right))


@pytest.mark.mpi(5)
def test_replicas_get_what_crossed_once(comm):
    groups = Groups(comm, 1)
    whole = np.arange(40.0).reshape(8, 5)
    layouts = (
        Layout.blocks((8, 5), (1, 1)),
        Layout.sharded((8, 5), (2, 2), [Shard(0), Replicate()]),
    )
    role = {"source": layouts[0]} if groups.is_a else {"target": layouts[1]}
    move = Redistribution(groups.comm, **role)
    crossing = sum(m.total for m in move.exchange.sends)
    agree(comm, crossing == (40 if groups.is_a else 0))
    mine = part(layouts[not groups.is_a], groups.rank, whole)
    array = mine if groups.is_a else np.zeros_like(mine)
    move(array)
    agree(comm, (array == mine).all())
    groups.free()


@pytest.mark.mpi(5)
def test_long_replicas_on_nodes(comm, monkeypatch):
    """Rank 0 has the source, and shares a node with a replica."""
    monkeypatch.setenv("ISTHMUS_PER_NODE", "2")
    groups, n = Groups(comm, 1), 1 << 17
    role = {"source": Layout.blocks(n, (1,))}
    if not groups.is_a:
        role = {"target": Layout.sharded(n, (4,), [Replicate()])}
    move = Redistribution(groups.comm, **role)
    for form in FORMS:
        array = np.arange(float(n)) if groups.is_a else np.zeros(n)
        moved(move, form, array)
        agree(comm, (array == np.arange(n)).all(), form)
    groups.free()


@pytest.mark.mpi(2)
def test_an_operator_of_the_user_combines_in_rank_order(comm):
    def first(x, y, _):
        y_, x_ = np.frombuffer(y, "f8"), np.frombuffer(x, "f8")
        y_[:] = x_

    op = MPI.Op.Create(first, commute=False)
    every = Layout.slices((4,), np.s_[:])
    move = Redistribution(comm, every, every, combine=op)
    into = np.zeros(4)
    move(np.full(4, comm.rank + 1.0), into)
    agree(comm, (into == 1).all(), str(into))
    op.Free()


@pytest.mark.mpi(5)
def test_bad_input_is_the_same_error_everywhere(comm):
    groups = Groups(comm, 2)
    a, rank, inter = groups.is_a, groups.rank, groups.comm

    def make(one, other, **more):
        role = {"source": one} if a else {"target": other}
        return lambda: Redistribution(inter, **role, **more)

    whole, rows = Layout.blocks((6,), (1,)), Layout.blocks((6, 1), (2, 1))
    third = Layout.indices(6, range(2 * rank, 2 * rank + 2))
    hole = Layout.slices((6,), np.s_[0:2] if rank == 0 else np.s_[3:6])
    own = Layout.blocks((6,), (2 - rank,)) if a else whole
    bad = {
        "element 2, which group B rank 1 wants": make(hole, third),
        r"the global shapes differ: (6,), (6, 1)": make(whole, rows),
        "a layout of 4 ranks for a group of 2": make(Layout.blocks(6, (4,)), whole),
        "but group A rank 0 gives source": make(own, whole),
        "group A gives combine MPI.SUM, group B None": make(
            whole, whole, combine=MPI.SUM if a else None
        ),
        "group A gives a source, group B no target": lambda: Redistribution(
            inter, source=whole
        ),
        "must be a Layout": make(7 if rank == 1 else whole, whole),
        "is twice in the source": make(
            Layout.indices(6, [0, 1, 2, 3, 4, 5, 5]), third, combine=MPI.SUM
        ),
    }
    for words, call in bad.items():
        text = raised_alike(comm, call)
        agree(comm, words in text, text)

    # and of fields; after each of these errors the next call is right
    move = make(whole, third)()
    good = np.zeros((6 if rank == 0 else 0,) if a else (2,))
    fields = {
        "has shape (7,)": np.zeros(7) if a and rank == 0 else good,
        "moves float32, but group A rank 0 moves float64": good
        if a
        else good.astype("f4"),
        "must be a numpy array": good if a else [[1.0, 2.0]],
        "Python objects": good if a else good.astype(object),
    }
    for words, array in fields.items():
        text = raised_alike(comm, lambda: move(array))
        agree(comm, words in text, text)
    if a:
        good[:] = np.arange(len(good))
    move(good)
    agree(comm, a or (good == [2 * rank, 2 * rank + 1]).all(), str(good))
    both = Layout.blocks(6, (comm.size,))
    inside = Redistribution(comm, both, both)
    array = np.zeros(both.local_shape(comm.rank))
    text = raised_alike(comm, lambda: inside(array, array))
    agree(comm, "overlap" in text or not array.size, text)
    groups.free()


@pytest.mark.mpi(8, timeout=120)
def test_many_points_are_set_up_quickly(comm):
    n = 1_000_000 if LONG else 100_000
    shuffled = np.random.default_rng(1).permutation(n)
    low, high = n * comm.rank // comm.size, n * (comm.rank + 1) // comm.size
    source = Layout.indices(n, shuffled[low:high])
    target = Layout.blocks(n, (comm.size,))
    comm.Barrier()
    begin = time.perf_counter()
    move = Redistribution(comm, source, target)
    took = comm.allreduce(time.perf_counter() - begin, MPI.MAX)
    into = np.zeros(target.local_shape(comm.rank), np.int64)
    move(shuffled[low:high].copy(), into)
    agree(comm, (into == np.arange(low, high)).all())
    agree(comm, took < 20, f"{took:.1f} s")  # 0.5 s on two idle cores


@once
@pytest.mark.mpi(3)
def test_a_redistribution_can_be_drawn(comm):
    pytest.importorskip("matplotlib")
    groups = Groups(comm, 1)
    whole = Layout.blocks((6, 4), (1, 1))
    half = Layout.slices((6, 4), np.s_[3 * groups.rank : 3 * groups.rank + 3])
    rows = Layout.blocks((6, 4), (2, 1))
    for target in (half, rows):
        role = {"source": whole} if groups.is_a else {"target": target}
        words = [
            axes.get_xlabel()
            for axes in Redistribution(groups.comm, **role).draw().axes
        ]
        agree(comm, "2 messages, 24 elements" in words, str(words))
    move = Redistribution(comm, Layout.blocks((6, 4), (3, 1)), rows)
    agree(comm, len(move.draw().axes) == 3)
    groups.free()


@pytest.mark.mpi(2)
def test_plans_are_found_by_values_and_given_back(comm):
    """One for arrays of the same shape and strides, wherever they lie."""
    layout = Layout.blocks((4, 4), (2, 1)), Layout.blocks((4, 4), (1, 2))
    move = Redistribution(isthmus.Intracomm(comm), *layout)
    out, into = np.ones((2, 4)), np.zeros((4, 2))
    plans = move.context.plans
    before = len(plans)
    for _ in range(20):
        move(out.copy(), np.zeros((4, 2)))
    agree(comm, len(plans) == before + 1)
    for k in range(300):
        move(out, np.zeros((4, 2 * k + 2))[:, :2])
    agree(comm, len(plans) <= MOST_PLANS)
    other = into.view(np.recarray)
    for value in (2, 3):  # a class of arrays that is not numpy's own
        out[:] = value
        move(out, other)
        agree(comm, (into == value).all(), str(into))
    out[:] = 1
    move.Free()
    agree(comm, len(plans) <= before)
    move(out, into)
    agree(comm, (into == 1).all())


@pytest.mark.mpi(2)
def test_a_freed_communicator_is_refused(comm):
    own = isthmus.Intracomm(comm.Dup())
    rows = Layout.blocks((4, 4), (2, 1))
    move = Redistribution(own, rows, rows)
    move(np.ones((2, 4)), np.zeros((2, 4)))
    own.Free()
    try:
        move(np.ones((2, 4)), np.zeros((2, 4)))
        words = ""
    except RuntimeError as error:
        words = str(error)
    agree(comm, "freed" in words, words)
