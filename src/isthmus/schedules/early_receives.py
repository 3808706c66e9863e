"""Early receives: posted before their round, where no round between uses their spans.

A message that arrives before its receive is posted lies in a buffer of the MPI library
and is copied later, or its sender waits. With early receives, a rank of a ring has
several receives posted at any time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .ir import Data, Pieces, Recv, Round, Span
from .program import data_of, in_node

#: the most rounds by which a receive is posted before its own
MAX_ROUNDS_AHEAD = 4


class _TouchedData:
    """The spans read or written by a round."""

    def __init__(self, r: Round) -> None:
        self.spans: list[Span] = []
        self.pieces: list[Pieces] = []
        for data in data_of(r):
            if not isinstance(data, Pieces):
                self.spans += data
            elif len(data):
                self.pieces.append(_sorted(data))

    def meets(self, data: Data) -> bool:
        """Whether the round touches any element of a message."""
        if isinstance(data, Pieces):
            pieces = _sorted(data)
            return any(_meet_many(pieces, x) for x in self.pieces) or any(
                _meets_one(pieces, s) for s in self.spans
            )
        return _meet(data, self.spans) or any(
            _meets_one(x, s) for x in self.pieces for s in data
        )


def _meet(spans: Sequence[Span], written_or_read: Sequence[Span]) -> bool:
    """Whether two sequences of spans have an element in common."""
    for x in spans:
        start, end = x.start, x.start + x.size
        for y in written_or_read:
            if y.start < end and start < y.start + y.size and x.buf == y.buf:
                return True
    return False


def _sorted(data: Pieces) -> Pieces:
    """Pieces by rising start, each prolonged to the furthest end so far.

    The ends then rise too, so that a binary search tells whether any piece is met.
    """
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
    single = Pieces(s.buf, np.array([s.start]), np.array([s.size]))
    return _meet_many(single, x)


def posting(rounds: Sequence[Round], window: int = MAX_ROUNDS_AHEAD) -> list[list[int]]:
    """The round in which to post each receive, by the receive's own round.

    Receives from a source keep their order, since messages match in order. A receive
    into "node" is not posted before a meeting, because other ranks of the node may
    touch the memory until then.
    """
    touched = [_TouchedData(r) for r in rounds]
    earliest: dict[int, int] = {}
    post_rounds = []
    for k, r in enumerate(rounds):
        post_rounds_of_round = []
        for c in (c for c in r.comm if isinstance(c, Recv)):
            post_round, earliest_allowed = k, max(k - window, earliest.get(c.frm, 0))
            is_in_node = in_node(c.data)
            while post_round > earliest_allowed and not touched[post_round - 1].meets(
                c.data
            ):
                if is_in_node and rounds[post_round - 1].meet:
                    break
                post_round -= 1
            earliest[c.frm] = post_round
            post_rounds_of_round.append(post_round)
        post_rounds.append(post_rounds_of_round)
    return post_rounds
