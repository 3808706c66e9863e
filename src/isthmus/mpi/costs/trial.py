"""What the candidates for an operation take here: measured when it is first called.

Between groups there are up to three: the best algorithm without node memory, the one
with it, and the MPI library's own call. All ranks try them together, with a few sizes.
So a choice rests on what calls take on this machine and this communicator, not on what
they took elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from math import lcm
from typing import Any

import numpy as np
from mpi4py import MPI

from ...choose.between import FLAT, LIBRARY_CALL, WITH_NODE_MEMORY, TrialTimes
from ...collectives.collective import BLOCK, BLOCKS, NOTHING, VECTOR
from ...collectives.records import COLLECTIVES
from ..arguments.call import Call
from ..arguments.readers import BLOCKING

#: bytes of a block or vector, on one node and between nodes; two tell most
SIZES = (8, 1 << 16, 1 << 12, 1 << 14, 1 << 10, 1 << 18)
FAR_SIZES = (8, 1 << 12)
#: no more of them are tried after so many seconds
LIMIT = 0.04
#: calls that are timed together, and how often: of short messages in one memory, where
#: a few microseconds decide, of others, and where one of each takes a tenth of LIMIT
SHORT, MANY, FEW, SLOW = 1 << 10, (10, 5), (4, 5), (1, 1)


def arguments(comm: Any, collective: str, nbytes: int) -> tuple[Any, ...]:
    """Of a call of about so many bytes."""
    c, record = comm._context(), COLLECTIVES[collective]
    here, there, n = c.here, c.there, max(nbytes // 8, 1)

    def buffer(k: int) -> np.ndarray:
        return np.ones(k)  # zeros that nobody wrote share one page of memory

    if record.gives == NOTHING:
        return ()
    if record.gives == BLOCK:
        return buffer(n), buffer(n * there)
    if record.gives == BLOCKS:
        return buffer(n * there), buffer(n * there)
    if record.gets == VECTOR:
        return buffer(n), buffer(n), MPI.SUM
    n = -(-n // lcm(here, there)) * lcm(here, there)
    return buffer(n), buffer(n // here), MPI.SUM


def _seconds(c: Any, call: Callable[[], Any], calls: int) -> float:
    """What a call takes, of some that are timed together; all ranks begin together."""
    c.finish(c.comm.Ibarrier())
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def _best(
    c: Any, ways: Sequence[Callable[[], Any]], calls: int, times: int
) -> np.ndarray:
    """What a call by each way takes on the slowest rank, at the best of some times."""
    # They take turns: what else goes on here must not meet one of them alone.
    took = np.array([[_seconds(c, way, calls) for way in ways] for _ in range(times)])
    c.finish(c.comm.Iallreduce(MPI.IN_PLACE, took, MPI.MAX), took)
    best: np.ndarray = took.min(axis=0)
    return best


def candidates(c: Any, collective: str) -> list[str]:
    """What may be chosen for a collective."""
    names = [FLAT]
    if c.node_memory:
        names.append(WITH_NODE_MEMORY)
    record = COLLECTIVES[collective]
    is_cut = record.combines and record.gets == BLOCK
    if c.p == c.q or not is_cut:
        # else mpi4py compares what is sent with the wrong group's size
        names.append(LIBRARY_CALL)
    return names


def _flat(comm: Any, collective: str, args: tuple[Any, ...]) -> str:
    """What is taken without node memory."""
    times = comm._context().times
    times[collective] = TrialTimes((0,), {FLAT: (0.0,)}, {})
    try:
        (op,) = COLLECTIVES[collective].operations
        call = Call(comm._context(), op, BLOCKING, "auto", args)
        return call.task().algorithm
    finally:
        del times[collective]


def tried(comm: Any, collective: str) -> TrialTimes:
    """Try the candidates for a collective; by all ranks together."""
    c, (op,) = comm._context(), COLLECTIVES[collective].operations
    names = candidates(c, collective)
    columns: dict[int, np.ndarray] = {}
    spent, sizes = 0.0, SIZES if c.one_node else FAR_SIZES
    for nbytes in sizes[:1] if COLLECTIVES[collective].gives == NOTHING else sizes:
        if spent > LIMIT and len(columns) > 1:
            break
        args = arguments(comm, collective, nbytes)
        flat = _flat(comm, collective, args)
        calls, times = MANY if c.one_node and nbytes <= SHORT else FEW
        algorithms = {FLAT: flat}
        ways = [
            partial(comm._blocking, op, algorithms.get(name, name), *args)
            for name in names
        ]
        for way in ways:
            way()  # the first call makes its plan
        once = _best(c, ways, *SLOW)
        if once.sum() > LIMIT / 10:
            calls, times = SLOW
        columns[nbytes] = np.minimum(once, _best(c, ways, calls, times))
        spent += (2 + times * calls) * columns[nbytes].sum()
    done = tuple(sorted(columns))
    seconds = np.array([columns[nbytes] for nbytes in done]).T.tolist()
    table = {x: tuple(row) for x, row in zip(names, seconds, strict=True)}
    return TrialTimes(done, table, c.per_byte(collective))
