"""Sparse linear programs, solved by HiGHS in scipy, an optional dependency."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np


def highs() -> tuple[Any, Any]:
    """The modules of scipy for optimization and for sparse arrays."""
    try:
        from scipy import optimize, sparse
    except ModuleNotFoundError:
        raise ValueError('bounds need: pip install "isthmus[bound]"') from None
    return optimize, sparse


@dataclass
class LinearProgram:
    """A linear program: variables from 0 to a bound or infinity, and constraints."""

    #: by variable: the cost, the upper bound, and 1 if only integers are allowed
    cost: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    whole: list[int] = field(default_factory=list)
    #: the nonzero entries of the matrix: constraint, variable, factor
    rows: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    factors: list[float] = field(default_factory=list)
    #: by constraint: the least and the greatest sum
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    def variable(self, cost: float = 0.0, upper: float = inf, whole: int = 0) -> int:
        """Add a variable, and return its number."""
        self.cost.append(cost)
        self.upper.append(upper)
        self.whole.append(whole)
        return len(self.cost) - 1

    def require(
        self, terms: Iterable[tuple[int, float]], low: float, high: float
    ) -> None:
        """Require a sum of variables times factors to lie between low and high."""
        row = len(self.low)
        for variable, factor in terms:
            self.rows.append(row)
            self.columns.append(variable)
            self.factors.append(factor)
        self.low.append(low)
        self.high.append(high)

    def solve(self, seconds: float) -> tuple[bool | None, np.ndarray | None]:
        """Whether a solution exists, and the best solution of the search.

        None stands for an unknown answer, since a search ends after `seconds`.
        """
        optimize, sparse = highs()
        shape = len(self.low), len(self.cost)
        # 32-bit indices, since the solver of scipy 1.11 takes no others
        indices = np.array([self.rows, self.columns], np.int32)
        matrix = sparse.csr_array((self.factors, tuple(indices)), shape)
        outcome = optimize.milp(
            np.array(self.cost),
            integrality=np.array(self.whole),
            bounds=optimize.Bounds(0.0, np.array(self.upper)),
            constraints=optimize.LinearConstraint(matrix, self.low, self.high),
            options={"time_limit": max(seconds, 0.1)},
        )
        if outcome.x is not None:
            return True, outcome.x
        # a limit of time (1) or numerical trouble (4) leaves the answer unknown
        is_infeasible = outcome.status == 2
        return (False if is_infeasible else None), None
