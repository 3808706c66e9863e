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
        self.spans: list[Span] = []
        self.many: list[Pieces] = []
        for data in data_of(r):
            if not isinstance(data, Pieces):
                self.spans += data
            elif len(data):
                self.many.append(_sorted(data))

    def meets(self, data: Data) -> bool:
        """Whether any of it is touched."""
        if isinstance(data, Pieces):
            mine = _sorted(data)
            return any(_meet_many(mine, x) for x in self.many) or any(
                _meets_one(mine, s) for s in self.spans
            )
        return _meet(data, self.spans) or any(
            _meets_one(x, s) for x in self.many for s in data
        )


def _meet(some: Sequence[Span], others: Sequence[Span]) -> bool:
    """Whether any two spans have an element in common."""
    for x in some:
        start, end = x.start, x.start + x.size
        for y in others:
            if y.start < end and start < y.start + y.size and x.buf == y.buf:
                return True
    return False


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


def _in_node(data: Data) -> bool:
    """Whether any of it is in memory that the ranks of a node share."""
    if isinstance(data, Pieces):
        return data.buf == "node"
    return any(s.buf == "node" for s in data)


def posting(rounds: Sequence[Round], window: int = WINDOW) -> list[list[int]]:
    """For each round, for each of its receives, the round in which to post it.

    Receives from one source keep their order, since its messages match in that order.
    One into "node" is not posted before a meeting.
    """
    touched = [_Touched(r) for r in rounds]
    earliest: dict[int, int] = {}
    result = []
    for k, r in enumerate(rounds):
        chosen = []
        for c in (c for c in r.comm if isinstance(c, Recv)):
            at, limit = k, max(k - window, earliest.get(c.frm, 0))
            shared = _in_node(c.data)
            while at > limit and not touched[at - 1].meets(c.data):
                if shared and rounds[at - 1].meet:
                    break  # until then others of the node may touch it
                at -= 1
            earliest[c.frm] = at
            chosen.append(at)
        result.append(chosen)
    return result
