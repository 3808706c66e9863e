"""The ratios that Moody, Ahn, de Supinski 2011 print, and those of our points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..groups.bins import BINS
from .moody2011 import BIG, CHENG, FEW, LENGTHS, SERIAL, SMALL, STARTUPS
from .moody2011_points import Point

#: how far from a number of the paper still agrees with it: a quarter
NEAR = 1.25
LABELS = {
    "allgather_group": "AllgatherGroup",
    "allgather_mpi": "AllgatherMPI",
    "gather_scatter": "GatherScatter",
    **{name: name.capitalize() for name in CHENG},
    "bitonic": "Bitonic",
    "radix": "Radix",
    "hash": "Hash",
    "hash64": "Hash64",
}


def pick(points: Sequence[Point], *names: str, **wanted: Any) -> list[Point]:
    """The points of these algorithms with these values; as assumed unless told."""
    wanted = {"bits": 32, "startup": 1.0, "bins": BINS, **wanted}
    return [
        p
        for p in points
        if p.algorithm in names and all(getattr(p, k) == v for k, v in wanted.items())
    ]


def as_assumed(points: Sequence[Point]) -> list[Point]:
    """The points with the start-up time and the bins that are assumed."""
    return [p for p in points if (p.startup, p.bins) == (1.0, BINS)]


def only(points: Sequence[Point], name: str, **wanted: Any) -> Point:
    """The one point of an algorithm with these values."""
    (found,) = pick(points, name, **wanted)
    return found


def fastest(points: Sequence[Point]) -> Point:
    """The best of several."""
    return min(points, key=lambda p: p.seconds)


@dataclass(frozen=True)
class Ratio:
    """How many times slower one is than another: in the paper and here.

    `low` and `high` are what agrees with the paper; `halved` and `doubled` are with
    other start-up times, `messages` is without local work.
    """

    what: str
    paper: str
    low: float
    high: float
    here: float
    halved: float
    doubled: float
    messages: float

    @property
    def agrees(self) -> bool:
        """Whether it is what the paper says, nearly."""
        return self.low <= self.here <= self.high


def _near(low: float, high: float | None = None) -> tuple[float, float]:
    return low / NEAR, (high or low) * NEAR


def _ratio(
    points: Sequence[Point],
    what: str,
    paper: str,
    bounds: tuple[float, float],
    slow: tuple[str, ...],
    fast: str,
    **where: Any,
) -> Ratio:
    """The fastest of the slow ones against the fast one."""

    def whole(startup: float) -> float:
        some = fastest(pick(points, *slow, **where, startup=startup))
        return some.seconds / only(points, fast, **where, startup=startup).seconds

    here, halved, doubled = (whole(x) for x in (1.0, *STARTUPS))
    least = min(p.network for p in pick(points, *slow, **where))
    messages = least / only(points, fast, **where).network
    return Ratio(what, paper, *bounds, here, halved, doubled, messages)


def sort_ratios(points: Sequence[Point], small: int, big: int) -> Iterator[Ratio]:
    """Figure 3: reordering alone."""
    for slow, words, paper in (
        (SERIAL, "serial sorts", 100.0),
        (CHENG, "fastest Cheng", 4.4),
    ):
        what = f"reorder, {big} processes: {words} / Bitonic"
        where = {"figure": 3, "n": big}
        yield _ratio(points, what, f"{paper:g}", _near(paper), slow, "bitonic", **where)
    for n, paper in ((small, 5.5), (big, 3.0)):
        what = f"reorder, {n} processes: Radix / Bitonic"
        yield _ratio(
            points, what, f"{paper}", _near(paper), ("radix",), "bitonic", figure=3, n=n
        )


def split_ratios(points: Sequence[Point], big: int) -> Iterator[Ratio]:
    """Figures 4 and 5: Bitonic against both hash splits."""
    par = ("on par", _near(1.0))
    for number, words, few in (
        (4, "split", ("1.7 to 2.1", _near(1.7, 2.1))),
        (5, "split and reorder", ("below 1", (0.0, 1.0))),
    ):
        for groups, (paper, bounds) in ((FEW, few), (big // 2, par)):
            for length in LENGTHS:
                for name in ("hash", "hash64"):
                    yield _ratio(
                        points,
                        f"{words}, {big} processes, {groups} groups, {length} "
                        f"characters: Bitonic / {LABELS[name]}",
                        paper,
                        bounds,
                        ("bitonic",),
                        name,
                        figure=number,
                        n=big,
                        groups=groups,
                        length=length,
                    )


def ratios(points: Sequence[Point], small: int = SMALL, big: int = BIG) -> list[Ratio]:
    """The paper's numbers, each with its own setting."""
    return [*sort_ratios(points, small, big), *split_ratios(points, big)]
