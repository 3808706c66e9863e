"""Conservation of a remapping: the integrals of both sides."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Integrals:
    """The integrals of a field over the grids of source and target."""

    source: float
    target: float

    @property
    def error(self) -> float:
        """The difference of the integrals, relative to the source's."""
        if self.source == self.target:
            return 0.0
        return abs(self.target - self.source) / (abs(self.source) or abs(self.target))

    def __str__(self) -> str:
        return (
            f"source {self.source:.15g}, target {self.target:.15g}, "
            f"relative difference {self.error:.1e}"
        )
