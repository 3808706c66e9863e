"""Blocks, shares and their overlaps."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from isthmus.schedules.layout import Even, Mapped, Shares, Side, Uneven, cut, overlap

COUNTS = st.lists(st.one_of(st.just(0), st.integers(0, 50)), min_size=1, max_size=12)
BLOCKS = st.one_of(
    st.builds(Even, st.integers(1, 12), st.integers(0, 20)),
    st.builds(Uneven, COUNTS),
    st.builds(Shares, st.integers(1, 12), st.integers(0, 60)),
)


def elements(spans):
    """The element numbers of some spans, in order."""
    return [x for s in spans for x in range(s.start, s.start + s.size)]


@given(BLOCKS)
def test_blocks_cover_everything_once_in_order(blocks):
    pieces = [elements(blocks[i]) for i in range(blocks.n)]
    assert [x for piece in pieces for x in piece] == list(range(blocks.total))


@given(BLOCKS)
def test_beyond_the_ends_lies_nothing(blocks):
    for i in (-3, -1, blocks.n, blocks.n + 5):
        assert blocks.size(i) == 0


@given(BLOCKS)
def test_find_gives_the_block_that_holds_an_element(blocks):
    for x in range(blocks.total):
        assert x in elements(blocks[blocks.find(x)])


@given(BLOCKS, st.integers(0, 30), st.integers(0, 12))
def test_a_window_wraps_round(blocks, i, n):
    n = min(n, blocks.n)
    wanted = [e for k in range(n) for e in elements(blocks[(i + k) % blocks.n])]
    assert elements(blocks.window(i, n)) == wanted


@given(BLOCKS)
def test_lanes_give_what_single_indices_give(blocks):
    i = np.arange(-2, blocks.n + 2)
    assert blocks.offset(i).tolist() == [blocks.offset(int(k)) for k in i]
    if blocks.total:
        x = np.arange(blocks.total)
        assert blocks.find(x).tolist() == [blocks.find(int(k)) for k in x]
    start, size = overlap(blocks, i, Shares(3, blocks.total), 1)
    single = [overlap(blocks, int(k), Shares(3, blocks.total), 1) for k in i]
    assert list(zip(start.tolist(), size.tolist(), strict=True)) == single


@given(st.integers(0, 100), st.integers(1, 12))
def test_parts_differ_by_one_at_most_and_the_longer_come_first(total, n):
    sizes = [cut(total, n, i + 1) - cut(total, n, i) for i in range(n)]
    assert sum(sizes) == total
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) - min(sizes) <= 1


@given(COUNTS, st.integers(1, 9))
def test_overlaps_of_two_partitions_cover_everything_once(counts, n):
    x, y = Uneven(counts), Shares(n, sum(counts))
    elements = []
    for i in range(x.n):
        for j in range(y.n):
            start, size = overlap(x, i, y, j)
            elements += range(start, start + size)
    assert elements == list(range(sum(counts)))


def test_a_side_says_what_its_ranks_contribute():
    side = Side(4, Uneven([3, 0, 2]))
    assert (side.n, side.own(2)[0].size, side.blocks[2][0].start) == (3, 2, 3)
    assert Mapped(2, lambda i: i * i).size(1) == 3
