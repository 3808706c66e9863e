"""Confidence intervals of medians and of their ratios, by resampling (Efron 1979).

Launches differ more than the repetitions of a launch do, so the obvious resampling of
all repetitions together would give too narrow intervals. Launches are drawn first, and
then repetitions of each. Contenders that took turns in a repetition stay together,
since any disturbance of the repetition disturbed all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

RESAMPLES = 1000
CONFIDENCE = 0.95


class Interval(NamedTuple):
    """The ends of a confidence interval."""

    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Resampled:
    """The medians of the contenders in each resample: [contender, resample]."""

    medians: np.ndarray

    def median(self, i: int) -> Interval:
        """The interval of the median of contender i."""
        return _central(self.medians[i])

    def ratio(self, i: int, j: int) -> Interval:
        """The interval of the median of contender i divided by the median of contender
        j."""
        return _central(self.medians[i] / self.medians[j])


def _central(values: np.ndarray) -> Interval:
    """The interval of the values without the tails at both ends."""
    tail = (1 - CONFIDENCE) / 2
    return Interval(*np.quantile(values, (tail, 1 - tail)).tolist())


def resample(
    times: Sequence[Sequence[Sequence[float]]], samples: int = RESAMPLES
) -> Resampled:
    """Resample times by contender, launch and repetition."""
    rng = np.random.default_rng(0)
    launches = [np.array(launch) for launch in zip(*times, strict=True)]
    medians = np.empty((len(times), samples))
    for k in range(samples):
        drawn = [launches[i] for i in rng.integers(len(launches), size=len(launches))]
        parts = [
            launch[:, rng.integers(launch.shape[1], size=launch.shape[1])]
            for launch in drawn
        ]
        # twice as fast as numpy's median, of so few values
        values = np.sort(np.concatenate(parts, axis=1), axis=1)
        n = values.shape[1]
        medians[:, k] = (values[:, (n - 1) // 2] + values[:, n // 2]) / 2
    return Resampled(medians)
