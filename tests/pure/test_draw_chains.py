"""Pictures of chains show the messages of dialogues."""

from __future__ import annotations

import io

import pytest

pytest.importorskip("matplotlib")

from draw_chains import (
    FIGURES,
    bins_figure,
    bitonic_figure,
    cheng_figure,
    hash_figure,
    hash_steps,
    radix_figure,
    scan_figure,
    table_figure,
    tree_figure,
)
from isthmus.groups import vm
from isthmus.groups.chain import from_size
from isthmus.groups.encoding import encode
from isthmus.groups.hash_split import hash_split
from isthmus.groups.split_entry import SplitEntry


def words(picture) -> list[str]:
    """All text in a picture, in the order of drawing."""
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


def test_sorters_hand_out_in_order():
    assert words(cheng_figure())[-8:] == list("01234567")
    written = words(cheng_figure((3, 1, 2, 0), 2))
    assert written[-4:] == list("0123")
    assert written.count("exchanged") == 1 and "0 1" in written


def test_everyone_has_the_table_and_finds_its_place():
    written = words(table_figure("xyyx"))
    assert written[-4:] == ["rank 0 of 2", "rank 0 of 2", "rank 1 of 2", "rank 1 of 2"]
    assert written.count("x y y x") == 4


def test_radix_links_up_what_it_sorted():
    written = words(radix_figure((0x21, 0x12, 0x20, 0x11)))
    assert written[-4:] == ["P3: 11", "P1: 12", "P2: 20", "P0: 21"]
    assert {"first digit 1", "first digit 2"} < set(written)


@pytest.mark.parametrize(
    "names", [["a"], ["a", "b"], ["oak", "pine", "oak", "elm"] * 3]
)
def test_hashing_ends_in_the_groups_of_the_split(names):
    n = len(names)
    run = vm.run(
        [
            hash_split(from_size(r, n), SplitEntry(encode(x)))
            for r, x in enumerate(names)
        ]
    )
    chains = [chain for _, parts in hash_steps(names) for chain in parts]
    last = {link.address: link for chain in chains for link in chain}
    assert [last[r] for r in range(n)] == [place.link for place in run.results]
    written = words(hash_figure(names))
    assert sum("a group" in x for x in written) == len(set(names))


@pytest.mark.parametrize("name", FIGURES)
def test_it_can_be_saved(name):
    picture = FIGURES[name]()
    assert picture.axes[0].patches
    picture.savefig(io.BytesIO(), format="png")
