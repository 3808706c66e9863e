"""A redistribution of all ranks as a schedule, to verify, to simulate and to draw."""

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
from .order import MOST_ORDERED_PIECES, Turn, turns
from .runs import spread

#: a regular layout, or a list with the layout of each rank
Layouts = Layout | Sequence[Layout]


def _layouts_of_ranks(layout: Layouts, group_size: int | None) -> list[Layout]:
    """The layouts of all ranks of a group, by rank."""
    if isinstance(layout, Layout):
        if not layout.is_regular:
            raise ValueError("a layout by slices or indices is one rank's: give a list")
        ranks = layout.ranks if group_size is None else group_size
        if layout.ranks > ranks:
            raise ValueError(f"a layout of {layout.ranks} ranks for a group of {ranks}")
        return [layout] * ranks
    return list(layout)


class Whole:
    """All ranks of a redistribution, between two groups or inside a group."""

    def __init__(
        self,
        source: Layouts,
        target: Layouts,
        inside: int | None,
        combine: bool,
        least: int = 1,
    ) -> None:
        """`inside` is the size of a single group, or None between two."""
        self.sources = _layouts_of_ranks(source, inside)
        self.targets = _layouts_of_ranks(target, inside)
        shapes = {x.shape for x in (*self.sources, *self.targets)}
        if len(shapes) != 1:
            raise ValueError(f"different global shapes: {sorted(shapes)}")
        (self.shape,) = shapes
        self.one_group, self.combine, self.least = inside is not None, combine, least
        if self.one_group and len(self.sources) != len(self.targets):
            raise ValueError("inside one group, every rank has a source and a target")
        self.base = 0 if self.one_group else len(self.sources)
        self.n = self.base + len(self.targets)

    @cached_property
    def parts(self) -> list[Exchange]:
        """The exchange of each rank."""
        first = self.sources[0], self.targets[0]
        if all(x.is_regular for x in first):
            flow = first[0], 0, first[1], self.base
            return [
                regular(r, self.n, [flow], self.one_group, self.combine)
                for r in range(self.n)
            ]
        return self._by_directory()

    def _by_directory(self) -> list[Exchange]:
        """The exchanges by a directory whose blocks all belong to a single rank."""
        block = block_size(prod(self.shape), 1)
        held = [layout.flat_runs(r) for r, layout in enumerate(self.sources)]
        wanted = [wanted_runs(layout, r) for r, layout in enumerate(self.targets)]
        sources, targets = (
            {
                r: addressed(runs, block, 1)[0]
                for r, (runs, _) in enumerate(flat_runs)
                if len(runs)
            }
            for flat_runs in (held, wanted)
        )
        matches = meet(sources, targets, block, self.one_group, self.combine)
        if matches.hole is not None:
            index = tuple(int(i) for i in np.unravel_index(matches.hole[0], self.shape))
            raise ValueError(
                f"nobody has element {index}, which rank {matches.hole[1]} "
                "of the target wants"
            )
        parts = []
        for number in range(self.n):
            exchange = Exchange(number, self.n, combine=self.combine)
            i, j = number, number - self.base
            if i < len(self.sources):
                rows = [matches.to_source[i]] if i in matches.to_source else []
                sends = numbered(messages(rows, *held[i]), self.base)
                exchange = replace(exchange, sends=sends)
            if j >= 0:
                rows = [matches.to_target[j]] if j in matches.to_target else []
                receives = tuple(messages(rows, *wanted[j]))
                exchange = received(exchange, self.targets[j], j, receives, self.base)
            parts.append(exchange)
        return parts

    @cached_property
    def turns(self) -> list[Turn] | None:
        """The order of all messages, or None for too many messages."""
        table = [m for x in self.parts for m in x.table]
        if len(table) > MOST_ORDERED_PIECES:
            return None
        return turns(table, self.least)

    def indices(self, layout: Layout, rank: int) -> np.ndarray:
        """The global index of each element of a rank's array."""
        if layout.points is not None:
            return layout.points
        runs, places = layout.flat_runs(rank)
        indices: np.ndarray = np.empty(runs.total, np.int64)
        indices[spread(places, runs.size)] = runs.indices
        return indices

    def contract(self) -> Contract:
        """The marks of all elements before and after.

        A target's element is that of the first rank that has it, or with `combine` the
        combination of all sources.
        """
        mark = unordered(self.n) if self.combine else MARK
        held = [self.indices(x, r) for r, x in enumerate(self.sources)]
        wanted = [self.indices(x, r) for r, x in enumerate(self.targets)]
        elements = np.zeros(prod(self.shape), mark)
        elements["index"] = np.arange(len(elements))
        if not self.combine:
            for r, x in reversed(list(enumerate(held))):
                elements["lo"][x], elements["hi"][x] = r, r + 1
        else:
            elements["lo"] = self.n
            for r, x in enumerate(held):
                elements["lo"][x] = np.minimum(elements["lo"][x], r)
                elements["hi"][x] = r + 1
                elements["who"][x, r // 64] |= np.uint64(1 << r % 64)

        def initial(r: int) -> np.ndarray:
            if r >= len(self.sources):
                return blank(0, mark)
            marks: np.ndarray = elements[held[r]].copy()
            if self.combine:
                marks["lo"], marks["hi"], marks["who"] = r, r + 1, 0
                marks["who"][:, r // 64] = np.uint64(1 << r % 64)
            return marks

        def before(r: int) -> Memory:
            size = len(wanted[r - self.base]) if r >= self.base else 0
            return {"send": initial(r), "recv": blank(size, mark)}

        def after(r: int) -> Memory:
            return {"recv": elements[wanted[r - self.base]]} if r >= self.base else {}

        return Contract(before, after, mark, demand=lambda: self.demand(held, wanted))

    def demand(self, held: list[np.ndarray], wanted: list[np.ndarray]) -> Demand:
        """A need for each set of elements with equal owners and equal receivers.

        Runs are sorted instead of elements, because such elements mostly lie in runs:
        sorting all elements took most of the time of a page of 2400 by 2400.
        """
        rng, size = np.random.default_rng(0), prod(self.shape)
        # a random number for each set of owners and each set of receivers; repeated
        # indices of a rank are added once
        has, wants = np.zeros((2, size), np.uint64)
        for sums, indices_of_ranks in ((has, held), (wants, wanted)):
            for indices in indices_of_ranks:
                sums[indices] += rng.integers(1 << 63, dtype=np.uint64)
        chosen = np.flatnonzero((has > 0) & (wants > 0))
        numbers = (has + wants)[chosen]
        starts = np.flatnonzero(np.diff(numbers, prepend=numbers[:1] + np.uint64(1)))
        lengths = np.diff(starts, append=len(numbers))
        _, first, need = np.unique(
            numbers[starts], return_index=True, return_inverse=True
        )
        count, samples = np.bincount(need, lengths), chosen[starts[first]]
        is_present = np.zeros(size, bool)

        def is_among(indices: np.ndarray) -> np.ndarray:
            is_present[:] = False
            is_present[indices] = True
            return is_present[samples]

        sources = [is_among(x) for x in held]
        targets = [is_among(x) for x in wanted]
        return [
            Need(
                ranges_of([r for r, x in enumerate(sources) if x[k]]),
                ranges_of([self.base + r for r, x in enumerate(targets) if x[k]]),
                int(count[k]),
                alike=not self.combine,
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
    """The schedule of a redistribution between two groups, or inside a group.

    `inside` is the number of ranks of a single group. Layouts by slices or indices are
    a list with the layout of each rank. With `combine`, all sources of an element are
    combined. Messages of up to `least` elements go whole; in `Redistribution` messages
    of up to 64 KiB do. `nodes` has the node of each rank, sources first.
    """
    redistribution = Whole(source, target, inside, combine, least)
    ranks = range(redistribution.n)
    groups = (
        (ranks,)
        if redistribution.one_group
        else (range(redistribution.base), range(redistribution.base, redistribution.n))
    )
    return Schedule(
        "redistribution",
        "list schedule" if redistribution.turns is not None else "shifted",
        redistribution.contract,
        lambda r: iter(rounds(redistribution.parts[r], redistribution.turns, nodes)),
        groups,
        sizes={"shape": list(redistribution.shape)},
        node_memory=True,  # so that rounds are built rank by rank
    )
