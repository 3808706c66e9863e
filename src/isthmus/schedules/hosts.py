"""What messages of each rank cost, where hosts differ."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

#: what was measured varies by less than this where hosts are equal
UNEQUAL = 2.0


@dataclass(frozen=True)
class Hosts:
    """Start-up time and time per element of the host of each rank. A message takes what
    the slower of its two ends takes."""

    alphas: tuple[float, ...]
    betas: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse one without the other."""
        if len(self.alphas) != len(self.betas):
            raise ValueError("as many start-up times as times per element are needed")

    @classmethod
    def equal(cls, n: int) -> Hosts:
        """n hosts that do not differ."""
        return cls((0.0,) * n, (1.0,) * n)

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.alphas), np.array(self.betas)

    def times(self, a: np.ndarray, b: np.ndarray, size: np.ndarray | int) -> np.ndarray:
        """How long messages between the ranks a and b take."""
        alpha, beta = self._arrays
        start = np.maximum(alpha[a], alpha[b])
        found: np.ndarray = start + np.maximum(beta[a], beta[b]) * size
        return found

    def own(self, size: int) -> np.ndarray:
        """How long a message of each rank to one as fast takes."""
        everyone = np.arange(len(self.alphas))
        return self.times(everyone, everyone, size)

    @property
    def unequal(self) -> bool:
        """Whether some take more than UNEQUAL times as long as others."""
        return any(max(x) > UNEQUAL * min(x) for x in (self.alphas, self.betas))

    def only(self, ranks: Iterable[int]) -> Hosts:
        """The same of some ranks, in their order."""
        few = list(ranks)
        return Hosts(*(tuple(x[r] for r in few) for x in (self.alphas, self.betas)))

    def in_units(self, unit: int) -> Hosts:
        """The same for elements of so many of what were elements."""
        return Hosts(self.alphas, tuple(unit * x for x in self.betas))
