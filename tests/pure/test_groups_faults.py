"""Faults of comparable libraries, each as a test of the right behaviour.

LWGRP 1.0.6, DTCMP 1.1.5 and the bug reported in the paper.
"""

from __future__ import annotations

import operator
import random

import pytest

from chains import links, oracle, run
from isthmus.groups import scans, trees
from isthmus.groups.chain import rounds
from isthmus.groups.items import Item, rank_items
from isthmus.groups.split import SPLIT_ALGORITHMS, split

NAMES = sorted(set(SPLIT_ALGORITHMS) - {"allgather_mpi"})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [4, 5, 8])
def test_a_split_of_a_reordered_group_reaches_the_right_processes(name, n):
    """lwgrp_comm_split: wrong ranks for 4 processes, a hang for 5 and 8."""
    chain = links(list(range(n)), n)
    turned = run(chain, lambda x: split(x, n, 0, -x.rank, algorithm=name))
    second = [place.link for place in turned.results]
    colors = [i % 2 for i in range(n)]
    done = run(second, lambda x: split(x, n, colors[x.address], algorithm=name))
    want = oracle(second, colors, [None] * n)
    assert [(p.link, p.id, p.groups) for p in done.results] == want


@pytest.mark.parametrize("n", [4, 6])
def test_two_neighbours_without_items_do_not_break_a_group(n):
    """DTCMP_Rankv: equal values counted as two groups."""
    items = [["x"] if i in (0, n - 1) else [] for i in range(n)]
    done = run(links(list(range(n)), n), lambda x: rank_items(x, items[x.rank]))
    assert done.results[0] == [Item(0, 2, 0)]
    assert done.results[n - 1] == [Item(0, 2, 1)]


def with_tree(dialogue):
    def with_link(link):
        tree = yield from trees.contract(link)
        return (yield from dialogue(link, tree))

    return with_link


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_the_root_of_a_gather_has_its_own_value_too(n):
    """lwgrp_comm_gather: the root's buffer was never written."""
    chain = links(list(range(n)), n)
    done = run(chain, with_tree(lambda link, tree: trees.gather(tree, link.rank)))
    assert done.results[0] == list(range(n))
    assert done.results[1:] == [None] * (n - 1)


@pytest.mark.parametrize("n", [3, 5, 8])
def test_an_allgather_of_uneven_values(n):
    """lwgrp_comm_allgatherv: counts of the wrong ranks, truncated messages."""
    chain = links(random.Random(n).sample(range(n), n), n)
    done = run(chain, lambda x: scans.allgather(x, "x" * (x.rank * 7 % 5)))
    assert set(done.results) == {tuple("x" * (i * 7 % 5) for i in range(n))}


@pytest.mark.parametrize("n", range(2, 8))
def test_sorters_of_a_proper_subgroup_exchange_among_themselves(n):
    """lwgrp_comm_alltoallv: counts by rank of the communicator, read out of bounds."""
    order = list(range(1, 2 * n, 2))[::-1]
    chain = links(order, 2 * n + 1)
    keys = [i * 5 % 7 for i in range(2 * n + 1)]
    done = run(
        chain, lambda x: split(x, 2 * n + 1, 0, keys[x.address], algorithm="cheng2")
    )
    want = oracle(chain, [0] * (2 * n + 1), keys)
    assert [p and (p.link, p.id, p.groups) for p in done.results] == want


@pytest.mark.parametrize("n", [2, 3, 7])
def test_a_scan_puts_the_own_value_last(n):
    """lwgrp_comm_scan is wrong for operators that do not commute."""
    chain = links(list(range(n)), n)
    done = run(chain, lambda x: scans.scan(x, str(x.rank), operator.add))
    assert done.results == ["0123456"[: i + 1] for i in range(n)]


def test_messages_hold_all_that_is_sent():
    """lwgrp_logring_alltoall_brucks has room for an element in place of several."""
    chain = links(list(range(5)), 5)
    done = run(
        chain, lambda x: scans.allgather(x, (x.rank, (x.rank, x.rank), "long" * 50))
    )
    assert all(row[4][2] == "long" * 50 for row in done.results)


@pytest.mark.parametrize("n", [1, 2])
def test_sorting_works_for_fewer_processes_than_sorters(n):
    """DTCMP's test of partitions needs three processes."""
    chain = links(list(range(n)), n)
    for name in ("cheng1", "cheng8192"):
        done = run(chain, lambda x: split(x, n, 0, -x.rank, algorithm=name))
        assert [p.link.rank for p in done.results] == list(range(n))[::-1]


def test_colours_are_not_cut_at_a_zero_byte():
    """strcmp on padded strings, as in DTCMP and rankstr."""
    colors = [b"a", b"a\0", b"a\0b", b"a", b"", b"\0"]
    for name in sorted(set(NAMES) - {"radix"}):
        done = run(
            links(list(range(6)), 6),
            lambda x: split(x, 6, colors[x.rank], algorithm=name),
        )
        assert [p.id for p in done.results] == [0, 1, 2, 0, 3, 4]


@pytest.mark.parametrize("n", [130, 300])
def test_long_groups_of_hash64_are_reordered_by_bitonic(n):
    """The paper's Hash64 gathered groups of more than 64 to everyone by mistake."""
    chain = links(list(range(n)), n)
    done = run(
        chain,
        lambda x: split(x, n, x.rank % 2, -x.rank, algorithm="hash64"),
        memory=[0, n // 2],
    )
    k = rounds(n)
    assert done.peak < 4000 + 400 * k
    assert done.results[0].link.rank == (n + 1) // 2 - 1
