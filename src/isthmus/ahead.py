"""When a receive may be posted before its round: if nothing touches it till then."""

from __future__ import annotations

from collections.abc import Sequence

from .ir import Recv, Round, Span
from .program import touches

#: how many rounds ahead of its own a receive is posted at most
WINDOW = 4


def _meet(x: Span, y: Span) -> bool:
    return x.buf == y.buf and x.start < y.start + y.size and y.start < x.start + x.size


def posting(rounds: Sequence[Round], window: int = WINDOW) -> list[list[int]]:
    """For each round, for each of its receives, the round in which to post it.

    Receives from one source keep their order, since its messages match in that order.
    """
    touched = [tuple(touches(r)) for r in rounds]
    earliest: dict[int, int] = {}
    result = []
    for k, r in enumerate(rounds):
        chosen = []
        for c in (c for c in r.comm if isinstance(c, Recv)):
            at, limit = k, max(k - window, earliest.get(c.frm, 0))
            while at > limit and not any(
                _meet(s, t) for s in c.data for t in touched[at - 1]
            ):
                at -= 1
            earliest[c.frm] = at
            chosen.append(at)
        result.append(chosen)
    return result
