"""Persistent calls between groups beside everything else that is under way."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from mpi4py import MPI

from between import REDUCING, Kit, call, data, refuses
from groups import pair, pairs, same
from sampling import LONG
from support import agree

pytestmark = pytest.mark.mpi(*[3] * LONG, 5)
PERSISTENT = [*REDUCING, "Gather", "Scatterv", "Alltoall"]


def run(request):
    request.Start()
    request.Wait()


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


@pytest.mark.parametrize("op", PERSISTENT)
def test_the_users_own_requests_do_not_disturb_them(comm, op):
    """A Reduce_init of the library's, on the user's communicator, after which some
    ranks count their calls differently."""
    for groups in pairs(comm, turn=PERSISTENT.index(op)):
        if refuses(groups, "Reduce", "persistent"):
            pytest.skip("this MPI library refuses a Reduce_init between groups")
        case = call(Kit(groups), "Reduce", "equal", 0)
        native = groups.native.Reduce_init(*case.args)
        ours = call(Kit(groups), op, "equal", comm.size - 1)
        run(request := getattr(groups.ours, f"{op}_init")(*ours.args))
        agree(comm, not ours.fault, ours.fault)
        request.Free()
        native.Free()


@pytest.mark.parametrize("op", PERSISTENT)
def test_buffers_live_as_long_as_their_request(comm, op):
    for groups in pairs(comm, turn=PERSISTENT.index(op)):
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


@pytest.mark.parametrize("op", PERSISTENT)
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
