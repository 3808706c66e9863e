"""The costs of messages on a communicator, measured by all ranks together.

The probe runs inside calls of the user, so a few messages must do. A rank may lose its
processor for a while, and every message then looks slow, so the fastest turn counts. A
link that is shaped lets 64 KiB through at once after a pause, so that a turn of long
messages begins with one that is not timed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TypeAlias, TypeVar

import numpy as np
from mpi4py import MPI

from ...choose import estimate
from ...choose.tuning import BUILT_IN, NETWORK
from ...cost.machine import Level, LibraryCalls, Machine
from ...cost.placement import on_nodes

#: the bytes of a short and of a long message of the probe
SHORT_PROBE_BYTES, LONG_PROBE_BYTES = 1, 1 << 16
#: the turns of a step, of which the fastest counts
PROBE_TURNS = 3
#: the short and the long messages in a turn, and the long ones before that are not
#: timed
SHORT_PER_TURN, LONG_PER_TURN, LONG_UNTIMED = 20, 3, 1
#: the most ranks to which short messages go at once
MAX_FAN_RANKS = 4
#: the least time of a byte, as a share of a start-up
MIN_BYTE_PER_STARTUP = 1e-6
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


def probe(comm: MPI.Intracomm, nodes: Sequence[int]) -> Machine:
    """The machine of a communicator, measured in one go."""
    return complete(probe_in_steps(comm, nodes))


def probe_in_steps(comm: MPI.Intracomm, nodes: Sequence[int]) -> Measurement[Machine]:
    """Measure messages of isthmus, and the slowdown of the library's own calls.

    On several nodes the costs are those of messages between nodes.
    """
    several = len(set(nodes)) > 1
    if len(nodes) == 1:
        return BUILT_IN
    far = next((rank for rank, node in enumerate(nodes) if node != nodes[0]), 1)
    level = yield from level_in_steps(comm, far)
    machine = Machine((level,))
    if several:
        together = level.together * len(nodes) / len(set(nodes))
        changing = NETWORK.changing
        level = replace(level, together=together, changing=changing)
        machine = on_nodes(replace(machine, levels=(level,)), nodes)
    library = yield from library_in_steps(comm, machine, on_node=not several)
    return replace(machine, library=library)


def level_in_steps(
    comm: MPI.Intracomm,
    far: int = 1,
    long_bytes: int = LONG_PROBE_BYTES,
    turns: int = PROBE_TURNS,
) -> Measurement[Level]:
    """Measure messages between all ranks of a communicator.

    All ranks pass messages to the right, then send short ones to several ranks at once;
    then rank 0 alone sends a message to rank `far`.
    """
    p = comm.Get_size()
    fan_ranks = min(p - 1, MAX_FAN_RANKS)
    short, fan = shift(comm, SHORT_PROBE_BYTES), _fan(comm, fan_ranks)
    all_long = shift(comm, long_bytes)
    one_long = shift(comm, long_bytes, only_to=far)
    alpha = yield from time_in_steps(comm, short, SHORT_PER_TURN, turns)
    fanned = yield from time_in_steps(comm, fan, SHORT_PER_TURN, turns)
    long = LONG_PER_TURN, turns, LONG_UNTIMED
    contended = yield from time_in_steps(comm, all_long, *long)
    alone = yield from time_in_steps(comm, one_long, *long)
    least = MIN_BYTE_PER_STARTUP * alpha
    crowded = max((contended - alpha) / long_bytes, least)
    beta = max((min(contended, alone) - alpha) / long_bytes, least)
    gap = max(fanned - alpha, 0.0) / max(fan_ranks - 1, 1)
    return Level(None, alpha, beta, gap=min(gap, alpha), together=crowded / p)


def library_in_steps(
    comm: MPI.Intracomm, machine: Machine, *, on_node: bool
) -> Measurement[LibraryCalls]:
    """Measure the library's own Allgather, beside the time of a ring on a machine."""
    p = comm.Get_size()
    block_bytes = min(LONG_PROBE_BYTES, max(MAX_GATHERED_BYTES // p, 1))
    turns = LIBRARY_TURNS_ON_NODE if on_node else PROBE_TURNS
    allgather = _native_allgather(comm, block_bytes)
    native = yield from time_in_steps(comm, allgather, 1, turns)
    expected = estimate.ring(np.full(p, block_bytes), machine)
    piece_bytes = LIBRARY_PIECE_BYTES.get(MPI.get_vendor()[0], 0)
    return LibraryCalls(native / expected, piece_bytes)


def time_in_steps(
    comm: MPI.Intracomm,
    step: Callable[[], None],
    steps_per_turn: int,
    turns: int = PROBE_TURNS,
    untimed: int = 0,
) -> Measurement[float]:
    """Time a step, a turn at a time; the fastest turn on the slowest rank counts.

    The first step does not count, since it opens connections, and waits behind earlier
    messages, nor do the `untimed` ones at the beginning of a turn.
    """
    step()
    yield
    comm.Barrier()
    _repeat(step, untimed)
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
        _repeat(step, untimed)
        begin = perf_counter()
        _repeat(step, steps_per_turn)
        seconds[turn] = (perf_counter() - begin) / steps_per_turn
    comm.Allreduce(MPI.IN_PLACE, seconds, MPI.MAX)
    return float(seconds.min())


def _repeat(step: Callable[[], None], times: int) -> None:
    for _ in range(times):
        step()


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


def _fan(comm: MPI.Intracomm, ranks: int) -> Callable[[], None]:
    """A step in which each rank sends a short message to each of the next ranks."""
    p, rank = comm.Get_size(), comm.Get_rank()
    sent, received = np.zeros(1, np.uint8), np.zeros(ranks, np.uint8)
    sources = [(received[d - 1 : d], (rank - d) % p) for d in range(1, ranks + 1)]
    targets = [(rank + d) % p for d in range(1, ranks + 1)]

    def step() -> None:
        requests = [comm.Irecv(place, source, 0) for place, source in sources]
        requests += [comm.Isend(sent, target, 0) for target in targets]
        MPI.Request.Waitall(requests)

    return step
