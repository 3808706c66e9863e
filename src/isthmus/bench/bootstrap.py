"""Confidence intervals of medians and of their ratios, by resampling (Efron 1979).

Launches differ more than the repetitions of one launch do. So launches are drawn first,
and then repetitions of each; contenders that took turns in a repetition stay together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

SAMPLES = 1000
CONFIDENCE = 0.95


class Interval(NamedTuple):
    """From and to."""

    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Resampled:
    """The medians of the contenders in each resample: [contender, resample]."""

    medians: np.ndarray

    def median(self, i: int) -> Interval:
        """Where the median of a contender lies."""
        return _middle(self.medians[i])

    def ratio(self, i: int, j: int) -> Interval:
        """Where the median of one contender divided by that of another lies."""
        return _middle(self.medians[i] / self.medians[j])


def _middle(values: np.ndarray) -> Interval:
    """What the middle part of the values spans."""
    tail = (1 - CONFIDENCE) / 2
    return Interval(*np.quantile(values, (tail, 1 - tail)).tolist())


def resample(
    times: Sequence[Sequence[Sequence[float]]], samples: int = SAMPLES
) -> Resampled:
    """Resample times by contender, launch and repetition."""
    rng = np.random.default_rng(0)
    launches = [np.array(launch) for launch in zip(*times, strict=True)]
    medians = np.empty((len(times), samples))
    for k in range(samples):
        drawn = [launches[i] for i in rng.integers(len(launches), size=len(launches))]
        parts = [x[:, rng.integers(x.shape[1], size=x.shape[1])] for x in drawn]
        medians[:, k] = np.median(np.concatenate(parts, axis=1), axis=1)
    return Resampled(medians)
