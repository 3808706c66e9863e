"""One rank's rounds in the other collectives between two groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from .algorithms.turns import SHORT
from .layout import Blocks, Even, Found, Leaves, Side, Told, Uneven
from .program import renumber, trim
from .recipe import Recipe, grain
from .registry import Algorithm, named


@dataclass(frozen=True, slots=True)
class Star:
    """A root, vertex 0, and the q ranks of the other group, vertices 1 to q.

    `root` and `base` are the numbers of the root and of the other group's first rank;
    `v` is the own vertex.
    """

    q: int
    v: int
    root: int
    base: int

    def number(self, v: int) -> int:
        """The number of a vertex."""
        return self.root if v == 0 else self.base + v - 1


def _rooted(
    collective: str,
    name: str,
    star: Star,
    data: int | Blocks,
    units: dict[str, int],
    **options: float,
) -> Recipe:
    entry = named(collective, name).default(**options)
    program = entry.program(star.q + 1, star.v, data)
    rounds = trim(renumber(program, star.number))
    return Recipe(entry, tuple(rounds), units, in_place=collective == "inter_bcast")


@lru_cache(maxsize=64)
def bcast(name: str, star: Star, nbytes: int, startup: float) -> Recipe:
    """Bytes from the root to all of the other group; `startup` is in bytes too."""
    unit = grain(nbytes)
    startup = max(startup / unit, 1.0)
    units = {"recv": unit}
    return _rooted("inter_bcast", name, star, nbytes // unit, units, startup=startup)


@lru_cache(maxsize=64)
def reduce(name: str, star: Star, count: int, unit: int, startup: float) -> Recipe:
    """Elements of `unit` bytes from all of the other group, combined at the root."""
    units = {"send": unit, "recv": unit, "tmp": unit}
    startup = max(startup / unit, 1.0)
    return _rooted("inter_reduce", name, star, count, units, startup=startup)


@lru_cache(maxsize=64)
def blocks(collective: str, name: str, star: Star, counts: tuple[int, ...]) -> Recipe:
    """A gather or scatter of blocks of so many bytes; of one count where only the own
    block is known."""
    group: Found = Uneven(counts)
    if len(counts) < star.q:
        (own,) = counts
        group = Told(star.q, star.v - 1, 0, own, own)
    units = {"send": 1, "recv": 1, "tmp": 1}
    return _rooted(collective, name, star, Leaves(group), units)


@dataclass(frozen=True, slots=True)
class Pair:
    """The own group and the other one: their sizes, and the own number and place."""

    here: int
    there: int
    mine: int
    index: int

    def sides(self, here: Found, there: Found) -> tuple[Side, Side]:
        """The two groups with the blocks of each, the own one first."""
        p = self.there if self.mine else self.here
        bases = (p, 0) if self.mine else (0, p)
        return Side(bases[0], here), Side(bases[1], there)

    def plain(self) -> tuple[Side, Side]:
        """The two groups where their blocks do not matter."""
        return self.sides(Even(self.here, 0), Even(self.there, 0))


@lru_cache(maxsize=64)
def allreduce(name: str, pair: Pair, count: int, unit: int) -> Recipe:
    """Elements of `unit` bytes, those of the other group combined everywhere."""
    entry = named("inter_allreduce", name)
    rounds = trim(entry.program(pair.index, *pair.plain(), count))
    return Recipe(entry, tuple(rounds), dict.fromkeys(("send", "recv", "tmp"), unit))


def _paced(collective: str, name: str, startup: float, unit: int = 1) -> Algorithm:
    """The algorithm, told a start-up in bytes for elements of `unit` bytes."""
    return named(collective, name).default(startup=min(startup, SHORT) / unit)


@lru_cache(maxsize=64)
def reduce_scatter(
    name: str,
    pair: Pair,
    here: tuple[int, ...],
    there: tuple[int, ...],
    unit: int,
    startup: float,
) -> Recipe:
    """Elements of `unit` bytes, those of the other group combined and cut by counts;
    `startup` is in bytes."""
    entry = _paced("inter_reduce_scatter", name, startup, unit)
    rounds = trim(entry.program(pair.index, *pair.sides(Uneven(here), Uneven(there))))
    return Recipe(entry, tuple(rounds), dict.fromkeys(("send", "recv", "tmp"), unit))


@lru_cache(maxsize=64)
def alltoall(
    collective: str,
    name: str,
    pair: Pair,
    send: tuple[int, ...],
    recv: tuple[int, ...],
    startup: float,
) -> Recipe:
    """Blocks of so many bytes to and from each rank of the other group."""
    entry = _paced(collective, name, startup)
    blocks = _blocks(send, "send"), _blocks(recv, "recv")
    rounds = trim(entry.program(pair.index, *pair.plain(), *blocks))
    return Recipe(entry, tuple(rounds), dict.fromkeys(("send", "recv", "tmp"), 1))


def _blocks(counts: tuple[int, ...], buf: str) -> Blocks:
    if min(counts) == max(counts):
        return Even(len(counts), counts[0], buf)
    return Uneven(counts, buf)


@lru_cache(maxsize=64)
def barrier(name: str, pair: Pair) -> Recipe:
    """Nobody goes on before all have come."""
    entry = named("inter_barrier", name)
    rounds = trim(entry.program(pair.index, *pair.plain()))
    return Recipe(entry, tuple(rounds), {"send": 1, "recv": 1, "tmp": 1})
