"""When a receive may be posted before its round: if nothing touches it till then."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .ir import Data, Pieces, Recv, Round, Span
from .program import data_of

#: how many rounds ahead of its own a receive is posted at most
WINDOW = 4


class _Touched:
    """What a round reads and writes."""

    def __init__(self, r: Round) -> None:
        found = list(data_of(r))
        self.spans = [s for x in found if not isinstance(x, Pieces) for s in x]
        self.many = [_sorted(x) for x in found if isinstance(x, Pieces) and len(x)]

    def meets(self, data: Data) -> bool:
        """Whether any of it is touched."""
        if isinstance(data, Pieces):
            mine = _sorted(data)
            return any(_meet_many(mine, x) for x in self.many) or any(
                _meets_one(mine, s) for s in self.spans
            )
        return any(_meet(s, t) for s in data for t in self.spans) or any(
            _meets_one(x, s) for x in self.many for s in data
        )


def _meet(x: Span, y: Span) -> bool:
    return bool(
        x.buf == y.buf and x.start < y.start + y.size and y.start < x.start + x.size
    )


def _sorted(data: Pieces) -> Pieces:
    """In rising order, each with the furthest end so far in place of its own."""
    order = np.argsort(data.start, kind="stable")
    start = data.start[order]
    end = np.maximum.accumulate(start + data.size[order])
    return Pieces(data.buf, start, end - start)


def _meet_many(x: Pieces, y: Pieces) -> bool:
    """Whether two sorted sets of pieces have an element in common."""
    if x.buf != y.buf:
        return False
    before = np.searchsorted(y.start, x.start + x.size) - 1
    ends = (y.start + y.size)[before]
    return bool(((before >= 0) & (ends > x.start)).any())


def _meets_one(x: Pieces, s: Span) -> bool:
    one = Pieces(s.buf, np.array([s.start]), np.array([s.size]))
    return _meet_many(one, x)


def posting(rounds: Sequence[Round], window: int = WINDOW) -> list[list[int]]:
    """For each round, for each of its receives, the round in which to post it.

    Receives from one source keep their order, since its messages match in that order.
    """
    touched = [_Touched(r) for r in rounds]
    earliest: dict[int, int] = {}
    result = []
    for k, r in enumerate(rounds):
        chosen = []
        for c in (c for c in r.comm if isinstance(c, Recv)):
            at, limit = k, max(k - window, earliest.get(c.frm, 0))
            while at > limit and not touched[at - 1].meets(c.data):
                at -= 1
            earliest[c.frm] = at
            chosen.append(at)
        result.append(chosen)
    return result
