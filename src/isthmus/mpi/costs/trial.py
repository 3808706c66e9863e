"""The times of the candidates for an operation, measured between a program's calls.

Between groups there are up to three candidates: the best algorithm without node memory,
the one with it, and the MPI library's own call. All ranks try them together, with a few
sizes, so that a choice rests on the times of this machine and this communicator.

A trial in one go stops a program: for 84 ms on 8 ranks, for 5.9 s on 256 ranks of 64
hosts. So a trial is a generator, and each call of the operation makes one step of it:
some calls of one candidate, timed together, or one where that is long. No call then
waits for much more than a call of a candidate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from math import lcm
from operator import methodcaller
from typing import Any, TypeAlias

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

#: a trial takes the communicator object of each call that makes a step of it, and keeps
#: none of them, as users make them anew
Trial: TypeAlias = "Generator[None, Any, TrialTimes]"


def arguments(c: Any, collective: str, nbytes: int) -> tuple[Any, ...]:
    """The arguments of a call of about so many bytes."""
    record = COLLECTIVES[collective]
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


def _seconds(c: Any, way: Callable[[Any], Any], comm: Any, calls: int) -> float:
    """The seconds of a call, of some that are timed together; all ranks begin
    together."""
    c.finish(c.comm.Ibarrier())
    start = time.perf_counter()
    for _ in range(calls):
        way(comm)
    return (time.perf_counter() - start) / calls


def _best(
    c: Any, ways: Sequence[Callable[[Any], Any]], calls: int, times: int
) -> Generator[None, Any, np.ndarray]:
    """Time calls by each way, at the best of some times, on the slowest rank.

    The ways take turns, since other work of the machine must not meet one way alone.
    """
    seconds = np.empty((times, len(ways)))
    for turn in range(times):
        for k, way in enumerate(ways):
            seconds[turn, k] = _seconds(c, way, (yield), calls)
    c.finish(c.comm.Iallreduce(MPI.IN_PLACE, seconds, MPI.MAX), seconds)
    best: np.ndarray = seconds.min(axis=0)
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


def _flat(c: Any, collective: str, args: tuple[Any, ...]) -> str:
    """The algorithm that is taken without node memory."""
    c.times[collective] = TrialTimes((0,), {FLAT: (0.0,)}, {})
    try:
        (op,) = COLLECTIVES[collective].operations
        return Call(c, op, BLOCKING, "auto", args).task().algorithm
    finally:
        del c.times[collective]


def trial(c: Any, collective: str) -> Trial:
    """Try the candidates for a collective, by all ranks together."""
    (op,) = COLLECTIVES[collective].operations
    yield from c.measure()
    names = candidates(c, collective)
    columns: dict[int, np.ndarray] = {}
    spent, sizes = 0.0, SIZES if c.one_node else FAR_SIZES
    for nbytes in sizes[:1] if COLLECTIVES[collective].gives == NOTHING else sizes:
        if spent > LIMIT and len(columns) > 1:
            break
        args = arguments(c, collective, nbytes)
        calls, times = MANY if c.one_node and nbytes <= SHORT else FEW
        algorithms = {FLAT: _flat(c, collective, args)}
        ways = [
            methodcaller("_blocking", op, algorithms.get(name, name), *args)
            for name in names
        ]
        for way in ways:
            way((yield))  # the first call makes its plan
        once = yield from _best(c, ways, *SLOW)
        if once.sum() > LIMIT / 10:
            calls, times = SLOW
        best = yield from _best(c, ways, calls, times)
        columns[nbytes] = np.minimum(once, best)
        spent += (2 + times * calls) * columns[nbytes].sum()
    done = tuple(sorted(columns))
    seconds = np.array([columns[nbytes] for nbytes in done]).T.tolist()
    table = {x: tuple(row) for x, row in zip(names, seconds, strict=True)}
    return TrialTimes(done, table, c.per_byte(collective))
