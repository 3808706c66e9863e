"""Every collective between groups, by every algorithm, in every form."""

from __future__ import annotations

from itertools import product

import pytest

from between import (
    OPERATIONS,
    REDUCING,
    ROOTED,
    Kit,
    call,
    chain,
    in_order,
    names,
)
from groups import pairs
from sampling import LONG, some
from support import TURN, agree, forms, without_persistent_collectives

#: the group sizes tested at each number of ranks
SHAPES = {2: [(1, 1)], 5: [(1, 4), (3, 2)], 8: [(4, 4), (2, 6)]}
pytestmark = pytest.mark.mpi(*SHAPES)
#: sizes that go by different ways
MOST = ("equal", "zeros", "giant", "long", "empty")


def check(kit, op, case, name):
    """All forms of a call give what they must."""
    faults = []
    case.clear()
    # the third blocking one is in the other room of the node's memory
    for form in forms(kit.groups.ours, op, case.args, name, blocking=3):
        if case.fault:
            faults.append(f"{op} {name} {form}: {case.fault}")
        case.clear()
    agree(kit.groups.world, not faults, "; ".join(faults[:1]))


def roots(comm, op):
    """First, middle and last of all ranks: roots in both groups."""
    return sorted({0, comm.size // 2, comm.size - 1}) if op in ROOTED else [0]


@pytest.mark.parametrize("op", OPERATIONS)
def test_every_algorithm(comm, op):
    """Each in some cases, so that there is one for every case."""
    number = OPERATIONS.index(op)
    turn = None if LONG else number + TURN
    for shape, groups in enumerate(pairs(comm, SHAPES, turn)):
        kinds = MOST if comm.size <= 5 else some(("zeros", "long"), 2, number // 2)
        cases = []
        for kind, root in product(kinds, roots(comm, op)):
            cases.append(call(kit := Kit(groups), op, kind, root))
            getattr(groups.native, op)(*cases[-1].args)
            agree(comm, not cases[-1].fault, f"native {op} {kind}: {cases[-1].fault}")
        for turn, name in enumerate(names(op), shape + TURN):
            for case in some(cases, len(cases), turn):
                check(kit, op, case, name)


@pytest.mark.mpi(*[2] * LONG, 5)
@pytest.mark.parametrize("op", some(OPERATIONS, 2, TURN))
def test_a_library_without_persistent_collectives(comm, monkeypatch, op):
    """Every algorithm then has requests of ours; only "native" has none."""
    without_persistent_collectives(monkeypatch)
    few = (OPERATIONS.index(op) + TURN) % 2
    for shape, groups in enumerate(pairs(comm, SHAPES)):
        cases = [call(kit := Kit(groups), op, "zeros", x) for x in roots(comm, op)]
        every = max(2, len(cases))
        for name, case in some(product(names(op), cases), every, few + shape):
            check(kit, op, case, name)
        with pytest.raises(NotImplementedError):
            getattr(groups.ours, f"{op}_init")(*cases[-1].args, algorithm="native")


@pytest.mark.mpi(2, 5, *[8] * LONG)
@pytest.mark.parametrize("op", REDUCING)
def test_in_the_order_of_ranks(comm, op):
    by = in_order()
    for groups in pairs(comm, SHAPES):
        kit = Kit(groups, op=by, combine=chain)
        kinds = product(("zeros", "long"), roots(comm, op))
        cases = [call(kit, op, kind, root) for kind, root in kinds]
        for turn, name in enumerate(names(op, commutative=False)):
            for case in some(cases, max(1, len(cases) // 2), turn):
                check(kit, op, case, name)
    by.Free()


@pytest.mark.mpi(*[2] * LONG, 5)
@pytest.mark.parametrize("op", OPERATIONS)
def test_other_types(comm, op):
    for groups in pairs(comm, SHAPES, turn=OPERATIONS.index(op) // 2):
        for dtype in some(("f4", "i2", "c16", "u1"), 2, OPERATIONS.index(op)):
            kit = Kit(groups, dtype=dtype)
            case = call(kit, op, "long", comm.size - 1)
            check(kit, op, case, "auto")


@pytest.mark.mpi(5)
@pytest.mark.parametrize("op", OPERATIONS)
def test_messages_that_are_cut(comm, monkeypatch, op):
    """As between hosts under Open MPI, into pieces that end anywhere."""
    monkeypatch.setattr(
        "isthmus.mpi.context.context.message_piece_bytes", lambda nodes: 1000
    )
    for groups in pairs(comm, SHAPES, turn=OPERATIONS.index(op)):
        kit = Kit(groups)
        check(kit, op, call(kit, op, "long", comm.size - 1), "auto")
