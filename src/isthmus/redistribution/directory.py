"""The owners of wanted elements, for ranks that know only their own elements.

A table of all owners would fill the memory of a rank, so the flat global indices are
dealt out in blocks, and each rank is the directory of its blocks. Ranks report the runs
that they have or want to the directory ranks of the runs, and a directory rank answers
both sides with the peers of each run. This is the distributed directory of Pinar and
Hendrickson 2001, as in Zoltan and YAXT.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from .messages import Message
from .runs import Runs, cut_at, overlaps, spread

#: directory blocks of a rank: several, so that the owners of a dense region are spread
DIRECTORY_BLOCKS_PER_RANK = 16

#: rows of integers by the rank that sends or receives them
Rows = dict[int, np.ndarray]


def block_size(n: int, ranks: int) -> int:
    """The number of indices in a block, for n indices in all."""
    return max(-(-n // (DIRECTORY_BLOCKS_PER_RANK * ranks)), 1)


def addressed(runs: Runs, block: int, ranks: int) -> Rows:
    """The runs cut at blocks, as rows of start and size by directory rank."""
    start, size = cut_at(runs.start, runs.size, block)
    return split_by(start // block % ranks, np.stack((start, size), 1))


def split_by(ranks: np.ndarray, rows: np.ndarray) -> Rows:
    """Rows by rank, in order; `ranks` has the rank of each row."""
    if (ranks[1:] >= ranks[:-1]).all():
        return _sliced(ranks, rows)
    if ranks.max(initial=0) < 1 << 15:
        ranks = ranks.astype(np.int16)  # numpy sorts 16-bit integers in linear time
    order = np.argsort(ranks, kind="stable")
    return _sliced(ranks.take(order), rows.take(order, 0))


def _sliced(ranks: np.ndarray, rows: np.ndarray) -> Rows:
    """Rows by rank, for ascending ranks."""
    edges = [*np.flatnonzero(np.diff(ranks, prepend=-1)).tolist(), len(ranks)]
    return {int(ranks[i]): rows[i:j] for i, j in pairwise(edges)}


@dataclass(slots=True)
class Matches:
    """The answer of a directory rank: rows of start, size and peer by rank.

    A hole is the first index without a source, with the rank that wants the element.
    """

    to_source: Rows = field(default_factory=dict)
    to_target: Rows = field(default_factory=dict)
    hole: tuple[int, int] | None = None


def _joined(rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The start, size and rank of all rows by ascending start, for ascending ranks."""
    if not rows:
        return tuple(np.empty((3, 0), np.int64))  # type: ignore[return-value]
    ranks = np.repeat([*rows], [len(peer_rows) for peer_rows in rows.values()])
    all_rows = np.concatenate([*rows.values()])
    order = np.argsort(all_rows[:, 0], kind="stable")
    start, size = all_rows.take(order, 0).T
    return start, size, ranks.take(order)


def _cells(
    start: np.ndarray, size: np.ndarray, ranks: np.ndarray
) -> tuple[Runs, np.ndarray, np.ndarray]:
    """Runs of constant owners, the owners run by run, and the owners' number by run."""
    if (start[1:] >= (start + size)[:-1]).all():  # no element has two owners
        return Runs(start, size), ranks, np.ones(len(start), np.int64)
    edges = np.unique(np.concatenate((start, start + size)))
    cells = Runs(edges[:-1], np.diff(edges))
    run, cell = overlaps(Runs(start, size), cells)
    order = np.lexsort((ranks[run], cell))
    return cells, ranks[run][order], np.bincount(cell, minlength=len(cells))


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """Runs of indices both wanted and owned, as arrays.

    A run has the number of the wanted run around, the start, the size and the owner.
    """

    wanted: np.ndarray
    start: np.ndarray
    size: np.ndarray
    owner: np.ndarray
    #: the first index without an owner, and the rank that wants the element
    hole: tuple[int, int] | None


def match(
    sources: Rows,
    wanted: Runs,
    wanted_by: np.ndarray,
    *,
    block: int,
    one_group: bool,
    combine: bool,
) -> Match:
    """The owners of the wanted runs among the sources, by ascending indices.

    With `combine` all owners count. Otherwise a target that owns a run (`one_group`)
    takes its own elements, and for other runs the owners take turns, so that no owner
    sends all copies.
    """
    cells, owners, count = _cells(*_joined(sources))
    first = np.cumsum(count) - count
    are_disjoint = (wanted.start[1:] >= wanted.stop[:-1]).all()
    if are_disjoint and len(cells) < len(wanted):  # fewer searches take less time
        c, w = overlaps(cells, wanted)
    else:
        w, c = overlaps(wanted, cells)
    if not count.all():
        w, c = w[count[c] > 0], c[count[c] > 0]
    low = np.maximum(wanted.start.take(w), cells.start.take(c))
    n = np.minimum(wanted.stop.take(w), cells.stop.take(c)) - low
    hole = _hole(wanted, wanted_by, w, low, n)
    if combine:
        times = count[c]
        k = spread(first[c], times)
        w, low, n = (np.repeat(column, times) for column in (w, low, n))
        return Match(w, low, n, owners[k], hole)
    if len(owners) == len(cells):  # each element has a single owner
        return Match(w, low, n, owners.take(c), hole)
    wanted_rank = wanted_by[w]
    owner = owners[
        first[c] + (low // block + c + wanted_rank) % np.maximum(count[c], 1)
    ]
    if one_group and (count > 1).any():
        cell = np.repeat(np.arange(len(cells)), count)
        owner = np.where(_own(cell, owners, c, wanted_rank), wanted_rank, owner)
    return Match(w, low, n, owner, hole)


def meet(
    sources: Rows, targets: Rows, block: int, one_group: bool, combine: bool
) -> Matches:
    """The exchanges between sources and targets for the indices of a directory rank.

    `match` chooses among several sources of an element.
    """
    start, size, wanted_by = _joined(targets)
    wanted = Runs(start, size)
    matched = match(
        sources, wanted, wanted_by, block=block, one_group=one_group, combine=combine
    )
    targets_of_rows = wanted_by[matched.wanted]
    rows = np.stack((matched.start, matched.size), 1)
    return Matches(
        split_by(matched.owner, np.column_stack((rows, targets_of_rows))),
        split_by(targets_of_rows, np.column_stack((rows, matched.owner))),
        matched.hole,
    )


def _own(
    cell: np.ndarray, owners: np.ndarray, c: np.ndarray, by: np.ndarray
) -> np.ndarray:
    """Whether ranks are among the owners of cells."""
    ranks = int(max(owners.max(initial=0), by.max(initial=0))) + 1
    is_owner: np.ndarray = np.isin(c * ranks + by, cell * ranks + owners)
    return is_owner


def _hole(
    wanted: Runs, by: np.ndarray, w: np.ndarray, low: np.ndarray, n: np.ndarray
) -> tuple[int, int] | None:
    """The first index without an owner, and the rank that wants the element."""
    if len(w) == len(wanted) and (n == wanted.size).all():
        return None
    covered = np.bincount(w, n, len(wanted)).astype(np.int64)
    short = np.flatnonzero(covered < wanted.size)
    if not len(short):
        return None
    # a run that starts before the first incomplete run ends may have an earlier gap
    near = wanted.start[short] < wanted.stop[short[0]]
    return min(
        (_first_gap(wanted, k, low[w == k], n[w == k]), int(by[k]))
        for k in short[near].tolist()
    )


def _first_gap(wanted: Runs, k: int, low: np.ndarray, n: np.ndarray) -> int:
    """The first index of run k outside of all covering runs."""
    index = int(wanted.start[k])
    for start, size in sorted(zip(low.tolist(), n.tolist(), strict=True)):
        if start > index:
            break
        index = start + size
    return index


def located(start: np.ndarray, runs: Runs, places: np.ndarray) -> np.ndarray:
    """The places of indices in the flat local array, whose runs lie at `places`."""
    k: np.ndarray | int = 0
    if len(runs) > 1:
        k = np.searchsorted(runs.start, start, side="right") - 1
    local: np.ndarray = (places - runs.start).take(k) + start
    return local


def messages(
    answers: list[np.ndarray], runs: Runs, places: np.ndarray
) -> list[Message]:
    """The messages of a rank, from rows of start, size and peer of global indices.

    The runs of a message are in the order of global indices, because both ends of a
    message must order the elements alike.
    """
    if not answers:
        return []
    all_rows = np.concatenate(answers)
    start, size, peer = all_rows.take(np.argsort(all_rows[:, 0], kind="stable"), 0).T
    place = located(start, runs, places)
    by_peer = split_by(peer, np.stack((place, size), 1))
    return [Message(p, rows[:, 0], rows[:, 1]) for p, rows in by_peer.items()]
