"""Whatever the user sends at the same time, on whatever communicator or thread."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from mpi4py import MPI

from groups import ALGORITHMS, FEW, SHAPES, expected, pair, pairs, same, values
from support import agree

pytestmark = pytest.mark.mpi(*FEW)


def test_wildcard_receives_of_the_user_see_nothing_of_ours(comm):
    for groups in pairs(comm):
        inter, n = groups.ours, len(groups.there)
        box = np.zeros(1)
        for name in ["auto", *ALGORITHMS]:
            boxes = [np.zeros(1) for _ in range(n)]
            pending = [inter.Irecv(b, MPI.ANY_SOURCE, MPI.ANY_TAG) for b in boxes] + [
                groups.local.Irecv(box, MPI.ANY_SOURCE, MPI.ANY_TAG)
            ]
            send, recv = values(comm.rank, 60), np.empty(60 * n)
            inter.Allgather(send, recv, algorithm=name)
            agree(comm, same(recv, expected(groups, [60] * comm.size)), name)
            request = inter.Iallgather(send, recv, algorithm=name)
            request.Wait()
            for j in range(n):
                inter.Send(np.array([7.0]), j, 23)
            groups.local.Send(np.array([8.0]), groups.local.rank, 1)
            MPI.Request.Waitall(pending)
            agree(comm, all(b[0] == 7 for b in boxes) and box[0] == 8, name)


def test_two_intercommunicators_at_once(comm):
    one = pair(comm, SHAPES[comm.size][0][0])
    two = pair(comm, SHAPES[comm.size][-1][0])
    third = two.ours.Dup()
    requests, checks = [], []
    for k, name in enumerate(["auto", *ALGORITHMS]):
        for groups, inter in ((one, one.ours), (two, two.ours), (two, third)):
            recv = np.empty((20 + k) * len(groups.there))
            send = values(comm.rank, 20 + k)
            requests.append(inter.Iallgather(send, recv, algorithm=name))
            checks.append((recv, expected(groups, [20 + k] * comm.size)))
    order = np.random.default_rng(comm.rank).permutation(len(requests))
    MPI.Request.Waitall([requests[i] for i in order])
    agree(comm, all(same(x, y) for x, y in checks))
    third.Free()
    one.free()
    two.free()


def test_threads_with_an_intercommunicator_each(comm):
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        pytest.skip("MPI may be called from one thread only")
    made = [pair(comm, SHAPES[comm.size][0][0]) for _ in range(3)]
    for groups in made:  # collective, so not left to the threads
        groups.ours.Allgather(np.zeros(1), np.empty(len(groups.there)))
    wrong = []

    def work(groups, name):
        inter = groups.ours
        for k in range(1, 40):
            recv = np.empty(k * len(groups.there))
            inter.Allgather(values(comm.rank, k), recv, algorithm=name)
            if not same(recv, expected(groups, [k] * comm.size)):
                wrong.append((name, k))

    threads = [
        threading.Thread(target=work, args=(groups, name))
        for groups, name in zip(made, ["direct", "balanced", "merged"], strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    agree(comm, not wrong, str(wrong))
    for groups in made:
        groups.free()


def test_start_order_does_not_matter(comm):
    """Ranks come late, each at another time."""
    import time

    for groups in pairs(comm):
        rng = np.random.default_rng(comm.rank)
        for name in ALGORITHMS:
            time.sleep(float(rng.uniform(0, 0.02)))
            recv = np.empty(50 * len(groups.there))
            groups.ours.Allgather(values(comm.rank, 50), recv, algorithm=name)
            agree(comm, same(recv, expected(groups, [50] * comm.size)), name)
