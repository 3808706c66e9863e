"""The costs of messages of each rank, where hosts differ."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

#: hosts are unequal beyond this ratio: measurements of equal hosts vary by less
MIN_UNEQUAL_RATIO = 2.0


@dataclass(frozen=True)
class Hosts:
    """Start-up time and time per element of the host of each rank.

    A message takes as long as the slower of its two ends.
    """

    alphas: tuple[float, ...]
    betas: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse start-up times and times per element of different ranks."""
        if len(self.alphas) != len(self.betas):
            raise ValueError("as many start-up times as times per element are needed")

    @classmethod
    def equal(cls, n: int) -> Hosts:
        """n hosts of one speed."""
        return cls((0.0,) * n, (1.0,) * n)

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.alphas), np.array(self.betas)

    def times(self, a: np.ndarray, b: np.ndarray, size: np.ndarray | int) -> np.ndarray:
        """The times of messages between the ranks a and b."""
        alpha, beta = self._arrays
        startup = np.maximum(alpha[a], alpha[b])
        durations: np.ndarray = startup + np.maximum(beta[a], beta[b]) * size
        return durations

    def own(self, size: int) -> np.ndarray:
        """The time of a message of each rank to a rank of the same speed."""
        everyone = np.arange(len(self.alphas))
        return self.times(everyone, everyone, size)

    @property
    def unequal(self) -> bool:
        """Whether a host takes more than MIN_UNEQUAL_RATIO times as long as another."""
        return any(
            max(x) > MIN_UNEQUAL_RATIO * min(x) for x in (self.alphas, self.betas)
        )

    def only(self, ranks: Iterable[int]) -> Hosts:
        """The hosts of a selection of ranks, in its order."""
        chosen_ranks = list(ranks)
        return Hosts(
            *(tuple(x[r] for r in chosen_ranks) for x in (self.alphas, self.betas))
        )

    def in_units(self, unit: int) -> Hosts:
        """The hosts' times per element where an element is `unit` of today's."""
        return Hosts(self.alphas, tuple(unit * x for x in self.betas))
