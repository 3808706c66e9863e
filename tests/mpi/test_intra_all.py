"""Sums and exchanges inside a group, by every algorithm, in every form."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from mpi4py import MPI

import isthmus
from between import chain, in_order
from inside import SIZES, comms
from inside_calls import KINDS, OPERATIONS, SUMS, exchanges, first, names, sums
from isthmus.choose import inside as choose
from sampling import LONG, some
from support import TURN, agree, forms, without_persistent_collectives

pytestmark = pytest.mark.mpi(*SIZES)


def call(group, op, kind, in_place=False):
    make = sums if op in SUMS else exchanges
    return make(group, op, KINDS[kind], in_place=in_place)


def fault(group, op, found, name):
    """What is wrong in any form of a call, if something is."""
    case, mine = found
    in_place = case.args[0] is MPI.IN_PLACE
    spec = case.args[1]
    whole = spec[0] if isinstance(spec, list) else spec
    wrong = []
    whole[:] = mine if in_place else -1
    for form in forms(group, op, case.args, name):
        if case.fault:
            wrong.append(f"{op} {name} {form} in place {in_place}: {case.fault}")
        whole[:] = mine if in_place else -1
    return wrong


@pytest.mark.parametrize("op", OPERATIONS)
def test_every_algorithm(comm, op):
    """Each in some cases, so that there is one for every case."""
    number = OPERATIONS.index(op)
    for group in some(comms(comm), 2, number):
        wrong, places = [], (False, True)
        cases = [call(group, op, *x) for x in product(KINDS, places)]
        for turn, name in enumerate(names(op), number + TURN + group.size):
            for case in some(cases, 10, turn):
                wrong.append(fault(group, op, case, name))
        agree(comm, not any(wrong), first(wrong))


@pytest.mark.parametrize("op", OPERATIONS)
def test_as_the_native_call(comm, op):
    for group in comms(comm)[-2:]:
        wrong = []
        for kind, in_place in product(KINDS, (False, True)):
            case, _ = call(group, op, kind, in_place)
            getattr(group, op)(*case.args, algorithm="native")
            wrong.append([case.fault] if case.fault else [])
        agree(comm, not any(wrong), first(wrong))


@pytest.mark.parametrize("op", SUMS)
def test_in_the_order_of_ranks(comm, op):
    by = in_order()
    for group in comms(comm):
        wrong = []
        for turn, name in enumerate(names(op, commutative=False)):
            for kind in some(("zeros", "giant"), 2, turn):
                case = sums(group, op, KINDS[kind], by, chain)
                wrong.append(fault(group, op, case, name))
        agree(comm, not any(wrong), first(wrong))
    by.Free()


def test_an_algorithm_for_any_order_refuses_others(comm):
    by, group = in_order(), comms(comm)[-1]
    x = np.zeros(8, "i8")
    with pytest.raises(ValueError, match="not commutative"):
        group.Allreduce(x, x.copy(), by, algorithm="bruck")
    with pytest.raises(ValueError, match="not commutative"):
        group.Reduce_scatter(x, x[:1].copy(), [1] * 8, by, algorithm="circulant")
    by.Free()


def test_counts_that_only_the_own_rank_knows(comm):
    for group in comms(comm):
        (case, _), r = call(group, "Reduce_scatter", "giant"), group.rank
        send, out, _, by = case.args
        wrong = []
        for name in names("Reduce_scatter"):
            out[:] = -1
            group.Reduce_scatter(send, out, None, by, algorithm=name)
            wrong.append([f"{name}, rank {r}: {case.fault}"] if case.fault else [])
        agree(comm, not any(wrong), first(wrong))


@pytest.mark.parametrize("op", OPERATIONS)
def test_a_library_without_persistent_collectives(comm, monkeypatch, op):
    without_persistent_collectives(monkeypatch)
    group = comms(comm)[-1].Dup()
    wrong = [
        fault(group, op, call(group, op, "zeros"), name)
        for name in some(names(op), 3, TURN)
    ]
    agree(comm, not any(wrong), first(wrong))
    with pytest.raises(NotImplementedError):
        case, _ = call(group, op, "zeros")
        getattr(group, f"{op}_init")(*case.args, algorithm="native")
    group.Free()


def test_what_auto_takes_where_it_does_not_leave_it_to_the_library(comm, monkeypatch):
    """The ways that pay in large groups only, taken in a small one."""
    monkeypatch.setattr(choose, "asks", lambda p, machine: True)
    right = []
    for how in ("bruck(radix=3)", "rotated"):
        monkeypatch.setattr(
            choose, "alltoallv", lambda p, n, m, how=how: choose.Choice(how, "")
        )
        for group in (x.Dup() for x in comms(comm)[-2:]):
            found = exchanges(group, "Alltoallv", KINDS["zeros"])
            right.append(fault(group, "Alltoallv", found, "auto"))
            taken = group._taken() if group.size > 1 else how
            right.append([] if how.startswith(taken) else [f"{taken}, not {how}"])
            group.Free()
    agree(comm, not any(right), first(right))


COUNT = st.one_of(st.just(0), st.integers(0, 9), st.integers(0, 300))


@settings(max_examples=100 if LONG else 15)
@given(st.data(), st.sampled_from(OPERATIONS), st.integers(0, 4))
def test_any_sizes_against_numpy(comm, draw, op, which):
    """Random sizes, types and algorithms; the same on all ranks of a group."""
    group = comms(comm)[which]
    counts = draw.draw(st.lists(COUNT, min_size=24, max_size=24))
    name = draw.draw(st.sampled_from(names(op)))
    make = sums if op in SUMS else exchanges
    (case, _) = make(group, op, lambda i: counts[i % 24])
    getattr(group, op)(*case.args, algorithm=name)
    agree(comm, not case.fault, f"{op} {name}: {case.fault}")


WRONG = [
    ("Allreduce", (np.zeros(3), np.zeros(4)), "3 elements are sent, 4 received"),
    ("Allreduce", (np.zeros(3), np.zeros(3, "i4")), "types"),
    ("Allreduce", (np.zeros(3), np.zeros(3), MPI.REPLACE), "does not combine"),
    ("Reduce_scatter", (np.zeros(8), np.zeros(1), [1] * 7), "expecting 8 counts"),
    ("Reduce_scatter", (np.zeros(9), np.zeros(1), [1] * 8), "the counts are"),
    ("Reduce_scatter_block", (np.zeros(9), np.zeros(1)), "9 (elem|is not)"),
    ("Alltoall", (np.zeros(8), np.zeros(16)), "8 bytes are sent to each, 16"),
    ("Alltoall", (np.zeros(9), np.zeros(8)), "not a multiple"),
    ("Alltoallv", (np.zeros(8), [np.zeros(8), [1] * 7]), "expecting 8 counts"),
]


@pytest.mark.parametrize(("op", "args", "words"), WRONG)
def test_wrong_calls_are_refused(comm, op, args, words):
    group = comms(comm)[-1]
    for form in (op, f"I{op.lower()}", f"{op}_init"):
        with pytest.raises(ValueError, match=words):
            getattr(group, form)(*args)
    case, _ = call(group, op, "equal")
    with pytest.raises(ValueError, match="no algorithm 'x'"):
        getattr(group, op)(*case.args, algorithm="x")
    getattr(group, op)(*case.args, algorithm="pairwise" if op != SUMS[0] else "direct")
    agree(comm, not case.fault, case.fault)


def test_the_checked_mode_tells_everyone(comm, monkeypatch):
    monkeypatch.setenv("ISTHMUS_CHECK", "1")
    group = isthmus.Intracomm(comm.Dup())
    n = 5 if group.rank == 3 else 4
    with pytest.raises(isthmus.MismatchError, match="rank 3 sends 40 bytes"):
        group.Allreduce(np.zeros(n), np.zeros(n))
    with pytest.raises(isthmus.MismatchError, match="rank 3 sends 40 bytes"):
        group.Alltoall(np.zeros(n * 8), np.zeros(n * 8))
    group.Free()
