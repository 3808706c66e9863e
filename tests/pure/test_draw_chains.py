"""Pictures of chains: what they show is what the dialogues did."""

from __future__ import annotations

import io

import pytest

pytest.importorskip("matplotlib")

from isthmus.draw.chain import bins_figure, scan_figure
from isthmus.draw.sorting import bitonic_figure, tree_figure


def words(picture) -> list[str]:
    """All that is written in a picture, in the order in which it was drawn."""
    return [text.get_text() for text in picture.axes[0].texts if text.get_text()]


@pytest.mark.parametrize("n", [2, 5, 8])
def test_a_scan_ends_with_all_prefixes(n):
    assert words(scan_figure(n))[-n:] == ["abcdefgh"[: i + 1] for i in range(n)]


def test_bins_become_chains():
    written = words(bins_figure(["01", "10", "01", "11"]))
    assert "none in 00" in written
    assert written.count("rank 0 of 1") == 2
    assert {"rank 0 of 2", "rank 1 of 2"} < set(written)


def test_sorts_end_in_order():
    assert words(bitonic_figure())[-8:] == list("01234567")
    assert words(bitonic_figure((1, 3, 0, 2)))[-4:] == list("0123")
    assert words(tree_figure())[-6:] == list("023567")


@pytest.mark.parametrize(
    "figure", [scan_figure, bins_figure, bitonic_figure, tree_figure]
)
def test_it_can_be_saved(figure):
    picture = figure()
    assert picture.axes[0].patches
    picture.savefig(io.BytesIO(), format="png")
