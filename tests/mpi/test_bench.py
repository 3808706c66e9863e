"""Measuring on real ranks: every operation, and a barrier that holds everyone back."""

from __future__ import annotations

import time

import numpy as np
import pytest
from mpi4py import MPI

from isthmus.bench import regret
from isthmus.bench.compare import compare
from isthmus.bench.job import AUTO, NATIVE, BenchJob, Contender, case, contenders
from isthmus.bench.operations import measured, mpi_operations
from isthmus.bench.stand import Stand
from sampling import LONG, some
from support import agree

pytestmark = pytest.mark.mpi(*[2] * LONG, 5)


def stands(comm):
    """All ranks in one group, and in two."""
    yield (comm.size,)
    yield (comm.size - comm.size // 2, comm.size // 2)


def test_every_operation_gives_the_right_bytes(comm):
    for groups in stands(comm):
        stand = Stand(groups)
        for turn, op in enumerate(measured(len(groups))):
            for each in some((0, 1, 1000), 2, turn):
                one = case(op, groups, each)
                job = BenchJob(groups, (one,), contenders(["auto"], False), seconds=0.0)
                found = compare(stand, one, job)
                assert len(found.results[0].times[0]) == 3
                assert {r.contender for r in found.results} == set(
                    job.contenders_of(one)
                )
        stand.free()


def test_every_candidate_gives_the_right_bytes(comm):
    for groups in stands(comm):
        stand = Stand(groups)
        names = some(mpi_operations(len(groups)), 5)
        job = regret.regret_job(groups, names, [96], BenchJob((), (), (), seconds=0.0))
        for one in job.cases:
            found = compare(stand, one, job)
            assert {NATIVE, AUTO} <= {r.contender for r in found.results}
            assert found.taken(AUTO) and found.regret(AUTO) >= 1, one.op
        stand.free()


def test_a_call_that_does_nothing_is_wrong(comm):
    for groups in stands(comm):
        stand = Stand(groups)
        for op in measured(len(groups)):
            trial = stand.prepare(case(op, groups, 100), NATIVE)
            trial.wipe()
            receives = trial.received.nbytes > 0
            assert trial.right() is not receives, op
            someone = comm.allreduce(receives, MPI.LOR)
            agree(comm, someone is (op != "barrier"), op)
            trial.run()
            agree(comm, trial.right(), op)
        stand.free()


def test_contenders_share_their_buffers(comm):
    """Where buffers lie matters, and is no merit of a contender."""
    for groups in stands(comm):
        stand = Stand(groups)
        one, two, again = (
            stand.prepare(case("allgather", groups, n), NATIVE) for n in (9, 8, 8)
        )
        assert np.shares_memory(again.received, two.received)
        assert not np.shares_memory(again.received, one.received)
        stand.free()


def test_persistent_forms_are_measured_too(comm):
    for groups in stands(comm):
        stand = Stand(groups)
        trial = stand.prepare(
            case("allgatherv", groups, 64), Contender("auto", persistent=True)
        )
        trial.wipe()
        trial.run()
        agree(comm, trial.right())
        trial.free()
        stand.free()


def test_nobody_leaves_the_barrier_before_all_have_come(comm):
    stand = Stand((comm.size,))
    for late in range(comm.size):
        comm.Barrier()
        if comm.rank == late:
            time.sleep(0.05)
        came = time.monotonic()
        stand.barrier()
        left = time.monotonic()
        last = comm.allreduce(came, MPI.MAX)
        agree(comm, left >= last, f"rank {late} was late")
    stand.free()


def test_the_slowest_rank_counts(comm):
    stand = Stand((comm.size,))
    found = stand.worst([comm.rank, -comm.rank])
    agree(comm, np.array_equal(found, [comm.size - 1, 0]))
    stand.free()
