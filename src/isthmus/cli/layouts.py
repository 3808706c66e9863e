"""The layouts of a redistribution as people write a layout: blocks:4x2."""

from __future__ import annotations

from typing import Annotated

import typer

from ..redistribution.layouts import Layout, Replicate, Shard
from .options import integers

LAYOUT_HELP = "as in blocks:4x2, cyclic:2x3:8x8 (grid, block) or sharded:2x4:S0,R"

Source = Annotated[
    str | None,
    typer.Option(
        metavar="LAYOUT", help=f"layout before a redistribution: {LAYOUT_HELP}"
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="LAYOUT",
        help="layout after it [default of both: blocks:4x2 and blocks:3x3]",
    ),
]
Shape = Annotated[
    str | None,
    typer.Option(
        metavar="N,N",
        help="shape of the redistributed array [default: 24,24; with times, 2400,2400]",
    ),
]
Inside = Annotated[
    bool, typer.Option("--inside", help="a redistribution inside one group")
]


def layout_pair(
    source: str | None, target: str | None, shape: list[int], inside: bool
) -> tuple[Layout, Layout, int | None]:
    """The layouts before and after a redistribution, and the size of a single group."""
    before = layout(source or "blocks:4x2", shape, "--source")
    after = layout(target or "blocks:3x3", shape, "--target")
    if (source is None) != (target is None):
        missing = "--source" if source is None else "--target"
        raise ValueError(f"a redistribution has two layouts: give {missing} too")
    return before, after, max(before.ranks, after.ranks) if inside else None


def layout(text: str, shape: list[int], option: str) -> Layout:
    """A layout of a global array of the shape."""
    kind, *parts = text.split(":")
    if (kind, len(parts)) in (("blocks", 1), ("cyclic", 2)):
        return getattr(Layout, kind)(shape, *(_grid(x, option) for x in parts))  # type: ignore[no-any-return]
    if (kind, len(parts)) == ("sharded", 2):
        placements = [_placement(x, option) for x in parts[1].split(",")]
        return Layout.sharded(shape, _grid(parts[0], option), placements)
    raise ValueError(f"{option} {text}: must be a layout, {LAYOUT_HELP}")


def _grid(text: str, option: str) -> list[int]:
    return integers(text.replace("x", ","), option)


def _placement(text: str, option: str) -> Shard | Replicate:
    if text == "R":
        return Replicate()
    if not text.startswith("S"):
        raise ValueError(f"{option}: {text} is no placement: S and an axis, or R")
    return Shard(*integers(text[1:], option))
