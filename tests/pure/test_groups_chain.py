"""Chains, scans and trees, on part of the processes and in any order."""

from __future__ import annotations

import operator
import random

import numpy as np
import pytest

from chains import links, members, pickled, random_order, run
from isthmus.groups import scans, trees
from isthmus.groups.chain import ChainLink, from_addresses, from_size, rounds


def test_a_link_is_five_numbers():
    assert from_size(0, 1) == ChainLink(0, 1, 0, None, None)
    assert from_size(2, 4) == ChainLink(2, 4, 2, 1, 3)
    assert from_addresses(3, [5, 3, 0]) == ChainLink(1, 3, 3, 5, 0)
    assert from_addresses(4, [5, 3, 0]) is None


@pytest.mark.parametrize("n", range(1, 41))
def test_scans_combine_in_the_order_of_the_chain(n):
    """Concatenation is not commutative: any wrong order shows."""
    chain = links(random_order(random.Random(n), n), n)
    names = [f"<{link.rank}>" for link in members(chain)]
    done = run(
        chain,
        lambda link: scans.double_scan(
            link, names[link.rank], names[link.rank], operator.add
        ),
        carry=pickled,
    )
    assert done.rounds == rounds(len(names))
    for link in members(chain):
        got, r = done.results[link.address], link.rank
        assert got.upto == "".join(names[: r + 1])
        assert got.onward == "".join(names[r:])
        assert got.before == ("".join(names[:r]) or None)
        assert got.after == ("".join(names[r + 1 :]) or None)


def test_a_scan_both_ways_may_have_two_operators():
    chain = links([3, 1, 0, 2], 4)
    done = run(
        chain,
        lambda link: scans.double_scan(
            link, link.rank, str(link.rank), max, operator.add
        ),
    )
    assert [done.results[a].upto for a in (3, 1, 0, 2)] == [0, 1, 2, 3]
    assert [done.results[a].onward for a in (3, 1, 0, 2)] == ["0123", "123", "23", "3"]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 33])
def test_one_way_scans_total_and_allgather(n):
    chain = links(random.Random(n).sample(range(n), n), n)

    def dialogue(link):
        mine = str(link.rank) + ","
        upto = yield from scans.scan(link, mine, operator.add)
        before = yield from scans.exscan(link, mine, operator.add)
        everything = yield from scans.total(link, mine, operator.add)
        values = yield from scans.allgather(link, mine)
        yield from scans.barrier(link)
        return upto, before, everything, "".join(values)

    done = run(chain, dialogue)
    whole_line = "".join(f"{i}," for i in range(n))
    for link in members(chain):
        upto, before, everything, values = done.results[link.address]
        assert upto == (before or "") + f"{link.rank},"
        assert everything == values == whole_line
    assert done.rounds == 5 * rounds(n)


def test_the_memory_of_a_scan_does_not_grow():
    peaks = {
        run(
            links(list(range(n)), n),
            lambda link: scans.double_scan(link, 1, 1, operator.add),
            memory=range(n),
        ).peak
        for n in (8, 64, 500)
    }
    assert len(peaks) == 1


@pytest.mark.parametrize("n", range(1, 41))
def test_trees_from_and_to_any_root(n):
    rng = random.Random(n)
    chain = links(random_order(rng, n), n)
    size = len(members(chain))
    root = rng.randrange(size)

    def dialogue(link):
        tree = yield from trees.contract(link)
        values = yield from trees.gather(tree, link.rank)
        values = yield from trees.from_root(tree, values, root)
        assert values == (list(range(size)) if link.rank == root else None)
        values = yield from trees.to_root(tree, values, root)
        mine = yield from trees.scatter(tree, values)
        word = yield from trees.to_root(tree, f"from {link.rank}", root)
        word = yield from trees.bcast(tree, word)
        line = yield from trees.allreduce(tree, str(link.rank), operator.add)
        return mine, word, line

    done = run(chain, dialogue, carry=pickled)
    line = "".join(map(str, range(size)))
    for link in members(chain):
        assert done.results[link.address] == (link.rank, f"from {root}", line)
    assert done.rounds <= 9 * rounds(size)


@pytest.mark.parametrize("n", [1, 2, 5, 16, 23])
def test_each_tree_takes_a_logarithm_of_rounds(n):
    chain = links(list(range(n)), n)
    built = run(chain, trees.contract)
    assert built.rounds == rounds(n)
    tree = built.results
    for dialogue in (
        lambda link: trees.reduce(tree[link.rank], 1, operator.add),
        lambda link: trees.bcast(tree[link.rank], 1),
        lambda link: trees.scatter(tree[link.rank], None if link.rank else [0] * n),
    ):
        assert run(chain, dialogue).rounds == rounds(n)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 30])
@pytest.mark.parametrize("levels", [0, 1, 2, 3])
def test_contracting_some_levels_leaves_a_chain_of_roots(n, levels):
    chain = links(list(range(n))[::-1], n)
    built = run(chain, lambda link: trees.contract(link, levels))
    tops = sorted((t.top for t in built.results if t.top), key=lambda x: x.rank)
    size = 1 << min(levels, rounds(n))
    roots = [chain[n - 1 - r].address for r in range(0, n, size)]
    assert [t.address for t in tops] == roots
    assert tops == [from_addresses(a, roots) for a in roots]


def test_arrays_are_values_too():
    chain = links([2, 0, 1], 3)

    def dialogue(link):
        mine = np.arange(4.0) + link.rank
        tree = yield from trees.contract(link)
        upto = yield from scans.scan(link, mine, np.maximum)
        return upto, (yield from trees.allreduce(tree, mine, np.add))

    for upto, total in run(chain, dialogue).results:
        assert upto[0] in (0, 1, 2)
        assert total.tolist() == [3, 6, 9, 12]


def test_all_get_the_same_sum_to_the_last_digit():
    """A scan would group the numbers differently on every process."""
    n = 37
    chain = links(list(range(n)), n)

    def dialogue(link):
        tree = yield from trees.contract(link)
        return (yield from trees.allreduce(tree, 0.1 * 1.7**link.rank, operator.add))

    assert len(set(run(chain, dialogue).results)) == 1
