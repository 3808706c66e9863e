"""What Moody, Ahn, de Supinski 2011 say in words, and whether it is so here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .moody2011 import BIG, FEW, LENGTHS, SERIAL, SMALL, SORTS, SPLITS
from .moody2011_points import Point
from .moody2011_ratios import LABELS, NEAR, fastest, only, pick


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, what is seen here, and whether that is the same."""

    paper: str
    here: str
    holds: bool


def sort_claims(points: Sequence[Point], small: int, big: int) -> Iterator[Claim]:
    """What is said of figure 3."""
    sizes = sorted({p.n for p in points})
    curves = {x: {p.n: p.seconds for p in pick(points, x, figure=3)} for x in SORTS}
    bitonic, radix = curves["bitonic"], curves["radix"]
    first = min(SORTS, key=lambda x: curves[x][small])
    yield Claim(
        "serial sorts are best at small scale",
        f"with {small} processes {LABELS[first]} is the fastest",
        first in SERIAL,
    )
    serial = {n: min(curves[x][n] for x in SERIAL) for n in sizes}
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
        f"long, Bitonic {growth['bitonic']:.1f} times; {LABELS[least]} grows least",
        least == "radix",
    )
    better = [n for n in sizes if bitonic[n] < radix[n]]
    yield Claim(
        "Bitonic is always better than Radix",
        f"so with {len(better)} of {len(sizes)} numbers of processes",
        better == sizes,
    )


def _seconds(
    points: Sequence[Point], name: str, figure: int, n: int, groups: int, length: int
) -> float:
    where = {"figure": figure, "n": n, "groups": groups, "length": length}
    return only(points, name, **where).seconds


def length_claim(points: Sequence[Point], big: int) -> Claim:
    """What longer colours do."""
    short, long = LENGTHS
    slower = {}
    for name in SPLITS:
        times = [_seconds(points, name, 4, big, FEW, length) for length in LENGTHS]
        slower[name] = 100 * (times[1] / times[0] - 1)
    return Claim(
        "longer colours slow Bitonic, and hardly Hash",
        f"with few groups, {long} characters instead of {short} change the time by "
        + ", ".join(f"{slower[x]:+.1f} % ({LABELS[x]})" for x in SPLITS),
        abs(slower["hash"]) < slower["bitonic"],
    )


def best_claim(points: Sequence[Point]) -> Claim:
    """Who is best at splitting alone."""
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


def alike_claim(points: Sequence[Point], big: int) -> Claim:
    """What reordering adds where groups are many."""
    change = [
        _seconds(points, name, 5, big, big // 2, length)
        / _seconds(points, name, 4, big, big // 2, length)
        for name in SPLITS
        for length in LENGTHS
    ]
    return Claim(
        "with many groups figure 5 looks like figure 4",
        f"reordering too takes {min(change):.2f} to {max(change):.2f} times as long",
        1 / NEAR <= min(change) <= max(change) <= NEAR,
    )


def slower_claim(points: Sequence[Point], big: int) -> Claim:
    """Where both hash splits are slower than Bitonic, reordering few groups."""
    slow = [
        n
        for n in sorted({p.n for p in pick(points, "hash", figure=5, groups=FEW)})
        if all(
            _seconds(points, name, 5, n, FEW, length)
            > _seconds(points, "bitonic", 5, n, FEW, length)
            for name in ("hash", "hash64")
            for length in LENGTHS
        )
    ]
    return Claim(
        "with few groups Hash and Hash64 need more time than Bitonic to reorder",
        f"both do with {', '.join(map(str, slow)) or 'no'} processes",
        big in slow,
    )


def claims(points: Sequence[Point], small: int = SMALL, big: int = BIG) -> list[Claim]:
    """What the paper says in words."""
    return [
        *sort_claims(points, small, big),
        length_claim(points, big),
        best_claim(points),
        alike_claim(points, big),
        slower_claim(points, big),
    ]
