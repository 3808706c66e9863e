"""The costs of messages on a communicator, measured by all ranks together.

The probe runs inside calls of the user, so a few messages must do. A rank may lose its
processor for a while, and every message then looks slow, so the fastest turn counts.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TypeAlias, TypeVar

import numpy as np
from mpi4py import MPI

from ...choose import estimate
from ...choose.estimate import MessageCosts

#: the bytes of a short and of a long message of the probe
SHORT_PROBE_BYTES, LONG_PROBE_BYTES = 1, 1 << 16
#: the turns of a step, of which the fastest counts
PROBE_TURNS = 3
#: the short and the long messages in a turn
SHORT_PER_TURN, LONG_PER_TURN = 20, 3
#: a step is slow if it takes so many seconds. Slow steps are made once a turn, in as
#: many turns as fit into SLOW_STEPS_SECONDS, but at least two: a single step is often
#: late where processes wait for a processor
SLOW_STEP_SECONDS, SLOW_STEPS_SECONDS, MAX_SLOW_TURNS = 2e-3, 0.06, 10
#: the turns of the library's own call on one node, where a turn is short: a call that
#: is measured too slow would never be chosen again
LIBRARY_TURNS_ON_NODE = 15
#: the most bytes of the blocks of all ranks together in the library's own Allgather
MAX_GATHERED_BYTES = 1 << 20
#: the size of pieces into which MPI libraries cut the long blocks of an Allgatherv
LIBRARY_PIECE_BYTES = {"MPICH": 32 << 10}

Result = TypeVar("Result")
#: a measurement by all ranks together, cut into steps that can be spread over the calls
#: of a program; the generator returns the result
Measurement: TypeAlias = "Generator[None, None, Result]"


def advance(measurement: Measurement[Result]) -> Result | None:
    """Make a step of a measurement: the result of the last step, before it None."""
    try:
        next(measurement)
    except StopIteration as end:
        result: Result = end.value
        return result
    return None


def complete(measurement: Measurement[Result]) -> Result:
    """Make all steps of a measurement, and return the result."""
    while (result := advance(measurement)) is None:
        pass
    return result


def probe(comm: MPI.Intracomm, nodes: Sequence[int]) -> MessageCosts:
    """The costs of messages, measured in one go."""
    return complete(probe_in_steps(comm, nodes))


def probe_in_steps(
    comm: MPI.Intracomm, nodes: Sequence[int]
) -> Measurement[MessageCosts]:
    """Measure messages of isthmus, and the slowdown of the library's own calls.

    All ranks pass messages to the right; then rank 0 alone sends a message, to another
    node if there are several. The library's Allgather is then compared with the time of
    a ring by these costs.
    """
    p = comm.Get_size()
    if p == 1:
        return MessageCosts(1e-6, 1e-10)
    far = next((rank for rank, node in enumerate(nodes) if node != nodes[0]), 1)
    all_short, all_long = shift(comm, SHORT_PROBE_BYTES), shift(comm, LONG_PROBE_BYTES)
    one_long = shift(comm, LONG_PROBE_BYTES, only_to=far)
    alpha = yield from time_in_steps(comm, all_short, SHORT_PER_TURN)
    contended = yield from time_in_steps(comm, all_long, LONG_PER_TURN)
    alone = yield from time_in_steps(comm, one_long, LONG_PER_TURN)
    beta = max(min(contended, alone) - alpha, 0.05 * alpha) / LONG_PROBE_BYTES
    gamma = max(contended - alpha, 0.0) / (p * LONG_PROBE_BYTES)
    piece = LIBRARY_PIECE_BYTES.get(MPI.get_vendor()[0], 0)
    # the steps of a ring overlap: with blocks of so many bytes their start-ups are
    # hidden
    ring = int(alpha / beta)
    costs = MessageCosts(alpha, beta, gamma, piece, ring=ring)
    block_bytes = min(LONG_PROBE_BYTES, max(MAX_GATHERED_BYTES // p, 1))
    turns = PROBE_TURNS if len(set(nodes)) > 1 else LIBRARY_TURNS_ON_NODE
    allgather = _native_allgather(comm, block_bytes)
    native = yield from time_in_steps(comm, allgather, 1, turns)
    expected = estimate.ring(np.full(p, block_bytes), costs)
    return replace(costs, library=native / expected)


def slowest_rank_seconds(
    comm: MPI.Intracomm,
    step: Callable[[], None],
    steps_per_turn: int,
    turns: int = PROBE_TURNS,
) -> float:
    """The seconds of a step in the fastest turn, on the slowest rank."""
    return complete(time_in_steps(comm, step, steps_per_turn, turns))


def time_in_steps(
    comm: MPI.Intracomm,
    step: Callable[[], None],
    steps_per_turn: int,
    turns: int = PROBE_TURNS,
) -> Measurement[float]:
    """Time a step, a turn at a time; the fastest turn on the slowest rank counts.

    The first step does not count, since it opens connections, and waits behind earlier
    messages.
    """
    step()
    yield
    comm.Barrier()
    begin = perf_counter()
    step()
    single = np.array(perf_counter() - begin)
    comm.Allreduce(MPI.IN_PLACE, single, MPI.MAX)
    if single > SLOW_STEP_SECONDS:
        steps_per_turn = 1
        most_turns = max(turns, MAX_SLOW_TURNS)
        turns = min(max(int(SLOW_STEPS_SECONDS / single), 2), most_turns)
    seconds = np.empty(turns)
    for turn in range(turns):
        yield
        comm.Barrier()
        begin = perf_counter()
        for _ in range(steps_per_turn):
            step()
        seconds[turn] = (perf_counter() - begin) / steps_per_turn
    comm.Allreduce(MPI.IN_PLACE, seconds, MPI.MAX)
    return float(seconds.min())


def shift(
    comm: MPI.Intracomm, nbytes: int, only_to: int | None = None
) -> Callable[[], None]:
    """A step in which all ranks send a message to the right, or rank 0 alone sends.

    Each step makes its messages anew, as calls do. Nothing is left to be freed where
    the communicator ends in the middle of a measurement.
    """
    p, rank = comm.Get_size(), comm.Get_rank()
    sent, received = np.zeros(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
    all_send = only_to is None
    target = (rank + 1) % p if only_to is None else only_to
    source = (rank - 1) % p if all_send else 0
    receives, sends = all_send or rank == only_to, all_send or rank == 0

    def step() -> None:
        requests: list[MPI.Request] = []
        if receives:
            requests.append(comm.Irecv(received, source, 0))
        if sends:
            requests.append(comm.Isend(sent, target, 0))
        for request in requests:
            request.Wait()

    return step


def _native_allgather(comm: MPI.Intracomm, nbytes: int) -> Callable[[], None]:
    """A step with the library's own Allgather of equal blocks."""
    sent = np.zeros(nbytes, np.uint8)
    received = np.zeros(nbytes * comm.Get_size(), np.uint8)
    return lambda: comm.Allgather(sent, received)
