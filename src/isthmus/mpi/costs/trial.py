"""The times of the candidates for an operation, measured between a program's calls.

Calls between groups have up to three candidates: the best algorithm without node
memory, the algorithm with node memory, and the MPI library's own call. All ranks
together try the candidates with a few sizes, so that a choice rests on times on the
user's machine, and not on times measured elsewhere.

A trial in one go stops a program: for 84 ms on 8 ranks, for 5.9 s on 256 ranks of 64
hosts. So a trial is a generator, and each call of the operation makes a step: a few
calls of a candidate, timed together, or a single call if long. No call of the program
then waits for much longer than a call of a candidate takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from functools import partial
from math import lcm
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from mpi4py import MPI

from ...choose.choice import choice
from ...choose.tried import FLAT, LIBRARY_CALL, WITH_NODE_MEMORY, TrialTimes
from ...collectives.collective import BLOCK, BLOCKS, NOTHING, VECTOR
from ...collectives.records import COLLECTIVES
from ..arguments.call import Call
from ..arguments.readers import BLOCKING

if TYPE_CHECKING:
    from ..context.inter import InterContext

#: the bytes of a block or vector on one node, the most telling sizes first
TRIAL_BYTES_ON_NODE = (8, 1 << 16, 1 << 12, 1 << 14, 1 << 10, 1 << 18)
#: the bytes of a block or vector between nodes
TRIAL_BYTES_BETWEEN_NODES = (8, 1 << 12)
#: no further sizes are tried after so many seconds
TRIAL_SECONDS = 0.04
#: up to so many bytes on one node a few microseconds decide, which takes many calls
MANY_CALLS_BYTES = 1 << 10
#: the calls of a turn, and the turns: of short messages, of others, and of calls of
#: which one by each candidate takes a tenth of TRIAL_SECONDS. Slow calls take turns
#: too: of two single calls, both may wait for a processor
MANY_CALLS, FEW_CALLS, SLOW_CALLS, ONE_CALL = (10, 5), (4, 5), (1, 3), (1, 1)

#: makes a blocking call on the communicator of a program's call
Run: TypeAlias = Callable[[Call], None]
#: a trial is sent the function `Run` of each call that makes a step, and keeps none,
#: since a user makes communicator objects anew
Trial: TypeAlias = Generator[None, Run, TrialTimes]


def trial(context: InterContext, collective: str) -> Trial:
    """Try the candidates for a collective; all ranks together."""
    record = COLLECTIVES[collective]
    (operation,) = record.operations
    yield from context.measure()
    names = candidates(context, collective)
    columns: dict[int, np.ndarray] = {}
    spent = 0.0
    tried_bytes = TRIAL_BYTES_ON_NODE if context.one_node else TRIAL_BYTES_BETWEEN_NODES
    for nbytes in tried_bytes[:1] if record.gives == NOTHING else tried_bytes:
        if spent > TRIAL_SECONDS and len(columns) > 1:
            break
        args = trial_arguments(context, collective, nbytes)
        size_names = dict.fromkeys(("m", "ka", "kb"), nbytes)
        sizes = {"p": context.p, "q": context.q, **size_names}
        algorithms = {FLAT: choice(record, sizes, context.machine).name}
        new_calls = [
            partial(
                Call, context, operation, BLOCKING, algorithms.get(name, name), args
            )
            for name in names
        ]
        for new_call in new_calls:
            run = yield
            run(new_call())  # the first call of an algorithm makes the plan
        single = yield from _time_calls(context, new_calls, *ONE_CALL)
        is_frequent = context.one_node and nbytes <= MANY_CALLS_BYTES
        per_turn, turns = MANY_CALLS if is_frequent else FEW_CALLS
        if single.sum() > TRIAL_SECONDS / 10:
            per_turn, turns = SLOW_CALLS
        least = yield from _time_calls(context, new_calls, per_turn, turns)
        columns[nbytes] = np.minimum(single, least)
        spent += (2 + turns * per_turn) * columns[nbytes].sum()
    tried = tuple(sorted(columns))
    rows = np.array([columns[nbytes] for nbytes in tried]).T.tolist()
    seconds = {name: tuple(row) for name, row in zip(names, rows, strict=True)}
    return TrialTimes(tried, seconds, context.per_byte(collective))


def candidates(context: InterContext, collective: str) -> list[str]:
    """The names of the candidates for a collective."""
    names = [FLAT]
    if context.node_memory:
        names.append(WITH_NODE_MEMORY)
    record = COLLECTIVES[collective]
    is_cut = record.combines and record.gets == BLOCK
    if context.p == context.q or not is_cut:
        # for groups of different sizes mpi4py compares the bytes sent with the size of
        # the wrong group
        names.append(LIBRARY_CALL)
    return names


def trial_arguments(
    context: InterContext, collective: str, nbytes: int
) -> tuple[Any, ...]:
    """The arguments of a call with blocks or vectors of about `nbytes`."""
    record = COLLECTIVES[collective]
    here, there, n = context.here, context.there, max(nbytes // 8, 1)

    def buffer(size: int) -> np.ndarray:
        return np.ones(size)  # untouched zeros would all be one page of memory

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


def _time_calls(
    context: InterContext,
    new_calls: Sequence[Callable[[], Call]],
    per_turn: int,
    turns: int,
) -> Generator[None, Run, np.ndarray]:
    """Time the calls of each candidate, in the fastest turn on the slowest rank.

    The calls take turns, since otherwise a disturbance would meet a single call.
    """
    seconds = np.empty((turns, len(new_calls)))
    for turn in range(turns):
        for k, new_call in enumerate(new_calls):
            run = yield
            seconds[turn, k] = _turn_seconds(context, new_call, run, per_turn)
    context.finish(context.comm.Iallreduce(MPI.IN_PLACE, seconds, MPI.MAX), seconds)
    least: np.ndarray = seconds.min(axis=0)
    return least


def _turn_seconds(
    context: InterContext,
    new_call: Callable[[], Call],
    run: Run,
    per_turn: int,
) -> float:
    """The seconds of a call, as the mean of a turn that all ranks begin together."""
    context.finish(context.comm.Ibarrier())
    begin = time.perf_counter()
    for _ in range(per_turn):
        run(new_call())
    return (time.perf_counter() - begin) / per_turn
