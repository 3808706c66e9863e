"""The least time that a collective needs on a machine, from what it promises."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..cost.hierarchy import Hierarchy
from ..cost.placement import nodes as placed_on
from ..cost.recorded import merged
from ..predict.times import message
from ..schedules.schedule import Model, Schedule
from .run import Images

#: elements of all buffers together that are looked at
ELEMENTS = 1 << 26

#: from each element to the one behind the last, in order
Ranges = list[tuple[int, int]]


def _common(x: Ranges, y: Ranges) -> Ranges:
    """What lies in both."""
    found, i, j = [], 0, 0
    while i < len(x) and j < len(y):
        start, end = max(x[i][0], y[j][0]), min(x[i][1], y[j][1])
        if start < end:
            found.append((start, end))
        if x[i][1] < y[j][1]:
            i += 1
        else:
            j += 1
    return found


def _size(ranges: Ranges) -> int:
    return sum(end - start for start, end in ranges)


class _Held(dict[tuple[int, int], Ranges]):
    """The elements that buffers hold, by the ranks lo to hi - 1 that contributed."""

    def __init__(self, images: Images, numbers: Iterable[int]) -> None:
        found: dict[tuple[int, int], Ranges] = defaultdict(list)
        for k in numbers:
            rows = iter(images.every[k])
            for _, size, index, lo, hi in zip(
                rows, rows, rows, rows, rows, strict=True
            ):
                found[lo, hi].append((index, index + size))
        super().__init__({key: merged(ranges) for key, ranges in found.items()})

    def of(self, rank: int) -> Ranges:
        """The elements that a rank contributed to."""
        every = (x for (lo, hi), x in self.items() if lo <= rank < hi)
        return merged(pair for ranges in every for pair in ranges)

    @property
    def apart(self) -> bool:
        """Whether no contributions are combined."""
        return all(hi == lo + 1 for lo, hi in self)


@dataclass(frozen=True)
class _Unit:
    """Ranks that reach each other's data without a message: what they have and what
    they are promised, as numbers of contents."""

    ranks: Sequence[int]
    before: frozenset[int]
    after: frozenset[int]

    def enters(self, images: Images) -> int:
        """Elements that must come in: promised, and not there."""
        has, needs = _Held(images, self.before), _Held(images, self.after)
        return sum(
            _size(x) - _size(_common(x, has.get(key, []))) for key, x in needs.items()
        )

    def leaves(self, images: Images, others: _Held) -> int:
        """Elements that must go out: others are promised what they are part of. Those
        of several ranks that are combined can go as one."""
        has = _Held(images, self.before)
        found = [
            _common(has.get((r, r + 1), []), taken)
            for r in self.ranks
            if (taken := others.of(r))
        ]
        if others.apart:
            return sum(map(_size, found))
        return _size(merged(pair for ranges in found for pair in ranges))


def _most(schedule: Schedule, units: Sequence[Sequence[int]]) -> Iterator[int]:
    """The elements that must enter or leave each unit."""
    images, contract, found = Images(), schedule.contract, []
    for ranks in units:
        before = [x for r in ranks for x in images.memory(contract.before(r)).values()]
        after = [x for r in ranks for x in images.memory(contract.after(r)).values()]
        found.append(_Unit(ranks, frozenset(before), frozenset(after)))
    known: dict[frozenset[int], _Held] = {}
    for unit in found:
        wanted = frozenset(k for x in found if x is not unit for k in x.after)
        if wanted not in known:
            known[wanted] = _Held(images, wanted)
        yield max(unit.enters(images), unit.leaves(images, known[wanted]))
    if schedule.collective.endswith("allreduce"):
        # every element is passed on by all but one, each way
        yield 2 * (len(units) - 1) * schedule.sizes.get("m", 0) // len(units)


def _small(schedule: Schedule) -> bool:
    """Whether the buffers of all ranks are quickly looked at, judged by rank 0."""
    one = sum(len(buf) for buf in schedule.contract.before(0).values())
    return schedule.n * one <= ELEMENTS


def _fastest(
    model: Model, schedule: Schedule, ranks: Sequence[int], size: int
) -> float:
    """The time of one message of so many elements to the first of these ranks, from
    the nearest other one: a neighbour, or one of its node."""
    n, to = schedule.n, ranks[0]
    others = [r for r in range(n) if r not in set(ranks)]
    where = placed_on(schedule) or range(n)
    near = [r for r in others if where[r] == where[to]][:1]
    near += [r for r in (to - 1, ranks[-1] + 1) if r in others]
    sources = dict.fromkeys((*near, others[0], others[-1]))
    return min(message(model, n, (r, to), size) for r in sources)


def _lanes(model: Model, ranks: Sequence[int]) -> int:
    """The messages that can enter a node at once."""
    if not isinstance(model, Hierarchy) or not model.levels[0].shared:
        return len(ranks)
    return min(model.levels[0].lanes, len(ranks))


def limit(schedule: Schedule, model: Model) -> float | None:
    """The time of what must enter or leave a rank, or a node, as one message; none, if
    that takes too long to find.

    No schedule is faster on this machine: a port passes one byte after the other.
    """
    if not _small(schedule):
        return None
    where, found = placed_on(schedule), [0.0]
    ranks = [[r] for r in range(schedule.n)]
    nodes = [
        [r for r in range(schedule.n) if where[r] == x] for x in dict.fromkeys(where)
    ]
    kinds = [nodes] if schedule.shares_memory else [ranks, nodes]
    for units in kinds:
        if len(units) < 2:
            continue
        sizes = zip([*units, units[0]], _most(schedule, units), strict=False)
        parts = [(size // _lanes(model, unit), unit) for unit, size in sizes if size]
        if parts:
            part, unit = max(parts)
            found.append(_fastest(model, schedule, unit, part))
    return max(found)
