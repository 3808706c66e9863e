"""Who has what somebody wants, where ranks know only what they have themselves.

The flat global indices are dealt out in blocks to all ranks: each looks after its own.
A rank tells those who look after what it has, or wants, in runs; these find who meets
whom, and tell both. The distributed directory of Pinar and Hendrickson 2001, as in
Zoltan and YAXT.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from .messages import Message
from .runs import Runs, cut_at, overlaps, spread

#: blocks that a rank looks after, so that what is dense somewhere is spread
BLOCKS = 16

Rows = dict[int, np.ndarray]


def block_size(n: int, ranks: int) -> int:
    """The indices of a block, of n."""
    return max(-(-n // (BLOCKS * ranks)), 1)


def addressed(runs: Runs, block: int, ranks: int) -> Rows:
    """For each rank that looks after some of the runs, rows of start and size."""
    start, size = cut_at(runs.start, runs.size, block)
    return split_by(start // block % ranks, np.stack((start, size), 1))


def split_by(who: np.ndarray, rows: np.ndarray) -> Rows:
    """Rows by who gets them, in their order."""
    if (who[1:] >= who[:-1]).all():
        return _sliced(who, rows)
    if who.max(initial=0) < 1 << 15:
        who = who.astype(np.int16)  # numpy sorts these in a time that is linear
    order = np.argsort(who, kind="stable")
    return _sliced(who.take(order), rows.take(order, 0))


def _sliced(who: np.ndarray, rows: np.ndarray) -> Rows:
    """Rows by who gets them, where these ascend."""
    edges = [*np.flatnonzero(np.diff(who, prepend=-1)).tolist(), len(who)]
    return {int(who[i]): rows[i:j] for i, j in pairwise(edges)}


@dataclass(slots=True)
class Matches:
    """What a rank of the directory has to tell: rows of start, size and peer; the first
    index that nobody has, and who wants it."""

    to_source: Rows = field(default_factory=dict)
    to_target: Rows = field(default_factory=dict)
    hole: tuple[int, int] | None = None


def _joined(rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Start, size and rank of all rows, ascending, as the ranks must be."""
    if not rows:
        return tuple(np.empty((3, 0), np.int64))  # type: ignore[return-value]
    who = np.repeat([*rows], [len(x) for x in rows.values()])
    every = np.concatenate([*rows.values()])
    order = np.argsort(every[:, 0], kind="stable")
    start, size = every.take(order, 0).T
    return start, size, who.take(order)


def _cells(
    start: np.ndarray, size: np.ndarray, who: np.ndarray
) -> tuple[Runs, np.ndarray, np.ndarray]:
    """Runs that the same ranks have, these ranks run by run, and how many they are."""
    if (start[1:] >= (start + size)[:-1]).all():  # nobody has what another has
        return Runs(start, size), who, np.ones(len(start), np.int64)
    edges = np.unique(np.concatenate((start, start + size)))
    cells = Runs(edges[:-1], np.diff(edges))
    run, cell = overlaps(Runs(start, size), cells)
    order = np.lexsort((who[run], cell))
    return cells, who[run][order], np.bincount(cell, minlength=len(cells))


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """Runs of indices that somebody wants and somebody has, as arrays: which of the
    wanted runs each is a part of, its start and size, and who has it."""

    wanted: np.ndarray
    start: np.ndarray
    size: np.ndarray
    owner: np.ndarray
    #: the first index that nobody has, and who wants it
    hole: tuple[int, int] | None


def match(
    sources: Rows,
    wanted: Runs,
    wanted_by: np.ndarray,
    *,
    block: int,
    same: bool,
    every: bool,
) -> Match:
    """Who has what is wanted, of the indices of some sources, in ascending order.

    Of several sources one is taken: the target itself, if it is one (`same`), else by
    turns; or all of them, if every source counts.
    """
    cells, owners, count = _cells(*_joined(sources))
    first = np.cumsum(count) - count
    are_disjoint = (wanted.start[1:] >= wanted.stop[:-1]).all()
    if are_disjoint and len(cells) < len(wanted):  # to look few up in many takes less
        c, w = overlaps(cells, wanted)
    else:
        w, c = overlaps(wanted, cells)
    if not count.all():
        w, c = w[count[c] > 0], c[count[c] > 0]
    low = np.maximum(wanted.start[w], cells.start[c])
    n = np.minimum(wanted.stop[w], cells.stop[c]) - low
    hole = _hole(wanted, wanted_by, w, low, n)
    if every:
        times = count[c]
        k = spread(first[c], times)
        w, low, n = (np.repeat(x, times) for x in (w, low, n))
        return Match(w, low, n, owners[k], hole)
    if len(owners) == len(cells):  # nobody has what another has
        return Match(w, low, n, owners[c], hole)
    by = wanted_by[w]
    frm = owners[first[c] + (low // block + c + by) % np.maximum(count[c], 1)]
    if same and (count > 1).any():
        cell = np.repeat(np.arange(len(cells)), count)
        frm = np.where(_own(cell, owners, c, by), by, frm)
    return Match(w, low, n, frm, hole)


def meet(sources: Rows, targets: Rows, block: int, same: bool, every: bool) -> Matches:
    """Who gets what from whom, of the indices that one rank looks after; of several
    sources as `match` says."""
    start, size, wanted_by = _joined(targets)
    wanted = Runs(start, size)
    m = match(sources, wanted, wanted_by, block=block, same=same, every=every)
    by, rows = wanted_by[m.wanted], np.stack((m.start, m.size), 1)
    return Matches(
        split_by(m.owner, np.column_stack((rows, by))),
        split_by(by, np.column_stack((rows, m.owner))),
        m.hole,
    )


def _own(
    cell: np.ndarray, owners: np.ndarray, c: np.ndarray, by: np.ndarray
) -> np.ndarray:
    """Whether some ranks are among the owners of some cells."""
    most = int(max(owners.max(initial=0), by.max(initial=0))) + 1
    found: np.ndarray = np.isin(c * most + by, cell * most + owners)
    return found


def _hole(
    wanted: Runs, by: np.ndarray, w: np.ndarray, low: np.ndarray, n: np.ndarray
) -> tuple[int, int] | None:
    """The first index that nobody has, and who wants it."""
    if len(w) == len(wanted) and (n == wanted.size).all():
        return None
    covered = np.bincount(w, n, len(wanted)).astype(np.int64)
    short = np.flatnonzero(covered < wanted.size)
    if not len(short):
        return None
    # a run that starts no later than the first one ends may have an earlier gap
    near = wanted.start[short] < wanted.stop[short[0]]
    return min(
        (_first_gap(wanted, k, low[w == k], n[w == k]), int(by[k]))
        for k in short[near].tolist()
    )


def _first_gap(wanted: Runs, k: int, low: np.ndarray, n: np.ndarray) -> int:
    """The first index of run k that is not in some runs."""
    at = int(wanted.start[k])
    for x, size in sorted(zip(low.tolist(), n.tolist(), strict=True)):
        if x > at:
            break
        at = x + size
    return at


def located(start: np.ndarray, runs: Runs, places: np.ndarray) -> np.ndarray:
    """Where indices lie in the flat local array of whoever has these runs there."""
    k: np.ndarray | int = 0
    if len(runs) > 1:
        k = np.searchsorted(runs.start, start, side="right") - 1
    found: np.ndarray = (places - runs.start).take(k) + start
    return found


def messages(told: list[np.ndarray], runs: Runs, places: np.ndarray) -> list[Message]:
    """What a rank was told, rows of start, size and peer, as messages: where the runs
    of each lie in its flat local array, in the order of global indices."""
    if not told:
        return []
    every = np.concatenate(told)
    start, size, peer = every.take(np.argsort(every[:, 0], kind="stable"), 0).T
    place = located(start, runs, places)
    by_peer = split_by(peer, np.stack((place, size), 1))
    return [Message(p, rows[:, 0], rows[:, 1]) for p, rows in by_peer.items()]
