"""Which algorithm of the other collectives between groups, where nobody says.

Only from values that every rank with a part in it knows.
"""

from __future__ import annotations

from .recipe_between import Pair
from .registry import named


def _checked(collective: str, name: str, commutative: bool) -> str:
    if not commutative and named(collective, name).commutative:
        raise ValueError(
            f"{name!r} combines in any order, and the operator is not commutative"
        )
    named(collective, name)
    return name


def rooted(
    collective: str, name: str, q: int, nbytes: int, commutative: bool = True
) -> str:
    """For a root and q others, and so many bytes: of all, or of a block."""
    if name != "auto":
        return _checked(collective, name, commutative)
    return "linear" if collective.endswith("v") else "binomial"


def settled(
    collective: str, name: str, pair: Pair, nbytes: int, commutative: bool = True
) -> str:
    """For two groups, and so many bytes: of all, or of a block."""
    if name != "auto":
        return _checked(collective, name, commutative)
    if collective.startswith("inter_alltoall"):
        return "rotated"
    if collective == "inter_barrier":
        return "dissemination"
    return "bruck" if commutative else "ordered"
