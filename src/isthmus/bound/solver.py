"""Sparse linear programs for HiGHS, by scipy, which is imported when it is needed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np


def highs() -> tuple[Any, Any]:
    """scipy's optimizer and its sparse arrays."""
    try:
        from scipy import optimize, sparse
    except ModuleNotFoundError:
        raise ValueError('bounds need: pip install "isthmus[bound]"') from None
    return optimize, sparse


@dataclass
class LinearProgram:
    """Variables from 0 to a bound, or without one, and linear constraints."""

    #: of each variable its cost, its upper bound, and 1 if it must be an integer
    cost: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    whole: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    factors: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    def variable(self, cost: float = 0.0, upper: float = inf, whole: int = 0) -> int:
        """The number of a new variable."""
        self.cost.append(cost)
        self.upper.append(upper)
        self.whole.append(whole)
        return len(self.cost) - 1

    def require(
        self, terms: Iterable[tuple[int, float]], low: float, high: float
    ) -> None:
        """Require that the sum of variables times factors lies between low and high."""
        row = len(self.low)
        for variable, factor in terms:
            self.rows.append(row)
            self.columns.append(variable)
            self.factors.append(factor)
        self.low.append(low)
        self.high.append(high)

    def solve(self, seconds: float) -> tuple[bool | None, np.ndarray | None]:
        """Whether a solution exists, and the best one of the search.

        None stands for a search that was too short to tell.
        """
        optimize, sparse = highs()
        shape = len(self.low), len(self.cost)
        matrix = sparse.csr_array((self.factors, (self.rows, self.columns)), shape)
        outcome = optimize.milp(
            np.array(self.cost),
            integrality=np.array(self.whole),
            bounds=optimize.Bounds(0.0, np.array(self.upper)),
            constraints=optimize.LinearConstraint(matrix, self.low, self.high),
            options={"time_limit": max(seconds, 0.1)},
        )
        if outcome.x is not None:
            return True, outcome.x
        # 2 is infeasible; 1 and 4 are limits and numerical trouble
        return (False if outcome.status == 2 else None), None
