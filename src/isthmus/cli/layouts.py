"""Layouts as people write them on a command line."""

from __future__ import annotations

from ..redistribution.layouts import Layout, Replicate, Shard
from .parse import integers

HELP = "as in blocks:4x2, cyclic:2x3:8x8 (grid, block) or sharded:2x4:S0,R"


def layout(text: str, shape: list[int], option: str) -> Layout:
    """A layout of a global array of that shape."""
    kind, *more = text.split(":")
    if (kind, len(more)) in (("blocks", 1), ("cyclic", 2)):
        return getattr(Layout, kind)(shape, *(_grid(x, option) for x in more))  # type: ignore[no-any-return]
    if (kind, len(more)) == ("sharded", 2):
        placements = [_placement(x, option) for x in more[1].split(",")]
        return Layout.sharded(shape, _grid(more[0], option), placements)
    raise ValueError(f"{option} {text}: must be a layout, {HELP}")


def _grid(text: str, option: str) -> list[int]:
    return integers(text.replace("x", ","), option)


def _placement(text: str, option: str) -> Shard | Replicate:
    if text == "R":
        return Replicate()
    if not text.startswith("S"):
        raise ValueError(f"{option}: {text} is no placement: S and an axis, or R")
    return Shard(*integers(text[1:], option))
