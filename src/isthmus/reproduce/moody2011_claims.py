"""The ratios and claims of Moody, Ahn, de Supinski 2011, beside simulated points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..groups.bins import BIN_COUNT
from .moody2011 import (
    CHENG_SORTS,
    COLOR_LENGTHS,
    DAWN,
    FEW_GROUPS,
    MAX_PROCESSES,
    MIN_PROCESSES,
    RADIX_SORTS,
    SERIAL_SORTS,
    SIERRA,
    SORTS,
    SPLITS,
    STARTUP_FACTORS,
    SplitPoint,
)

#: a ratio within a quarter of the paper's agrees with the paper
AGREEMENT_FACTOR = 1.25
SORT_LABELS = {
    "allgather_group": "AllgatherGroup",
    "allgather_mpi": "AllgatherMPI",
    "gather_scatter": "GatherScatter",
    **{name: name.capitalize() for name in CHENG_SORTS},
    "bitonic": "Bitonic",
    "radix": "Radix",
    "radix_full": "Radix on whole words, keys below N",
    "hash": "Hash",
    "hash64": "Hash64",
}


def pick(points: Sequence[SplitPoint], *names: str, **values: Any) -> list[SplitPoint]:
    """The points of algorithms with values of their fields; by default as assumed."""
    values = {"bits": 32, "startup": 1.0, "bins": BIN_COUNT, "machine": DAWN, **values}
    return [
        p
        for p in points
        if p.algorithm in names and all(getattr(p, k) == v for k, v in values.items())
    ]


def as_assumed(points: Sequence[SplitPoint]) -> list[SplitPoint]:
    """The points with the assumed machine, start-up time and bins."""
    return [
        p for p in points if (p.machine, p.startup, p.bins) == (DAWN, 1.0, BIN_COUNT)
    ]


def only(points: Sequence[SplitPoint], name: str, **values: Any) -> SplitPoint:
    """The single point of an algorithm with values of its fields."""
    (split_point,) = pick(points, name, **values)
    return split_point


def fastest(points: Sequence[SplitPoint]) -> SplitPoint:
    """The point with the least time."""
    return min(points, key=lambda p: p.seconds)


@dataclass(frozen=True)
class Ratio:
    """How many times slower an algorithm is than another, in the paper and simulated.

    `low` and `high` bound what agrees with the paper; `halved` and `doubled` are with
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
        """Whether the ratio is near the paper's."""
        return self.low <= self.here <= self.high


def _near(low: float, high: float | None = None) -> tuple[float, float]:
    return low / AGREEMENT_FACTOR, (high or low) * AGREEMENT_FACTOR


def _ratio(
    points: Sequence[SplitPoint],
    what: str,
    paper: str,
    bounds: tuple[float, float],
    slow: tuple[str, ...],
    fast: str,
    **values: Any,
) -> Ratio:
    """The ratio of the fastest of several slow algorithms to a fast algorithm."""

    def slower(startup: float) -> float:
        fastest_slow = fastest(pick(points, *slow, **values, startup=startup))
        return (
            fastest_slow.seconds / only(points, fast, **values, startup=startup).seconds
        )

    here, halved, doubled = (slower(x) for x in (1.0, *STARTUP_FACTORS))
    least_network = min(p.network for p in pick(points, *slow, **values))
    messages = least_network / only(points, fast, **values).network
    low, high = bounds
    return Ratio(
        what,
        paper,
        low=low,
        high=high,
        here=here,
        halved=halved,
        doubled=doubled,
        messages=messages,
    )


def sort_ratios(points: Sequence[SplitPoint], small: int, big: int) -> Iterator[Ratio]:
    """The ratios of figure 3: reordering alone."""
    for slow, words, paper in (
        (SERIAL_SORTS, "serial sorts", 100.0),
        (CHENG_SORTS, "fastest Cheng", 4.4),
    ):
        what = f"reorder, {big} processes: {words} / Bitonic"
        values = {"figure": 3, "n": big}
        yield _ratio(
            points, what, f"{paper:g}", _near(paper), slow, "bitonic", **values
        )
    for name in RADIX_SORTS:
        for n, paper in ((small, 5.5), (big, 3.0)):
            what = f"reorder, {n} processes: {SORT_LABELS[name]} / Bitonic"
            values = {"figure": 3, "n": n}
            yield _ratio(
                points, what, f"{paper}", _near(paper), (name,), "bitonic", **values
            )


def split_ratios(points: Sequence[SplitPoint], big: int) -> Iterator[Ratio]:
    """The ratios of figures 4 and 5: Bitonic against both hash splits."""
    par_bounds = ("on par", _near(1.0))
    for number, words, few_groups_bounds in (
        (4, "split", ("1.7 to 2.1", _near(1.7, 2.1))),
        (5, "split and reorder", ("below 1", (0.0, 1.0))),
    ):
        for groups, (paper, bounds) in (
            (FEW_GROUPS, few_groups_bounds),
            (big // 2, par_bounds),
        ):
            for length in COLOR_LENGTHS:
                for name in ("hash", "hash64"):
                    yield _ratio(
                        points,
                        f"{words}, {big} processes, {groups} groups, {length} "
                        f"characters: Bitonic / {SORT_LABELS[name]}",
                        paper,
                        bounds,
                        ("bitonic",),
                        name,
                        figure=number,
                        n=big,
                        groups=groups,
                        length=length,
                    )


def ratios(
    points: Sequence[SplitPoint], small: int = MIN_PROCESSES, big: int = MAX_PROCESSES
) -> list[Ratio]:
    """All ratios of the paper, each with its own setting."""
    return [*sort_ratios(points, small, big), *split_ratios(points, big)]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, the simulated finding, and whether the two agree."""

    paper: str
    here: str
    holds: bool


def sort_claims(points: Sequence[SplitPoint], small: int, big: int) -> Iterator[Claim]:
    """The claims on figure 3."""
    sizes = sorted({p.n for p in as_assumed(points)})
    curves = {x: {p.n: p.seconds for p in pick(points, x, figure=3)} for x in SORTS}
    bitonic = curves["bitonic"]
    first = min(SORTS, key=lambda x: curves[x][small])
    yield Claim(
        "serial sorts are best at small scale",
        f"with {small} processes {SORT_LABELS[first]} is the fastest",
        first in SERIAL_SORTS,
    )
    serial = {n: min(curves[x][n] for x in SERIAL_SORTS) for n in sizes}
    last = max((n for n in sizes if serial[n] < bitonic[n]), default=0)
    yield Claim(
        "more scalable algorithms soon outperform them",
        f"serial sorts win up to {last} processes, Bitonic with more",
        last < big,
    )
    growth = {x: curves[x][big] / curves[x][small] for x in SORTS}
    least = min(growth, key=lambda x: growth[x])
    yield Claim(
        "Radix scales the best",
        f"from {small} to {big} processes Radix takes {growth['radix']:.1f} times as "
        f"long, on whole words with keys below N {growth['radix_full']:.1f} times, "
        f"Bitonic {growth['bitonic']:.1f} times; {SORT_LABELS[least]} grows least",
        growth["radix"] < min(growth[x] for x in SORTS if x not in RADIX_SORTS),
    )
    better = {x: [n for n in sizes if bitonic[n] < curves[x][n]] for x in RADIX_SORTS}
    yield Claim(
        "Bitonic is always better than Radix",
        f"than Radix with {len(better['radix'])} of {len(sizes)} numbers of processes, "
        f"on whole words with keys below N with {len(better['radix_full'])}",
        better["radix"] == sizes,
    )


def sierra_claims(points: Sequence[SplitPoint]) -> Iterator[Claim]:
    """The claims on Sierra's half of figure 3."""
    points_of_sierra = pick(points, *SORTS, figure=3, machine=SIERRA)
    sizes = sorted({p.n for p in points_of_sierra})
    seconds = {
        n: {p.algorithm: p.seconds for p in points_of_sierra if p.n == n} for n in sizes
    }
    spread = [
        max(seconds[n].values()) / min(seconds[n].values())
        for n in (sizes[0], sizes[-1])
    ]
    first, last = (
        min(seconds[n], key=lambda x: seconds[n][x]) for n in (sizes[0], sizes[-1])
    )
    yield Claim(
        "Sierra: serial sorts at small scale, Bitonic at large scale",
        f"{SORT_LABELS[first]} with {sizes[0]} processes, "
        f"{SORT_LABELS[last]} with {sizes[-1]}",
        first in SERIAL_SORTS and last == "bitonic",
    )
    yield Claim(
        "Sierra: the curves converge, perhaps by contention",
        f"the slowest takes {spread[0]:.1f} times as long as the fastest with "
        f"{sizes[0]} processes, {spread[1]:.0f} times with {sizes[-1]}",
        spread[1] < spread[0],
    )


def _seconds(
    points: Sequence[SplitPoint],
    name: str,
    figure: int,
    n: int,
    groups: int,
    length: int,
) -> float:
    values = {"figure": figure, "n": n, "groups": groups, "length": length}
    return only(points, name, **values).seconds


def length_claim(points: Sequence[SplitPoint], big: int) -> Claim:
    """The claim on longer colours."""
    short, long = COLOR_LENGTHS
    slower = {}
    for name in SPLITS:
        times = [
            _seconds(points, name, 4, big, FEW_GROUPS, length)
            for length in COLOR_LENGTHS
        ]
        slower[name] = 100 * (times[1] / times[0] - 1)
    return Claim(
        "longer colours slow Bitonic, and hardly Hash",
        f"with few groups, {long} characters instead of {short} change the time by "
        + ", ".join(f"{slower[x]:+.1f} % ({SORT_LABELS[x]})" for x in SPLITS),
        abs(slower["hash"]) < slower["bitonic"],
    )


def best_claim(points: Sequence[SplitPoint]) -> Claim:
    """The claim on the best algorithm for splits alone."""
    places = sorted({(p.n, p.groups, p.length) for p in points if p.figure == 4})
    best = [
        fastest(pick(points, *SPLITS, figure=4, n=n, groups=groups, length=length))
        for n, groups, length in places
    ]
    hashed = sum(p.algorithm != "bitonic" for p in best)
    return Claim(
        "Hash or Hash64 are the best in all cases of figure 4",
        f"in {hashed} of {len(best)} cases",
        hashed == len(best),
    )


def alike_claim(points: Sequence[SplitPoint], big: int) -> Claim:
    """The claim on the cost of reordering many groups."""
    change = [
        _seconds(points, name, 5, big, big // 2, length)
        / _seconds(points, name, 4, big, big // 2, length)
        for name in SPLITS
        for length in COLOR_LENGTHS
    ]
    return Claim(
        "with many groups figure 5 looks like figure 4",
        f"reordering too takes {min(change):.2f} to {max(change):.2f} times as long",
        1 / AGREEMENT_FACTOR <= min(change) <= max(change) <= AGREEMENT_FACTOR,
    )


def slower_claim(points: Sequence[SplitPoint], big: int) -> Claim:
    """The claim that Bitonic beats both hash splits at reordering few groups."""
    slow = [
        n
        for n in sorted(
            {p.n for p in pick(points, "hash", figure=5, groups=FEW_GROUPS)}
        )
        if all(
            _seconds(points, name, 5, n, FEW_GROUPS, length)
            > _seconds(points, "bitonic", 5, n, FEW_GROUPS, length)
            for name in ("hash", "hash64")
            for length in COLOR_LENGTHS
        )
    ]
    return Claim(
        "with few groups Hash and Hash64 need more time than Bitonic to reorder",
        f"both do with {', '.join(map(str, slow)) or 'no'} processes",
        big in slow,
    )


def claims(
    points: Sequence[SplitPoint], small: int = MIN_PROCESSES, big: int = MAX_PROCESSES
) -> list[Claim]:
    """All claims of the paper."""
    return [
        *sort_claims(points, small, big),
        *sierra_claims(points),
        length_claim(points, big),
        best_claim(points),
        alike_claim(points, big),
        slower_claim(points, big),
    ]
