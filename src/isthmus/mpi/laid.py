"""Collectives in memory that all processes share: what each lays down, and takes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from itertools import accumulate

from . import memory
from .board import LATER, Board, Place, Step, Way, Ways
from .buffers import Message
from .context_inter import InterContext
from .memory import Piece
from .reducing import Operator

_log = logging.getLogger("isthmus")
#: bytes that a rank can lay down in a turn, at least and at most, and all of a node
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
    """A Reduce_scatter: everyone lays its vector down, and takes its own part of the
    sum of those of the other group; None where no memory is shared. A long vector takes
    several turns, with a piece of each part in every one."""
    unit, total = by.unit, sum(here)
    found = _found(c, "inter_reduce_scatter", total * unit)
    if found is None:
        return None
    board, room, place = found
    turns = _turns(total, room // unit, c.p + c.q)
    vector, result = _address(send), _address(recv) - sum(here[: c.index]) * unit
    small, large = sorted((c.p, c.q))
    saved = large / small - 1 - 1 / small
    make = _by_shares if saved * total * unit // turns >= TURN else _at_once
    ways: list[Ways] = []
    for k in range(turns):
        ours, theirs = pieces(there, k, turns), pieces(here, k, turns)
        lay = [(vector + at * unit, n * unit) for at, _, n in ours]
        at, where, n = theirs[c.index]
        lengths = [sum(n for *_, n in x) for x in (ours, theirs)]
        ways += make(c, by, place, lay, lengths, (where, n), result + at * unit)
    return _in_turns(board, ways)


def allreduce(
    c: InterContext, send: Message, recv: Message, by: Operator, total: int
) -> Ways | None:
    """An Allreduce: everyone lays its vector down, and takes the sum of those of the
    other group. None where no memory is shared. A long vector is done in pieces."""
    unit = by.unit
    found = _found(c, "inter_allreduce", total * unit)
    if found is None:
        return None
    board, room, place = found
    turns = _turns(total, room // unit, 1)
    saved = max(c.p, c.q) - 2
    make = _by_shares if saved * total * unit // turns >= TURN else _at_once
    ways: list[Ways] = []
    for k in range(turns):
        ((at, _, n),) = pieces([total], k, turns)
        lay = [(_address(send) + at * unit, n * unit)]
        target = _address(recv) + at * unit
        ways += make(c, by, place, lay, [n, n], (0, n), target)
    return _in_turns(board, ways)


def _at_once(
    c: InterContext,
    by: Operator,
    place: Place,
    lay: Sequence[Piece],
    lengths: Sequence[int],
    wanted: Piece,
    target: int,
) -> list[Ways]:
    """A sum in one turn: everyone lays its vector down, and combines what it wants of
    those of the other group. Numbers of elements are given by where they lie there."""

    def way(row: int) -> Way:
        at, n = (x * by.unit for x in wanted)
        sources = [(place(row, i) + at, n) for i in c.senders]
        return _copies(lay, place(row, c.number)), _combined(by, sources, (target, n))

    return [(way(0), way(1))]


def _by_shares(
    c: InterContext,
    by: Operator,
    place: Place,
    lay: Sequence[Piece],
    lengths: Sequence[int],
    wanted: Piece,
    target: int,
) -> list[Ways]:
    """A sum in two turns: everyone lays its vector down, and combines a share of the
    vectors of each group, whatever their sizes; then it takes what it wants."""
    ranks, unit = c.p + c.q, by.unit
    ours, theirs = ([pieces([n], i, ranks)[0] for i in range(ranks)] for n in lengths)

    def combine(row: int) -> Way:
        steps: list[Step] = []
        target = place(1 - row, c.number)
        # the share of group A first, so that all find it
        sides = [(c.senders, theirs), (_here(c), ours)]
        for members, shares in sides if c.mine else sides[::-1]:
            start, _, n = shares[c.number]
            sources = [(place(row, i) + start * unit, n * unit) for i in members]
            steps += _combined(by, sources, (target, n * unit))
            target += n * unit
        return _copies(lay, place(row, c.number)), tuple(steps)

    def collect(row: int) -> Way:
        found = []
        for i, (start, _, n) in enumerate(theirs):
            first = max(start, wanted[0])
            last = min(start + n, sum(wanted))
            before = 0 if c.mine else ours[i][2]
            at = place(row, i) + (before + first - start) * unit
            found.append((at, max(last - first, 0) * unit))
        return (), _copies(found, target)

    return [(combine(0), combine(1)), (collect(0), collect(1))]


def _here(c: InterContext) -> range:
    """The numbers of the own group."""
    return range(c.here_base, c.here_base + c.here)


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
    first, *rest = all_ways
    if not rest:
        return first
    later = [(ways, board.said(LATER + k)) for k, ways in enumerate(rest)]

    def way(before: tuple[Step, ...], after: tuple[Step, ...]) -> Way:
        return before, (partial(board.turns, after, later),)

    return way(*first[0]), way(*first[1])


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
    """The bytes that each of some ranks can lay down in one turn, of so many: a power
    of two, so that calls of about one length share a room."""
    most = max(SHORT, min(LONG, ALL // ranks))
    return min(most, max(SHORT, 1 << (nbytes - 1).bit_length()))


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
