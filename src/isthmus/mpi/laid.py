"""Sums of vectors that are laid down in memory that all processes share."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from itertools import accumulate

from . import memory
from .board import Step, Way, Ways
from .buffers import Message
from .context_inter import InterContext
from .memory import Piece
from .reducing import Operator

_log = logging.getLogger("isthmus")
#: bytes that a rank can lay down in a turn: of a short vector, and of a long one, of
#: which all ranks of a node share so many
SHORT, LONG, ALL = 1 << 16, 1 << 20, 1 << 24


def reduce_scatter(
    c: InterContext,
    send: Message,
    recv: Message,
    by: Operator,
    here: Sequence[int],
    there: Sequence[int],
) -> Ways | None:
    """A Reduce_scatter: everyone lays its vector down, and combines its own part of
    those of the other group; None where no memory is shared. A long vector takes
    several turns, with a piece of each part in every one."""
    board, unit = c.all_agree.board, by.unit
    room = _room(c.p + c.q, sum(here) * unit)
    place = None if board is None else board.room(room)
    if board is None or place is None:
        return None
    turns = _turns(sum(here), room // unit, c.p + c.q)
    _log.debug("inter_reduce_scatter: in memory that all share, turns: %d", turns)
    vector, part = _address(send), _address(recv) - sum(here[: c.index]) * unit

    def way(k: int, row: int) -> Way:
        mine, theirs = place(row, c.number), [place(row, i) for i in c.senders]
        laid = pieces(there, k, turns)
        lay = _copies([(vector + at * unit, n * unit) for at, _, n in laid], mine)
        at, where, n = pieces(here, k, turns)[c.index]
        sources = [(x + where * unit, n * unit) for x in theirs]
        return lay, _combined(by, sources, (part + at * unit, n * unit))

    first, *rest = [(way(k, 0), way(k, 1)) for k in range(turns)]
    later = tuple(partial(board.turn, ways, board.said(1)) for ways in rest)
    (before, after), (before_too, after_too) = first
    return (before, after + later), (before_too, after_too + later)


def pieces(counts: Sequence[int], k: int, of: int) -> list[tuple[int, int, int]]:
    """A piece of each part of a vector, the k-th of so many: where it begins in the
    vector, where it lies if only these pieces follow each other, and its length."""
    skipped = [n * k // of for n in counts]
    lengths = [n * (k + 1) // of - i for n, i in zip(counts, skipped, strict=True)]
    starts = accumulate(counts[:-1], initial=0)
    at = [start + i for start, i in zip(starts, skipped, strict=True)]
    return list(zip(at, accumulate(lengths[:-1], initial=0), lengths, strict=True))


def _room(ranks: int, nbytes: int) -> int:
    """The bytes that each of some ranks lays down of a vector in one turn."""
    return SHORT if nbytes <= SHORT else max(SHORT, min(LONG, ALL // ranks))


def _turns(total: int, room: int, parts: int) -> int:
    """In how many turns a vector is laid down: a piece of each part may be by one
    element longer than that of another turn."""
    return 1 if total <= room else -(-total // (room - parts))


def _address(message: Message) -> int:
    """Where elements without gaps begin."""
    return message.base + message.displs[0]


def _copies(sources: Sequence[Piece], target: int) -> tuple[Step, ...]:
    """What copies pieces of memory one after the other."""
    view = memory.view(sources)
    if not view.nbytes:
        return ()
    return (memory.copier(view.pieces(0, view.nbytes), [(target, view.nbytes)]),)


def _combined(
    by: Operator, sources: Sequence[Piece], target: Piece
) -> tuple[Step, ...]:
    """What combines pieces of memory in their order."""
    if not target[1]:
        return ()
    *others, last = sources
    return memory.copier([last], [target]), *(by.step(x, target) for x in others[::-1])
