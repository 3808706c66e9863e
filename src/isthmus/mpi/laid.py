"""Collectives in memory that all processes share: what each lays down, and takes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from itertools import accumulate

from . import memory
from .board import Board, Place, Step, Way, Ways
from .buffers import Message
from .context_inter import InterContext
from .memory import Piece
from .reducing import Operator

_log = logging.getLogger("isthmus")
#: bytes that a rank can lay down in a turn: of a short vector, and of a long one, of
#: which all ranks of a node share so many
SHORT, LONG, ALL = 1 << 16, 1 << 20, 1 << 24
#: a turn takes as long as to combine so many bytes (measured)
TURN = 1 << 17
#: what would take more turns than that goes by messages
MOST = 128


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
    unit = by.unit
    found = _found(c, "inter_reduce_scatter", sum(here) * unit)
    if found is None:
        return None
    board, room, place = found
    turns = _turns(sum(here), room // unit, c.p + c.q)
    vector, part = _address(send), _address(recv) - sum(here[: c.index]) * unit

    def way(k: int, row: int) -> Way:
        laid = pieces(there, k, turns)
        lay = [(vector + at * unit, n * unit) for at, _, n in laid]
        at, where, n = pieces(here, k, turns)[c.index]
        sources = [(place(row, i) + where * unit, n * unit) for i in c.senders]
        target = part + at * unit, n * unit
        return _copies(lay, place(row, c.number)), _combined(by, sources, target)

    return _in_turns(board, [(way(k, 0), way(k, 1)) for k in range(turns)])


def allreduce(
    c: InterContext, send: Message, recv: Message, by: Operator, total: int
) -> Ways | None:
    """An Allreduce: everyone lays its vector down, and combines those of the other
    group; or only a share of it, which it lays down in another turn. None where no
    memory is shared. A long vector is done piece by piece."""
    unit, here = by.unit, range(c.here_base, c.here_base + c.here)
    found = _found(c, "inter_allreduce", total * unit)
    if found is None:
        return None
    board, room, place = found
    turns = _turns(total, room // unit, 1)
    vector, result = _address(send), _address(recv)
    shared = by_shares(c.p, c.q, total * unit // turns)
    ways: list[Ways] = []

    def combine(row: int, piece: Piece, mine: Piece, target: int) -> Way:
        (at, n), theirs = mine, [place(row, i) for i in c.senders]
        lay = _copies([piece], place(row, c.number))
        return lay, _combined(by, [(x + at, n) for x in theirs], (target, n))

    def collect(row: int, shares: Sequence[Piece], target: int) -> Way:
        laid = [(place(row, i), n) for i, (_, n) in zip(here, shares, strict=True)]
        return (), _copies(laid, target)

    for k in range(turns):
        ((at, _, n),) = pieces([total], k, turns)
        piece, target = (vector + at * unit, n * unit), result + at * unit
        if shared:
            cuts = [pieces([n], i, c.here)[0] for i in range(c.here)]
            shares = [(start * unit, length * unit) for start, _, length in cuts]
            mine, then = shares[c.index], (place(1, c.number), place(0, c.number))
            ways.append(
                (combine(0, piece, mine, then[0]), combine(1, piece, mine, then[1]))
            )
            ways.append((collect(0, shares, target), collect(1, shares, target)))
        else:
            mine = 0, n * unit
            ways.append(
                (combine(0, piece, mine, target), combine(1, piece, mine, target))
            )
    return _in_turns(board, ways)


def exchange(
    c: InterContext,
    collective: str,
    sends: Sequence[Piece],
    recvs: Sequence[Piece],
    sizes: Sequence[Sequence[int]],
) -> Ways | None:
    """Everyone lays its blocks down, one for each receiver or one for all, and takes
    what is for it; `sizes` has the bytes of everyone's blocks. None where no memory is
    shared. Long blocks take several turns, with a piece of each in every one."""
    most = max(map(sum, sizes))
    found = _found(c, collective, most)
    if found is None:
        return None
    board, room, place = found
    turns = _turns(most, room, max(map(len, sizes)))

    def way(k: int, row: int) -> Way:
        lay = _copies([_piece(x, k, turns) for x in sends], place(row, c.number))
        take: list[Step] = []
        for i, block in zip(c.senders, recvs, strict=True):
            blocks = pieces(sizes[i], k, turns)
            _, at, n = blocks[c.index % len(blocks)]
            take += _copies([(place(row, i) + at, n)], _piece(block, k, turns)[0])
        return lay, tuple(take)

    return _in_turns(board, [(way(k, 0), way(k, 1)) for k in range(turns)])


def _piece(block: Piece, k: int, of: int) -> Piece:
    """The k-th of so many pieces of a block."""
    address, n = block
    ((start, _, length),) = pieces([n], k, of)
    return address + start, length


def by_shares(p: int, q: int, nbytes: int) -> bool:
    """Whether p and q processes each combine but a share of vectors of so many bytes:
    where that saves more than another turn takes."""
    whole = max(p, q)
    shares = max(q / p, p / q) + 1
    return (whole - shares) * nbytes >= TURN


def _found(
    c: InterContext, collective: str, nbytes: int
) -> tuple[Board, int, Place] | None:
    """The board, the bytes each rank can lay down there in a turn, and where."""
    board, room = c.all_agree.board, _room(c.p + c.q, nbytes)
    if board is None or nbytes > MOST * room:
        return None
    place = board.room(room)
    if place is None:
        return None
    _log.debug("%s: %d bytes, in memory that all share", collective, nbytes)
    return board, room, place


def _in_turns(board: Board, all_ways: Sequence[Ways]) -> Ways:
    """One turn after the other: the later ones are part of the first."""
    ((before, after), (before_too, after_too)), *rest = all_ways
    later = tuple(partial(board.turn, ways, board.said(1)) for ways in rest)
    return (before, after + later), (before_too, after_too + later)


def pieces(counts: Sequence[int], k: int, of: int) -> list[tuple[int, int, int]]:
    """A piece of each part of a vector, the k-th of so many: where it begins in the
    vector, where it lies if only these pieces follow each other, and its length."""
    skipped = [n * k // of for n in counts]
    lengths = [n * (k + 1) // of - i for n, i in zip(counts, skipped, strict=True)]
    starts = accumulate(counts[:-1], initial=0)
    at = [start + i for start, i in zip(starts, skipped, strict=True)]
    return list(zip(at, accumulate(lengths[:-1], initial=0), lengths, strict=True))


def fits(ranks: int, nbytes: int) -> bool:
    """Whether each of some ranks can lay so many bytes down in one turn."""
    return nbytes <= _room(ranks, nbytes)


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
