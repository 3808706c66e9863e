"""The picture of an irregular problem as a regular problem on a cluster."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

pytest.importorskip("matplotlib")

from draw_irregular import figure, pieces


@given(st.integers(0, 1000), st.integers(1, 100))
def test_pieces_are_full_but_the_last(count, size):
    cut = pieces(count, size)
    assert sum(cut) == count
    assert len(cut) == max(1, -(-count // size))
    assert all(length == size for length in cut[:-1]) and cut[-1] <= size


@pytest.mark.parametrize("counts", [[5, 2, 0, 4], [3], [0, 0]])
def test_every_piece_is_a_process_of_its_node(counts):
    (axes,) = figure(counts, 2).axes
    words = [text.get_text() for text in axes.texts]
    for i, count in enumerate(counts):
        assert f"process {i}" in words and f"node {i}" in words
        names = [word for word in words if word.partition(".")[0] == str(i)]
        assert len(names) == len(pieces(count, 2))
    box = axes.figure.bbox
    for text in axes.texts:
        extent = text.get_window_extent()
        assert box.x0 <= extent.x0 and extent.x1 <= box.x1, text
