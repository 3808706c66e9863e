"""Machines as a probe or a tuning describes them, for tests of choices."""

from __future__ import annotations

from typing import Any

from isthmus.cost.machine import Level, LibraryCalls, Machine


def measured(
    alpha: float,
    beta: float,
    *,
    sharing: int = 1,
    slowdown: float = 1.0,
    piece_bytes: int = 0,
    gap: float = 1e-6,
    **of_level: Any,
) -> Machine:
    """A machine on which `sharing` ranks share a port; the rest of what its outermost
    level and its library's calls have."""
    inside = [Level(sharing, alpha, beta)] if sharing > 1 else []
    level = Level(None, alpha, beta, gap=gap, **of_level)
    library = LibraryCalls(slowdown, piece_bytes)
    return Machine((*inside, level), library=library)
