"""Splitting real processes: equal to the MPI library's own where it can do it."""

from __future__ import annotations

import operator
import random
import time

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from isthmus.groups.split import SPLIT_ALGORITHMS
from sampling import LONG, some
from support import agree

NAMES = ["auto", *SPLIT_ALGORITHMS, "cheng2"]

#: colour and key of rank r of n
CASES = [
    (lambda r, n: r % 2, lambda r, n: -r),
    (lambda r, n: r // 2 if r % 3 else None, lambda r, n: r % 2),
    (lambda r, n: 5, lambda r, n: (7 * r) % n),
    # ties are broken by rank, for every modulus as in MPICH's own test
    (lambda r, n: r % 5, lambda r, n: r % 2),
]


def same_as_library(comm, group, color, key):
    """Whether a group is the one that MPI makes."""
    theirs = comm.Split(MPI.UNDEFINED if color is None else color, key)
    if theirs == MPI.COMM_NULL:
        return not group and group.comm == MPI.COMM_NULL
    same = (group.rank, group.size) == (theirs.rank, theirs.size)
    same &= MPI.Comm.Compare(group.comm, theirs) in (MPI.CONGRUENT, MPI.IDENT)
    members = theirs.allgather(comm.rank)
    beside = [None, *members, None][group.rank : group.rank + 3 : 2]
    theirs.Free()
    return same and [group.left, group.right] == beside


@pytest.mark.mpi(8, *[9] * LONG)
@pytest.mark.parametrize("turn", range(7))
def test_groups_are_those_of_the_library(comm, turn):
    """Among 1 to 8 processes, or 9: those of a part, and those of the rest."""
    part = comm.Split(comm.rank < turn % 5)
    color, key = CASES[turn % len(CASES)]
    c, k = (f(part.rank, part.size) for f in (color, key))
    colors = {color(r, part.size) for r in range(part.size)} - {None}
    for name in some(NAMES, 2, turn):
        group = isthmus.split(part, c, k, algorithm=name)
        same = same_as_library(part, group, c, k) and group.groups == len(colors)
        agree(part, same, f"{name} of {part.size}")
        group.free()
    part.Free()


@pytest.mark.mpi(3, 8)
def test_values_that_mpi_cannot_split_by(comm):
    r = comm.rank
    for values in (
        ["nid017260", "nid024315"],
        ["rack143-node800.cluster.example.org", "rack150-node292.cluster.example.org"],
        [b"\0", b"\0\0", b""],
        [2**70, -5, "x", (1, "a")],
        [1, "1"],
    ):
        for name in ("auto", "hash"):
            group = isthmus.split(comm, values[r % len(values)], algorithm=name)
            mine = list(range(r % len(values), comm.size, len(values)))
            agree(comm, group.allgather(r) == mine, repr(values))
    same = isthmus.split(comm, [1, 1.0, True, np.int32(1)][r % 4])
    agree(comm, same.size == comm.size)


@pytest.mark.mpi(2, 5)
def test_without_split_and_without_reorder(comm):
    r, n = comm.rank, comm.size
    turned = isthmus.split(comm, None, -r, split=False)
    agree(comm, (turned.rank, turned.size, turned.groups) == (n - 1 - r, n, 1))
    plain = isthmus.split(comm, r % 2, -r, reorder=False)
    agree(comm, plain.rank == r // 2)
    neither = isthmus.split(comm, r, -r, split=False, reorder=False)
    agree(comm, (neither.rank, neither.size) == (r, n))


@pytest.mark.mpi(*[5] * LONG, 8)
@pytest.mark.parametrize("name", ["bitonic", "hash", "radix", "auto"])
def test_splits_of_a_turned_group(comm, name):
    """lwgrp_comm_split gave wrong ranks here, or hung."""
    turned = isthmus.split(comm, 0, -comm.rank, algorithm=name)
    inner = isthmus.split(turned, comm.rank % 3, algorithm=name)
    mine = [r for r in reversed(range(comm.size)) if r % 3 == comm.rank % 3]
    agree(comm, inner.allgather(comm.rank) == mine)
    agree(comm, MPI.Comm.Compare(inner.comm, inner.comm) == MPI.IDENT)
    inner.free()


@pytest.mark.mpi(1, 3, 8)
def test_collectives_on_a_turned_subgroup(comm):
    group = isthmus.split(comm, comm.rank % 2, -comm.rank)
    members = [r for r in reversed(range(comm.size)) if r % 2 == comm.rank % 2]
    g, n = group.rank, group.size
    words = [f"<{r}>" for r in members]
    root = n - 1
    text = "".join(words)
    ok = group.allreduce(words[g], operator.add) == text
    ok &= group.scan(words[g], operator.add) == "".join(words[: g + 1])
    ok &= group.exscan(words[g], operator.add) == ("".join(words[:g]) or None)
    ok &= group.double_scan(words[g], operator.add).onward == "".join(words[g:])
    done = group.reduce(words[g], operator.add, root)
    ok &= done == (text if g == root else None)
    ok &= group.bcast(words[g], root) == words[root]
    ok &= group.gather(words[g]) == (words if g == 0 else None)
    ok &= group.scatter(words if g == root else None, root) == words[g]
    ok &= group.allgather(words[g]) == words
    group.barrier()
    agree(comm, ok)
    agree(comm, group.is_leader == (g == 0) and group.address == comm.rank)


@pytest.mark.mpi(1, 5)
def test_arrays_and_the_operators_of_mpi(comm):
    chain = isthmus.Chain.from_comm(comm)
    mine = np.arange(1000.0) * (comm.rank + 1)
    for op, function in ((MPI.SUM, np.add), (MPI.MAX, np.maximum), (MPI.PROD, None)):
        function = function or np.multiply
        want = function.reduce([np.arange(1000.0) * (i + 1) for i in range(comm.size)])
        agree(comm, np.allclose(chain.allreduce(mine, op), want))
    agree(comm, chain.allreduce(comm.rank, MPI.MAX) == comm.size - 1)
    big = np.full(1 << 20, comm.rank)
    agree(comm, (chain.bcast(big, comm.size - 1) == comm.size - 1).all())


@pytest.mark.mpi(3, 5)
def test_chains_from_ranks_and_from_values(comm):
    n, r = comm.size, comm.rank
    order = list(range(n))[:0:-1]  # all but rank 0, backwards
    chain = isthmus.Chain.from_ranks(comm, order)
    if r:
        i = order.index(r)
        left, right = ([None, *order, None][j] for j in (i, i + 2))
        again = isthmus.Chain.from_values(comm, left, right, i, n - 1)
        ok = chain.allgather(r) == again.allgather(r) == order
    else:
        ok = not chain and chain.size == 0 and chain.rank is None
    agree(comm, ok)
    made = chain.to_comm()
    agree(comm, made == MPI.COMM_NULL if r == 0 else made.allgather(r) == order)
    if r:
        made.Free()
    with pytest.raises(ValueError, match="not different ranks"):
        isthmus.Chain.from_ranks(comm, [0, 0])
    with pytest.raises(ValueError, match="on its left"):
        isthmus.Chain.from_values(comm, 0, 1, 0, 3)
    if r == 0:
        with pytest.raises(ValueError, match="not in the chain"):
            chain.barrier()


@pytest.mark.mpi(3, 5)
def test_comparisons_of_one_call(comm):
    """Lambdas, which cannot be sent."""
    r, n = comm.rank, comm.size
    ok = True
    for algorithm in ("auto", "allgather_group", "bitonic", "cheng2"):
        group = isthmus.split(
            comm,
            "aA"[r % 2],
            r,
            algorithm=algorithm,
            compare_color=lambda x, y: (
                (x.lower() > y.lower()) - (x.lower() < y.lower())
            ),
            compare_key=lambda x, y: y - x,
        )
        ok &= (group.size, group.rank, group.groups) == (n, n - 1 - r, 1)
    agree(comm, ok)


def raised(call):
    try:
        call()
    except Exception as error:
        return error
    return None


@pytest.mark.mpi(1, 2, 5)
def test_bad_input_is_refused_on_all_processes(comm):
    r, last = comm.rank, comm.size - 1
    for bad in ([1], float("nan"), object()):
        error = raised(lambda: isthmus.split(comm, bad if r == last else 1))
        own = (TypeError, ValueError) if r == last else isthmus.MismatchError
        agree(comm, isinstance(error, own) and "canonical" in str(error), str(error))
        error = raised(lambda: isthmus.rank_items(comm, [bad] if r == last else []))
        agree(comm, isinstance(error, own), str(error))
        error = raised(lambda: isthmus.hierarchy(comm, [r, bad if r == last else 2]))
        agree(comm, isinstance(error, own), str(error))
    error = raised(lambda: isthmus.hierarchy(comm, None if r == last else [1]))
    agree(comm, isinstance(error, own), str(error))
    error = raised(lambda: isthmus.split(comm, 0, algorithm="quick"))
    agree(comm, isinstance(error, ValueError) and "known: auto" in str(error))
    error = raised(lambda: isthmus.split(comm, "a", algorithm="radix"))
    agree(comm, "radix needs integers" in str(error))
    group = isthmus.split(comm, 0)  # and all goes on
    agree(comm, group.size == comm.size)
    for bad in (None, [0] * (comm.size + 1)):
        error = raised(lambda: group.scatter(bad, root=last))
        agree(comm, "needs as many values" in str(error))


@pytest.mark.mpi(2, 5)
def test_calls_that_differ_are_refused_on_all_processes(comm):
    for call in (
        lambda r: isthmus.split(comm, 0, algorithm="hash" if r else "bitonic"),
        lambda r: isthmus.split(comm, 0, reorder=r > 0),
        lambda r: isthmus.rank_items(comm, []) if r else isthmus.split(comm, 0),
        lambda r: isthmus.hierarchy(comm, [0] * (1 + r)),
    ):
        error = raised(lambda: call(comm.rank))
        agree(comm, isinstance(error, isthmus.MismatchError), repr(error))


@pytest.mark.mpi(1, 2)
def test_what_is_no_intracommunicator(comm):
    with pytest.raises(ValueError, match="COMM_NULL"):
        isthmus.split(MPI.COMM_NULL, 0)
    with pytest.raises(TypeError, match="intracommunicator is needed"):
        isthmus.split(None, 0)
    if comm.size > 1:
        local = comm.Split(comm.rank)
        inter = local.Create_intercomm(0, comm, 1 - comm.rank)
        with pytest.raises(TypeError, match="intracommunicator is needed"):
            isthmus.split(inter, 0)
        inter.Free()
        local.Free()


@pytest.mark.mpi(5)
def test_wildcard_receives_of_the_user_see_nothing_of_ours(comm):
    """LWGRP and DTCMP send with tag 0 on the user's communicator."""
    box = np.zeros(1)
    pending = comm.Irecv(box, MPI.ANY_SOURCE, MPI.ANY_TAG)
    for name in NAMES:
        isthmus.split(comm, comm.rank % 2, -comm.rank, algorithm=name)
    comm.Send(np.array([8.0]), (comm.rank + 1) % comm.size, 1)
    pending.Wait()
    agree(comm, box[0] == 8)


@pytest.mark.mpi(5, *[8] * LONG)
def test_calls_that_follow_each_other_do_not_mix(comm):
    """Ranks come late, each at another time; posted values are for anybody."""
    rng, n, wrong = random.Random(comm.rank), comm.size, []
    for i in range(12):
        time.sleep(rng.uniform(0, 0.003))
        name = ["bitonic", "cheng2", "gather_scatter"][i % 3]
        color = (comm.rank + i) % 3
        group = isthmus.split(comm, color, -comm.rank, algorithm=name)
        mine = [r for r in reversed(range(n)) if (r + i) % 3 == color]
        at = mine.index(comm.rank)
        beside = [None, *mine, None][at : at + 3 : 2]
        if (group.rank, [group.left, group.right]) != (at, beside):
            wrong.append(i)
    agree(comm, not wrong, str(wrong))


@pytest.mark.mpi(1, *[3] * LONG, 5)
def test_items(comm):
    names = [[], ["b", "a", "b"], ["a"], [], ["c", None]][comm.rank]
    places = isthmus.rank_items(comm, names)
    lists = comm.allgather(names)
    line = [x for mine in lists for x in mine if x is not None]
    before = [x for mine in lists[: comm.rank] for x in mine]
    ok = True
    for i, (name, place) in enumerate(zip(names, places, strict=True)):
        if name is None:
            ok &= place is None
        else:
            ids = sorted(set(line))
            rank = (before + names[:i]).count(name)
            want = (ids.index(name), line.count(name), rank)
            ok &= (place.id, place.size, place.rank) == want
    agree(comm, ok)


@pytest.mark.mpi(1, *[5] * LONG, 8)
def test_a_hierarchy_and_its_leaders(comm):
    def where(r):
        return [f"rack {r // 4}", f"node {r // 2}", r % 2]

    mine = where(comm.rank)
    levels = isthmus.hierarchy(comm, mine)
    everyone = [where(r) for r in range(comm.size)]
    ok = len(levels) == 3
    for depth, level in enumerate(levels):
        together = [
            r for r, x in enumerate(everyone) if x[: depth + 1] == mine[: depth + 1]
        ]
        ok &= level.group.allgather(comm.rank) == together
        firsts = {}
        for r, x in enumerate(everyone):
            if x[:depth] == mine[:depth]:
                firsts.setdefault(tuple(x[: depth + 1]), r)
        ok &= bool(level.leaders) == (comm.rank in firsts.values())
        if level.leaders:
            ok &= level.leaders.allgather(comm.rank) == list(firsts.values())
    agree(comm, ok)
    value = f"from {comm.rank}"
    for level in levels:
        if level.leaders:
            value = level.leaders.bcast(value)
    value = levels[-1].group.bcast(value)
    agree(comm, value == "from 0")


@pytest.mark.mpi(3)
def test_a_hierarchy_that_leaves_some_out(comm):
    levels = isthmus.hierarchy(comm, ["rack", None if comm.rank == 1 else "node", 0])
    agree(comm, levels[0].group.size == 3)
    sizes = [level.group.size for level in levels[1:]]
    agree(comm, sizes == ([0, 0] if comm.rank == 1 else [2, 2]))


@pytest.mark.mpi(1, 2, 3, *[5] * LONG, 8)
def test_coupled_components(comm):
    names = ["ocean", "atmosphere", "ice"]
    mine = names[comm.rank % 3]
    inside, others = isthmus.couple(comm, mine)
    members = {
        x: list(range(i, comm.size, 3)) for i, x in enumerate(names) if i < comm.size
    }
    ok = isinstance(inside, isthmus.Intracomm)
    ok &= inside.allgather(comm.rank) == members[mine]
    ok &= set(others) == set(members) - {mine}
    agree(comm, ok)
    for low, high in (names[:2], names[::2], names[1:]):
        if mine in (low, high) and low in members and high in members:
            other = others[high if mine == low else low]
            there = members[high if mine == low else low]
            got = np.empty(len(there))
            other.Allgather(np.array([float(comm.rank)]), got)
            ok &= isinstance(other, isthmus.Intercomm) and got.tolist() == there
    agree(comm, ok)
    for other in others.values():
        other.Free()
    inside.Free()


@pytest.mark.mpi(3)
def test_a_process_that_is_coupled_to_none(comm):
    inside, others = isthmus.couple(comm, None if comm.rank == 0 else f"c{comm.rank}")
    if comm.rank == 0:
        ok = inside == MPI.COMM_NULL and others == {}
    else:
        ok = inside.size == 1 and list(others) == [f"c{3 - comm.rank}"]
    agree(comm, ok)


@pytest.mark.mpi(2)
def test_freeing_a_communicator_frees_what_is_kept_for_it(comm):
    """More often than there are communicators: MPICH has 2048, each round makes two."""
    for _ in range(1100):
        own = comm.Dup()
        isthmus.Chain.from_comm(own)
        own.Free()
    group = isthmus.split(comm, 0)
    for _ in range(20):
        assert group.comm.size == comm.size
        group.free()
    agree(comm, group.comm != MPI.COMM_NULL)
    group.free()
