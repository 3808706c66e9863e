"""The costs of messages from measured times, and the sizes where algorithms cross."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log

import numpy as np

from . import estimate
from .estimate import MessageCosts

#: the least time of a byte, as a share of a start-up
MIN_BYTE_PER_STARTUP = 1e-6


@dataclass(frozen=True)
class Samples:
    """Seconds of messages on a communicator of p ranks, by their bytes.

    `contended`: all ranks send a message to the right. `alone`: only rank 0 sends a
    message. `fan`, by numbers of ranks: all ranks send short messages to so many ranks
    at once.
    """

    p: int
    contended: Mapping[int, float]
    alone: Mapping[int, float]
    fan: Mapping[int, float]


def line(times: Mapping[int, float]) -> tuple[float, float]:
    """The time of the shortest message, and the time of a byte up to the longest.

    Not a line through all times: messages of medium length may be faster per byte than
    any long message, in a buffer or in a link's burst.
    """
    short, long = min(times), max(times)
    slope = (times[long] - times[short]) / max(long - short, 1)
    return times[short], max(slope, MIN_BYTE_PER_STARTUP * times[short])


def machine(samples: Samples, piece: int = 0) -> MessageCosts:
    """The costs of messages, from samples."""
    alpha, crowded = line(samples.contended)
    beta = min(crowded, line(samples.alone)[1])
    further = min(line(samples.fan)[1], alpha)
    return MessageCosts(alpha, beta, crowded / samples.p, piece, message=further)


def crossover(
    sizes: Sequence[int], below: Sequence[float], above: Sequence[float]
) -> int:
    """The size from which `above` is better, where `below` is better for shorter sizes.

    The size loses the least time over the measured sizes, so that an odd time does not
    move it far. If one of the two never loses, the result is the first size or twice
    the last.
    """
    gain = np.log(np.array(below) / np.array(above))
    # the loss of a switch at k: where below is slower before k, above slower from k on
    losses = [
        float(np.maximum(gain[:k], 0).sum() + np.maximum(-gain[k:], 0).sum())
        for k in range(len(sizes) + 1)
    ]
    k = int(np.argmin(losses))
    if k == 0:
        return sizes[0]
    if k == len(sizes):
        return 2 * sizes[-1]
    return _between(sizes[k - 1 : k + 1], gain[k - 1 : k + 1])


def _between(sizes: Sequence[int], gain: np.ndarray) -> int:
    """The size between two sizes where the gain is 1; the middle, if nowhere.

    Sizes and gains are in logarithms, in which times of messages are nearly straight.
    """
    low, high = float(gain[0]), float(gain[1])
    part = -low / (high - low) if low < 0 < high else 0.5
    return round(exp((1 - part) * log(sizes[0]) + part * log(sizes[1])))


def library_factor(p: int, times: Mapping[int, float], machine: MessageCosts) -> float:
    """The time of the MPI library's call, as a multiple of the time of its messages.

    `times` are by the bytes of each of p equal blocks; the two largest count, since
    libraries have other algorithms for small blocks.
    """
    plain = replace(machine, library=1.0)
    sizes = sorted(times)[-2:]
    ratios = [times[n] / estimate.library(np.full(p, n), plain) for n in sizes]
    return float(np.exp(np.mean(np.log(ratios))))
