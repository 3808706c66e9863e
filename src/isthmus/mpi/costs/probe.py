"""What messages cost on a communicator, measured by all its ranks together."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import TypeAlias, TypeVar

import numpy as np
from mpi4py import MPI

from ...choose import estimate
from ...choose.estimate import MessageCosts

#: bytes of a short and of a long message
SHORT, LONG = 1, 1 << 16
#: in how many turns, each so often, messages are sent; the fastest turn counts
TURNS, SHORTS, LONGS = 3, 20, 3
#: a step that takes so many seconds is made once a turn, and no more often than fits
#: into so many, but twice: one is easily late where processes wait for a processor
SLOW, SPENT, MOST = 2e-3, 0.06, 10
#: the same for the library's own call where it takes no time to speak of: one that is
#: measured too slow would be passed over for nothing
MANY = 15
#: bytes of the blocks of all ranks together, at the most, when they are gathered
TOGETHER = 1 << 20
#: into what pieces MPI libraries cut the long blocks of an Allgatherv
PIECES = {"MPICH": 32 << 10}


Result = TypeVar("Result")
#: a measurement by all ranks together, cut into steps that can be spread over the calls
#: of a program; it returns its result
Measurement: TypeAlias = "Generator[None, None, Result]"


def advanced(measurement: Measurement[Result]) -> Result | None:
    """The result of a measurement after one more step; None before the last step."""
    try:
        next(measurement)
    except StopIteration as end:
        result: Result = end.value
        return result
    return None


def completed(measurement: Measurement[Result]) -> Result:
    """The result of a measurement whose steps are all made now."""
    while (result := advanced(measurement)) is None:
        pass
    return result


def probe(comm: MPI.Intracomm, nodes: Sequence[int]) -> MessageCosts:
    """Start-up and byte times of our messages, measured now."""
    return completed(probing(comm, nodes))


def probing(comm: MPI.Intracomm, nodes: Sequence[int]) -> Measurement[MessageCosts]:
    """Measure start-up and byte times of our messages, and the library's own speed.

    All ranks pass messages to the right; then rank 0 alone sends one, to another node
    if there are several; then the library's Allgather is compared with the time that
    the first two predict for a ring.
    """
    p = comm.Get_size()
    if p == 1:
        return MessageCosts(1e-6, 1e-10)
    far = next((r for r, node in enumerate(nodes) if node != nodes[0]), 1)
    with shift(comm, SHORT) as step:
        alpha = yield from timing(comm, step, SHORTS)
    with shift(comm, LONG) as step:
        contended = yield from timing(comm, step, LONGS)
    with shift(comm, LONG, only_to=far) as step:
        alone = yield from timing(comm, step, LONGS)
    beta = max(min(contended, alone) - alpha, 0.05 * alpha) / LONG
    gamma = max(contended - alpha, 0.0) / (p * LONG)
    piece = PIECES.get(MPI.get_vendor()[0], 0)
    # from where the bytes of a ring's steps, which overlap, hide their start-ups
    ring = int(alpha / beta)
    machine = MessageCosts(alpha, beta, gamma, piece, ring=ring)
    each = min(LONG, max(TOGETHER // p, 1))
    turns = TURNS if len(set(nodes)) > 1 else MANY
    native = yield from timing(comm, _gather(comm, each), 1, turns)
    return replace(machine, library=native / estimate.ring(np.full(p, each), machine))


def worst(
    comm: MPI.Intracomm, step: Callable[[], None], times: int, turns: int = TURNS
) -> float:
    """The time of a step: in the fastest turn, on the slowest rank."""
    return completed(timing(comm, step, times, turns))


def timing(
    comm: MPI.Intracomm, step: Callable[[], None], times: int, turns: int = TURNS
) -> Measurement[float]:
    """Time a step, a turn at a time: the fastest turn counts, on the slowest rank.

    The first step does not count: it opens connections, and waits behind what was sent
    before.
    """
    step()
    yield
    comm.Barrier()
    begin = perf_counter()
    step()
    once = np.array(perf_counter() - begin)
    comm.Allreduce(MPI.IN_PLACE, once, MPI.MAX)
    if once > SLOW:
        times, turns = 1, min(max(int(SPENT / once), 2), max(turns, MOST))
    seconds = np.empty(turns)
    for turn in range(turns):
        yield
        comm.Barrier()
        begin = perf_counter()
        for _ in range(times):
            step()
        seconds[turn] = (perf_counter() - begin) / times
    comm.Allreduce(MPI.IN_PLACE, seconds, MPI.MAX)
    return float(seconds.min())


@contextmanager
def shift(
    comm: MPI.Intracomm, nbytes: int, only_to: int | None = None
) -> Iterator[Callable[[], None]]:
    """A message to the right from every rank, or one from rank 0 only."""
    p, r = comm.Get_size(), comm.Get_rank()
    out, into = np.zeros(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
    everyone = only_to is None
    send = comm.Send_init(out, (r + 1) % p if only_to is None else only_to, 0)
    receive = comm.Recv_init(into, (r - 1) % p if everyone else 0, 0)
    steps = [receive] * (everyone or r == only_to) + [send] * (everyone or r == 0)

    def step() -> None:
        for request in steps:
            request.Start()
        for request in steps:
            request.Wait()

    yield step
    send.Free()
    receive.Free()


def _gather(comm: MPI.Intracomm, nbytes: int) -> Callable[[], None]:
    """The library's own Allgather of equal blocks."""
    out = np.zeros(nbytes, np.uint8)
    into = np.zeros(nbytes * comm.Get_size(), np.uint8)
    return lambda: comm.Allgather(out, into)
