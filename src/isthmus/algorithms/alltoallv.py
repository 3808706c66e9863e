"""Alltoall and Alltoallv inside a group.

`send[j]` is the block for rank j, `recv[j]` the place of the block from rank j. A rank
knows no other sizes, except in `bruck`, where blocks pass through ranks that are
neither their source nor their target.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from ..schedules.ir import Copy, Index, Program, Recv, Round, Send, Span
from ..schedules.layout import Blocks, Passing
from ..schedules.registry import algorithm
from .parts.patterns import turns_cost

ALLTOALLS = ("alltoall", "alltoallv")


def _own(r: Index, send: Blocks, recv: Blocks) -> Round:
    """The local copy of the block that a rank sends to itself."""
    return Round(then=(Copy(send[r][0], recv[r][0]),))


@algorithm(*ALLTOALLS, paper="MPICH; Open MPI", cost=turns_cost)
def pairwise(p: int, r: Index, send: Blocks, recv: Blocks) -> Program:
    """In round t send to the rank t further on, receive from the rank t before.

    p - 1 rounds, one after the other, each as long as its largest block.
    """
    yield _own(r, send, recv)
    for t in range(1, p):
        target, source = (r + t) % p, (r - t) % p
        yield Round((Recv(source, recv[source]), Send(target, send[target])))


@algorithm(*ALLTOALLS, paper="folklore", cost=turns_cost)
def rotated(p: int, r: Index, send: Blocks, recv: Blocks, window: int = 32) -> Program:
    """Everyone sends to everyone, each beginning with the next rank, many at a time.

    p - 1 turns, of which `window` are in flight at once.
    """
    yield _own(r, send, recv)
    for first in range(1, p, window):
        turns = range(first, min(first + window, p))
        yield Round(
            (
                *(Recv((r - t) % p, recv[(r - t) % p]) for t in turns),
                *(Send((r + t) % p, send[(r + t) % p]) for t in turns),
            )
        )


def digits(p: int, radix: int) -> list[list[tuple[int, list[int]]]]:
    """For each digit of the numbers below p, the values of the digit except zero.

    A value stands as the distance of its message, with all ways (distances from source
    to target) that have the digit.
    """
    levels, digit_value = [], 1
    while digit_value < p:
        steps = [z * digit_value for z in range(1, radix) if z * digit_value < p]
        levels.append(
            [
                (distance, _with_digit(p, radix, digit_value, distance // digit_value))
                for distance in steps
            ]
        )
        digit_value *= radix
    return levels


def _with_digit(p: int, radix: int, place: int, digit: int) -> list[int]:
    return [way for way in range(p) if way // place % radix == digit]


def _bruck_cost(p: int, k: float, alpha: float, beta: float, radix: int = 2) -> float:
    """The time of all messages, each with the blocks whose way has a certain digit."""
    messages = [len(ways) for level in digits(p, radix) for _, ways in level]
    return len(messages) * alpha + sum(messages) * k * beta


@algorithm(
    "alltoallv",
    name="bruck",
    paper="Fan et al. 2024 (TuNA); Bruck et al. 1997",
    cost=_bruck_cost,
    own_counts=True,
)
@algorithm("alltoall", paper="Bruck et al. 1997", cost=_bruck_cost)
def bruck(p: int, r: Index, send: Blocks, recv: Blocks, radix: int = 2) -> Program:
    """Blocks travel together round the circle of ranks, by the digits of their ways.

    ceil(log_radix p) rounds of at most radix - 1 messages. A block travels once for
    every nonzero digit of its way, so the algorithm is for short blocks, and with a
    larger radix for longer ones. Scratch for two blocks of each way.
    """
    levels = digits(p, radix)
    # the nonzero digits of each way
    levels_of_way: list[list[int]] = [[] for _ in range(p)]
    for level, steps in enumerate(levels):
        for _, ways in steps:
            for way in ways:
                levels_of_way[way].append(level)

    def block_size(level: int, way: int) -> Index:
        """The size of the block of a way before the block moves by a digit."""
        if isinstance(send, Passing):
            return int(send.held[level, way])
        origin = (r - way % radix**level) % p
        return send.size_of(origin, (origin + way) % p)

    # a block arrives at one of two places and leaves from the other, as both may be in
    # one round
    starts: dict[tuple[int, int], Index] = {}
    end: Index = 0
    for way, way_levels in enumerate(levels_of_way):
        for parity in range(2):
            stops = [
                block_size(level, way)
                for n, level in enumerate(way_levels)
                if n and n % 2 == parity
            ]
            if stops:
                starts[way, parity] = end
                end = end + reduce(np.maximum, stops)

    def stored_block(way: int, n: int) -> Span:
        """The scratch of the block of a way after n moves."""
        return Span("tmp", starts[way, n % 2], block_size(levels_of_way[way][n], way))

    yield _own(r, send, recv)
    for level, steps in enumerate(levels):
        comm: list[Recv | Send] = []
        for step, ways in steps:
            leaving_spans: list[Span] = []
            arriving_spans: list[Span] = []
            for way in ways:
                n = levels_of_way[way].index(level)
                is_last = n + 1 == len(levels_of_way[way])
                leaving_spans += [stored_block(way, n)] if n else send[(r + way) % p]
                arriving_spans += (
                    recv[(r - way) % p] if is_last else [stored_block(way, n + 1)]
                )
            comm.append(Recv((r - step) % p, tuple(arriving_spans)))
            comm.append(Send((r + step) % p, tuple(leaving_spans)))
        yield Round(tuple(comm))
