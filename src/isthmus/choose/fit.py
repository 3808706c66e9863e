"""From measured times to a `Machine`: lines through them, sizes where they cross."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log

import numpy as np

from . import estimate
from .estimate import Machine

#: a byte takes this share of a start-up at the least
LEAST = 1e-6


@dataclass(frozen=True)
class Samples:
    """Seconds of messages on a communicator of p ranks, by their bytes.

    `contended`: everyone passes one to the right. `alone`: rank 0 does. `fan`: everyone
    passes short ones to so many ranks at once.
    """

    p: int
    contended: Mapping[int, float]
    alone: Mapping[int, float]
    fan: Mapping[int, float]


def line(times: Mapping[int, float]) -> tuple[float, float]:
    """The time of the shortest, and what each byte adds up to the longest.

    Not a line through all of them: what is in between may go faster than any long
    message can, in a buffer or in what a link lets through at once.
    """
    short, long = min(times), max(times)
    slope = (times[long] - times[short]) / max(long - short, 1)
    return times[short], max(slope, LEAST * times[short])


def machine(samples: Samples, piece: int = 0) -> Machine:
    """What messages cost, from samples of them."""
    alpha, crowded = line(samples.contended)
    beta = min(crowded, line(samples.alone)[1])
    further = min(line(samples.fan)[1], alpha)
    return Machine(alpha, beta, crowded / samples.p, piece, message=further)


def crossover(
    sizes: Sequence[int], below: Sequence[float], above: Sequence[float]
) -> int:
    """The size from which `above` is the way to go, and before it `below`.

    It lies where the least is lost on the measured sizes: one odd time does not move
    it far. If nothing is lost by always taking one of them, it lies at the first size
    or at twice the last.
    """
    gain = np.log(np.array(below) / np.array(above))
    # lost by switching at k: where below is slower before k, above slower from k on
    lost = [
        float(np.maximum(gain[:k], 0).sum() + np.maximum(-gain[k:], 0).sum())
        for k in range(len(sizes) + 1)
    ]
    k = int(np.argmin(lost))
    if k == 0:
        return sizes[0]
    if k == len(sizes):
        return 2 * sizes[-1]
    return _between(sizes[k - 1 : k + 1], gain[k - 1 : k + 1])


def _between(sizes: Sequence[int], gain: np.ndarray) -> int:
    """Where a gain is 1 between two sizes; in their middle, if it does not get there.

    Both in logarithms, in which times of messages are nearly straight.
    """
    low, high = float(gain[0]), float(gain[1])
    part = -low / (high - low) if low < 0 < high else 0.5
    return round(exp((1 - part) * log(sizes[0]) + part * log(sizes[1])))


def library_factor(p: int, times: Mapping[int, float], machine: Machine) -> float:
    """How many times as long the MPI library's call takes as its messages would.

    `times`: by the bytes of each of p equal blocks; the two largest count, since for
    small ones libraries have other algorithms.
    """
    plain = replace(machine, library=1.0)
    sizes = sorted(times)[-2:]
    ratios = [times[n] / estimate.library(np.full(p, n), plain) for n in sizes]
    return float(np.exp(np.mean(np.log(ratios))))
