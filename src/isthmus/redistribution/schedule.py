"""A redistribution of all ranks as one object: to verify, to simulate, to draw."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod

import numpy as np

from ..schedules.schedule import Schedule
from ..verify.contracts import Contract, Demand, Need, ranges_of
from ..verify.marks import MARK, Memory, blank, unordered
from .directory import addressed, block_size, meet, messages
from .exchange import Exchange, numbered, received, regular, rounds
from .layouts import Layout
from .messages import wanted_runs
from .order import MOST, Turn, turns
from .runs import spread

#: a layout of all, or what each rank knows of its own
Layouts = Layout | Sequence[Layout]


def _each(layout: Layouts, n: int | None) -> list[Layout]:
    """The layout of each rank."""
    if isinstance(layout, Layout):
        if not layout.is_regular:
            raise ValueError("a layout by slices or indices is one rank's: give a list")
        ranks = layout.ranks if n is None else n
        if layout.ranks > ranks:
            raise ValueError(f"a layout of {layout.ranks} ranks for a group of {ranks}")
        return [layout] * ranks
    return list(layout)


class Whole:
    """All ranks of a redistribution, from a group to another or inside one."""

    def __init__(
        self,
        source: Layouts,
        target: Layouts,
        inside: int | None,
        every: bool,
        least: int = 1,
    ) -> None:
        """`inside` is the size of the one group, if there is one."""
        self.sources, self.targets = _each(source, inside), _each(target, inside)
        shapes = {x.shape for x in (*self.sources, *self.targets)}
        if len(shapes) != 1:
            raise ValueError(f"different global shapes: {sorted(shapes)}")
        (self.shape,) = shapes
        self.same, self.every, self.least = inside is not None, every, least
        if self.same and len(self.sources) != len(self.targets):
            raise ValueError("inside one group, every rank has a source and a target")
        self.base = 0 if self.same else len(self.sources)
        self.n = self.base + len(self.targets)

    @cached_property
    def parts(self) -> list[Exchange]:
        """What each rank sends and receives."""
        first = self.sources[0], self.targets[0]
        if all(x.is_regular for x in first):
            flow = first[0], 0, first[1], self.base
            return [
                regular(r, self.n, [flow], self.same, self.every) for r in range(self.n)
            ]
        return self._found()

    def _found(self) -> list[Exchange]:
        """The same by a directory, of which one rank here is all of it."""
        block = block_size(prod(self.shape), 1)
        held = [x.flat_runs(r) for r, x in enumerate(self.sources)]
        wanted = [wanted_runs(x, r) for r, x in enumerate(self.targets)]
        sources, targets = (
            {r: addressed(x, block, 1)[0] for r, (x, _) in enumerate(every) if len(x)}
            for every in (held, wanted)
        )
        found = meet(sources, targets, block, self.same, self.every)
        if found.hole is not None:
            index = tuple(int(i) for i in np.unravel_index(found.hole[0], self.shape))
            raise ValueError(
                f"nobody has element {index}, which rank {found.hole[1]} "
                "of the target wants"
            )
        parts = []
        for number in range(self.n):
            x = Exchange(number, self.n, every=self.every)
            i, j = number, number - self.base
            if i < len(self.sources):
                told = [found.to_source[i]] if i in found.to_source else []
                some = numbered(messages(told, *held[i]), self.base)
                x = replace(x, sends=some)
            if j >= 0:
                told = [found.to_target[j]] if j in found.to_target else []
                some = tuple(messages(told, *wanted[j]))
                x = received(x, self.targets[j], j, some, self.base)
            parts.append(x)
        return parts

    @cached_property
    def turns(self) -> list[Turn] | None:
        """The order of the messages, if they are few enough."""
        table = [m for x in self.parts for m in x.table]
        if len(table) > MOST:
            return None
        return turns(table, self.least)

    def indices(self, layout: Layout, rank: int) -> np.ndarray:
        """The global index of each element of a rank's array."""
        if layout.points is not None:
            return layout.points
        runs, places = layout.flat_runs(rank)
        found: np.ndarray = np.empty(runs.total, np.int64)
        found[spread(places, runs.size)] = runs.indices
        return found

    def contract(self) -> Contract:
        """Every element of a target is that of the first rank that has it; or, if every
        source counts, that of all its sources."""
        mark = unordered(self.n) if self.every else MARK
        held = [self.indices(x, r) for r, x in enumerate(self.sources)]
        wanted = [self.indices(x, r) for r, x in enumerate(self.targets)]
        every = np.zeros(prod(self.shape), mark)
        every["index"] = np.arange(len(every))
        if not self.every:
            for r, x in reversed(list(enumerate(held))):
                every["lo"][x], every["hi"][x] = r, r + 1
        else:
            every["lo"] = self.n
            for r, x in enumerate(held):
                every["lo"][x] = np.minimum(every["lo"][x], r)
                every["hi"][x] = r + 1
                every["who"][x, r // 64] |= np.uint64(1 << r % 64)

        def given(r: int) -> np.ndarray:
            if r >= len(self.sources):
                return blank(0, mark)
            found: np.ndarray = every[held[r]].copy()
            if self.every:
                found["lo"], found["hi"], found["who"] = r, r + 1, 0
                found["who"][:, r // 64] = np.uint64(1 << r % 64)
            return found

        def before(r: int) -> Memory:
            size = len(wanted[r - self.base]) if r >= self.base else 0
            return {"send": given(r), "recv": blank(size, mark)}

        def after(r: int) -> Memory:
            return {"recv": every[wanted[r - self.base]]} if r >= self.base else {}

        return Contract(before, after, mark, demand=lambda: self.demand(held, wanted))

    def demand(self, held: list[np.ndarray], wanted: list[np.ndarray]) -> Demand:
        """Elements that the same ranks have and the same ranks want, as one need.

        Such elements mostly lie in runs, so that what is sorted are the runs: sorting
        all elements took most of the time of a page of 2400 by 2400.
        """
        rng, size = np.random.default_rng(0), prod(self.shape)
        #: a number for each set of ranks that have an element, and that want it; an
        #: index that a rank has twice is added once
        has, wants = np.zeros((2, size), np.uint64)
        for name, each in ((has, held), (wants, wanted)):
            for indices in each:
                name[indices] += rng.integers(1 << 63, dtype=np.uint64)
        chosen = np.flatnonzero((has > 0) & (wants > 0))
        numbers = (has + wants)[chosen]
        starts = np.flatnonzero(np.diff(numbers, prepend=numbers[:1] + np.uint64(1)))
        lengths = np.diff(starts, append=len(numbers))
        _, first, need = np.unique(
            numbers[starts], return_index=True, return_inverse=True
        )
        count, samples = np.bincount(need, lengths), chosen[starts[first]]
        is_there = np.zeros(size, bool)

        def is_among(indices: np.ndarray) -> np.ndarray:
            is_there[:] = False
            is_there[indices] = True
            return is_there[samples]

        sources = [is_among(x) for x in held]
        targets = [is_among(x) for x in wanted]
        return [
            Need(
                ranges_of([r for r, x in enumerate(sources) if x[k]]),
                ranges_of([self.base + r for r, x in enumerate(targets) if x[k]]),
                int(count[k]),
                alike=not self.every,
            )
            for k in range(len(samples))
        ]


def schedule(
    source: Layouts,
    target: Layouts,
    inside: int | None = None,
    combine: bool = False,
    least: int = 1,
    nodes: Sequence[Hashable] = (),
) -> Schedule:
    """What every rank does, from one group to another; or inside one group, of so many
    ranks. A layout by slices or indices is given as a list, of each rank's own. With
    `combine`, all sources of an element are combined. Messages of up to `least`
    elements go whole; with `Redistribution` those of up to 64 KiB do. `nodes` has the
    node of every rank, those of the source first, if several may be on one."""
    whole = Whole(source, target, inside, combine, least)
    ranks = range(whole.n)
    groups = (ranks,) if whole.same else (range(whole.base), range(whole.base, whole.n))
    return Schedule(
        "redistribution",
        "list schedule" if whole.turns is not None else "shifted",
        whole.contract,
        lambda r: iter(rounds(whole.parts[r], whole.turns, nodes)),
        groups,
        sizes={"shape": list(whole.shape)},
        node_memory=True,  # so that rounds are built rank by rank
    )
