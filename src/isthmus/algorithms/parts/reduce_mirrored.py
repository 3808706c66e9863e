"""A reduction out of a broadcast: its messages reversed, in reverse order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ...schedules.ir import (
    Comm,
    Copy,
    Library,
    Mask,
    Program,
    Recv,
    Reduce,
    Round,
    Send,
    Span,
)
from ...schedules.layout import Shares


@dataclass(frozen=True)
class Mirror:
    """The use of buffers in a reduction that is a broadcast backwards.

    The first message of a piece arrives where the result grows, so that it needs no
    copy: in "recv" at the root, and elsewhere in "tmp", behind the space for later
    messages.
    """

    pieces: Shares
    at_root: Mask
    gives: Mask
    incoming: int

    def places(self, piece: Span) -> tuple[tuple[Span, Mask], ...]:
        """The places of the growing result, at the root and at the other ranks."""
        grown = Span("tmp", piece.start + self.incoming, piece.size)
        return (piece, self.at_root), (grown, self.at_root ^ True)

    def hand_on(self, c: Recv, piece: Span, begun: Mask) -> Iterator[Comm]:
        """Send the sum that has grown of a piece, or the own contribution."""
        (_, (grown, _)) = self.places(piece)
        yield Send(c.frm, (grown,), c.when & begun)
        yield Send(c.frm, (replace(piece, buf="send"),), c.when & (begun ^ True))

    def take(self, c: Send, piece: Span, begun: Mask) -> Iterator[Comm]:
        """Receive a piece's first message where the sum grows, and others beside."""
        for place, is_place in self.places(piece):
            yield Recv(c.to, (place,), c.when & is_place & (begun ^ True))
        yield Recv(c.to, (Span("tmp", 0, piece.size),), c.when & begun)

    def combine(self, c: Send, piece: Span, begun: Mask) -> Iterator[Reduce]:
        """Reduce the own contribution and later messages into the first message."""
        own, arrived = replace(piece, buf="send"), Span("tmp", 0, piece.size)
        for place, is_place in self.places(piece):
            yield Reduce(own, place, c.when & is_place & self.gives & (begun ^ True))
            yield Reduce(arrived, place, c.when & is_place & begun)

    def back(self, forth: Round, begun: np.ndarray) -> Round:
        """A round of the broadcast backwards; `begun` notes the pieces that grow."""
        column = np.arange(np.size(self.at_root)) if np.ndim(self.at_root) else 0
        comm: list[Comm] = []
        steps: list[Reduce] = []
        for c in forth.comm:
            assert not isinstance(c, Library)
            (piece,) = c.data
            at = self.pieces.find(piece.start), column
            so_far = begun[at] if np.ndim(self.at_root) else bool(begun[at])
            if isinstance(c, Recv):
                comm += self.hand_on(c, piece, so_far)
            else:
                comm += self.take(c, piece, so_far)
                steps += self.combine(c, piece, so_far)
                begun[at] |= c.when & (piece.size > 0)
        return Round(tuple(comm), tuple(steps))


def mirrored(
    broadcast: Program,
    pieces: Shares,
    at_root: Mask,
    gives: Mask = True,
    incoming: int = 0,
) -> Program:
    """A broadcast of pieces backwards: its sends become receives that are reduced.

    No rank may receive a piece twice in the broadcast. If no rank sends a piece twice,
    a message is of higher ranks on a chain in rank order, and the own contribution goes
    to its left. Otherwise there must be scratch for a piece, and the operator must be
    commutative.
    """
    mirror = Mirror(pieces, at_root, gives, incoming)
    begun = np.zeros((pieces.n, np.size(at_root)), bool)
    for forth in reversed(list(broadcast)):
        yield mirror.back(forth, begun)
    if not begun.any():
        own, result = Span("send", 0, pieces.total), Span("recv", 0, pieces.total)
        yield Round(then=(Copy(own, result, at_root & gives),))
