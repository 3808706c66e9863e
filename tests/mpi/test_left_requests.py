"""Calls between groups that are persistent requests of the MPI library's own."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from mpi4py import MPI

from between import REDUCING, ROOTED, Kit, call, data, refuses
from groups import pair, pairs, same
from isthmus.choose.between import Times
from isthmus.mpi.costs import trial
from isthmus.mpi.costs.trial import OPERATIONS
from isthmus.mpi.engine.requests import Persistent
from sampling import LONG
from support import agree, has_persistent_collectives

pytestmark = pytest.mark.mpi(*[3] * LONG, 5)
LEFT = [*REDUCING, "Gather"]


@pytest.fixture(autouse=True)
def library(monkeypatch):
    """Leave them all to the library, whatever their size."""
    if not has_persistent_collectives():
        pytest.skip("this MPI library has no persistent collectives")
    monkeypatch.setenv("ISTHMUS_TRIAL", "1")
    names = dict.fromkeys(("flat", "node_aware"), (2.0,))
    left, others = (Times((8,), names | {"native": (t,)}, {}) for t in (1.0, 3.0))
    monkeypatch.setattr(
        trial,
        "tried",
        lambda comm, collective: left if OPERATIONS[collective] in LEFT else others,
    )


def is_ours(request):
    return isinstance(request, Persistent)


def run(request):
    request.Start()
    request.Wait()


class Refusing(MPI.Intercomm):
    """Of a library that wants to know what the root sends."""

    def Reduce_init(self, sendbuf, recvbuf, op, root):
        if root == MPI.ROOT:
            raise MPI.Exception(MPI.ERR_BUFFER)
        return super().Reduce_init(sendbuf, recvbuf, op, root)


class Old(MPI.Intracomm):
    """What makes it."""

    def Create_intercomm(self, *args):
        return Refusing(super().Create_intercomm(*args))


def test_what_it_refuses_on_one_rank_is_ours_on_all(comm, monkeypatch):
    """And what it does not refuse stays in step."""
    monkeypatch.setattr("isthmus.mpi.context.context_inter.Native", Old)
    for groups in pairs(comm):
        for root in (0, comm.size - 1, 0):
            for op in ("Reduce", "Gather", "Reduce"):
                case = call(Kit(groups), op, "equal", root)
                run(request := getattr(groups.ours, f"{op}_init")(*case.args))
                agree(comm, not case.fault, case.fault)
                request.Free()


@pytest.mark.parametrize("op", LEFT)
def test_the_library_does_them(comm, op):
    """Also for each root in turn, with all of their requests at hand; around the sizes
    where libraries change their ways."""
    for groups in pairs(comm, turn=LEFT.index(op)):
        cases = []
        for root in range(comm.size if op in ROOTED else 1):
            for kind in ("equal", "some", "long"):
                case = call(Kit(groups), op, kind, root)
                cases.append((case, getattr(groups.ours, f"{op}_init")(*case.args)))
        refused = refuses(groups, op, "persistent")
        agree(comm, refused or not any(is_ours(request) for _, request in cases))
        for case, request in [*cases, *reversed(cases)]:
            case.clear()
            run(request)
            agree(comm, not case.fault, case.fault)
        for _, request in cases:
            request.Free()


@pytest.mark.parametrize("op", REDUCING)
def test_what_it_cannot_do_is_ours(comm, op):
    """No elements, and elements of a type with gaps."""
    least = np.dtype([("value", "i2"), ("place", "i4")], align=True)
    for groups in pairs(comm):
        empty = call(Kit(groups), op, "empty", 0)
        run(request := getattr(groups.ours, f"{op}_init")(*empty.args))
        request.Free()
        total = len(groups.there) * (comm.size - len(groups.there))
        send = np.zeros(total, least)
        send["value"], send["place"] = 7 - comm.rank, comm.rank
        if op == "Reduce":
            role = 0 if 0 in groups.there else [MPI.ROOT, MPI.PROC_NULL][comm.rank > 0]
            n, more = total, (role,)
        else:
            n = total // (1 if op == "Allreduce" else comm.size - len(groups.there))
            more = ()
        recv = np.zeros(n, least)
        counts = [n] * (comm.size - len(groups.there))
        first = () if op != "Reduce_scatter" else (counts,)
        sides = [send, MPI.SHORT_INT], [recv, MPI.SHORT_INT]
        make = getattr(groups.ours, f"{op}_init")
        run(request := make(*sides, *first, MPI.MINLOC, *more))
        last = groups.there[-1]
        wanted = np.array([(7 - last, last)] * n, least)
        has_part = op != "Reduce" or more == (MPI.ROOT,)
        agree(comm, not has_part or (recv == wanted).all(), f"{recv}")
        request.Free()
        agree(comm, not groups.ours._context()._intercomms, "left to the library")


def test_they_are_in_step_with_everything_else(comm):
    """Requests of all kinds under way together, some from ranks that have no part in
    others, and calls of every other form between them."""
    for groups in pairs(comm):
        kit, inter = Kit(groups), groups.ours
        cases = [call(kit, "Reduce", "equal", root) for root in range(comm.size)]
        requests = [inter.Reduce_init(*case.args) for case in cases]
        for op in ("Allreduce", "Reduce_scatter", "Reduce_scatter_block"):
            cases.append(call(kit, op, "zeros"))
            requests.append(getattr(inter, f"{op}_init")(*cases[-1].args))
        for turn in range(3):
            for case in cases:
                case.clear()
            MPI.Prequest.Startall(requests)
            others = [call(kit, op, "zeros", turn) for op in ("Bcast", "Allreduce")]
            going = [inter.Ibcast(*others[0].args), inter.Iallreduce(*others[1].args)]
            inter.Barrier()
            more = call(kit, "Reduce_scatter", "equal")
            inter.Reduce_scatter(*more.args)
            MPI.Request.Waitall([*going, *requests])
            faults = [x.fault for x in [*cases, *others, more] if x.fault]
            agree(comm, not faults, "; ".join(faults[:1]))
        for request in requests:
            request.Free()


@pytest.mark.parametrize("op", LEFT)
def test_the_users_own_requests_do_not_disturb_them(comm, op):
    """A Reduce_init of the library's, on the user's communicator, after which some
    ranks count their calls differently."""
    for groups in pairs(comm, turn=LEFT.index(op)):
        if refuses(groups, "Reduce", "persistent"):
            pytest.skip("this MPI library refuses a Reduce_init between groups")
        case = call(Kit(groups), "Reduce", "equal", 0)
        native = groups.native.Reduce_init(*case.args)
        ours = call(Kit(groups), op, "equal", comm.size - 1)
        run(request := getattr(groups.ours, f"{op}_init")(*ours.args))
        agree(comm, not ours.fault, ours.fault)
        request.Free()
        native.Free()


@pytest.mark.parametrize("op", LEFT)
def test_buffers_live_as_long_as_their_request(comm, op):
    for groups in pairs(comm, turn=LEFT.index(op)):
        case = call(Kit(groups), op, "long", comm.size - 1)
        args = [x.copy() if isinstance(x, np.ndarray) else x for x in case.args]
        out = next((i for i, x in enumerate(case.args) if x is case.out), None)
        recv = args[out] if case.out is not None and out is not None else None
        request = getattr(groups.ours, f"{op}_init")(*args)
        del args
        gc.collect()
        waste = [data(99, 997) for _ in range(50)]
        run(request)
        agree(comm, recv is None or same(recv, case.wanted), f"{len(waste)}")
        request.Free()


@pytest.mark.parametrize("op", LEFT)
def test_the_communicator_may_be_freed_before_the_request(comm, op):
    groups = pair(comm, 2)
    case = call(Kit(groups), op, "long", comm.size - 1)
    case.clear()
    request = getattr(groups.ours, f"{op}_init")(*case.args)
    request.Start()
    groups.free()
    request.Wait()
    agree(comm, not case.fault, case.fault)
    request.Free()
