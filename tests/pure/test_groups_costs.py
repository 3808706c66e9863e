"""Rounds and memory of group algorithms, compared with the papers' claims."""

from __future__ import annotations

import operator
import random
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from chains import links, run
from isthmus.groups import scans, sorts, vm, vm_batch
from isthmus.groups.chain import from_size, rounds
from isthmus.groups.dialogue import WORD_BYTES
from isthmus.groups.encoding import encode
from isthmus.groups.hash_split import hash_split
from isthmus.groups.jenkins import bin_of
from isthmus.groups.radix import DIGIT_BITS
from isthmus.groups.split import find, place, split
from isthmus.groups.split_entry import GroupPlace, SplitEntry, batched, number
from sampling import LONG

#: bytes that hash and radix may hold, however many processes there are
BOUND = 4000
SIZES = [2, 3, 7, 16, 33, 100, 256]


def cost(name, n, color, key=lambda i: 0, memory=False, **flags):
    """A run of an algorithm alone, without agreement and numbering.

    With `memory`, both ends, the middle and some others are weighed.
    """
    weighed = {0, n // 2, *range(1, n, 1 + n // 6), n - 1} if memory else ()
    flags = {"split": True, "reorder": True, **flags}
    chain = links(list(range(n)), n)

    def entry(i):
        c = encode(color(i)) if flags["split"] else b""
        return SplitEntry(c, encode(key(i)) if flags["reorder"] else b"", **flags)

    return run(
        chain, lambda link: place(link, entry(link.rank), find(name)), memory=weighed
    )


@pytest.mark.parametrize("n", SIZES)
def test_rounds_of_bitonic(n):
    k = rounds(n)
    done = cost("bitonic", n, lambda i: i % 3, lambda i: -i)
    assert done.rounds <= k + k * (k + 1) // 2 + 1 + k + 1
    if n & (n - 1) == 0:
        assert done.rounds == k + k * (k + 1) // 2 + 1 + k + 1


@pytest.mark.parametrize("n", SIZES)
def test_rounds_of_the_tables_and_the_tree(n):
    k = rounds(n)
    assert cost("allgather_group", n, lambda i: i % 3).rounds == k
    assert cost("allgather_mpi", n, lambda i: i % 3).rounds == k
    assert cost("gather_scatter", n, lambda i: i % 3).rounds <= 3 * k + 1 + k + 1


def separated(groups):
    """Colours that fall into different bins in the first pass."""
    color_of_bin = {}
    for i in range(1000):
        color_of_bin.setdefault(bin_of(encode(i), 0), i)
    return list(color_of_bin.values())[:groups]


@pytest.mark.parametrize("name", ["hash", "hash64"])
@pytest.mark.parametrize("n", [100, 256, *[500, 1000] * LONG])
def test_rounds_of_hash_with_few_groups(name, n):
    """Split, split again to see no further parting, compare: about three scans."""
    colors = separated(4)
    done = cost(name, n, lambda i: colors[i % 4], reorder=False)
    k = rounds(n)
    within = rounds(-(-n // 4))
    assert done.rounds <= k + 2 * within + 1 <= 3 * k


@pytest.mark.parametrize("bins", [2, 4, 16])
def test_hash_needs_log_squared_rounds_for_as_many_groups_as_processes(bins):
    """Ω(log² N) of the paper: after i iterations a chain of N / bins^i is left, and a
    scan of it takes ⌈log⌉ rounds, whatever the hash function. Also not many more."""
    for n in (16, 64, 256, 1024, *[4096, 16384] * LONG):
        entries = batched([SplitEntry(encode(i), b"", True, False) for i in range(n)])
        choose = partial(bin_of, bins=bins)
        talk = hash_split(
            from_size(np.arange(n), n), entries, hash_function=choose, bins=bins
        )
        rounds_taken = int(vm_batch.run(talk, n).rounds.max())
        k, b = rounds(n), bins.bit_length() - 1
        least = sum(rounds(-(-n // bins**i)) for i in range(k))
        assert k * k / (2 * b) <= least <= rounds_taken <= 6 * k * (k / b + 1)


def test_hash_needs_log_rounds_for_one_group():
    """Between log N and a constant multiple of log N."""
    for n in (16, 256, 4096):
        entries = batched([SplitEntry(encode(0), b"", True, False)] * n)
        done = vm_batch.run(hash_split(from_size(np.arange(n), n), entries), n)
        assert rounds(n) <= done.rounds.max() == 2 * rounds(n) + 1


@pytest.mark.parametrize(
    ("name", "n"), [("radix", 64), ("radix", 256), ("radix_full", 64)]
)
def test_rounds_of_radix(name, n):
    k, bits = rounds(n), 32
    top = 2**bits - 1
    keys = [0, top, *random.Random(n).choices(range(top), k=n - 2)]
    done = cost(name, n, lambda i: 0, lambda i: keys[i], split=False)
    assert done.rounds <= k + 2 * k * bits // DIGIT_BITS
    costs = cost(name, n, lambda i: 0, lambda i: keys[i])
    if name == "radix_full":  # the colours are words too
        bits *= 2
    assert costs.rounds <= k + 2 * k * bits // DIGIT_BITS + 1 + k


@pytest.mark.parametrize("n", [16, 256])
def test_rounds_of_radix_on_whole_words(n):
    """Divide and conquer by the leading bits, also by those that all keys share: keys
    below N in 32 bits. Then each digit has shorter chains than the one before."""
    k = rounds(n)
    keys = random.Random(n).sample(range(n), n)
    done = cost("radix_full", n, lambda i: 0, lambda i: keys[i], split=False)
    digits = k // DIGIT_BITS
    shared = 2 * k * (32 // DIGIT_BITS - digits)
    assert done.rounds == k + shared + sum(
        2 * DIGIT_BITS * (d + 1) for d in range(digits)
    )
    short = cost("radix", n, lambda i: 0, lambda i: keys[i], split=False)
    assert short.rounds == done.rounds - shared


@pytest.mark.parametrize("m", [8, 32])
def test_rounds_of_cheng_do_not_grow_with_the_entries_squared(m):
    """Every iteration drops a quarter of the entries, so at most 2.41 log n
    iterations."""
    n = 200
    k, top = rounds(n), rounds(-(-n // m))
    done = cost(f"cheng{m}", n, lambda i: 0, lambda i: i * 37 % 101)
    iterations = 2.41 * k + 1
    assert done.rounds <= 3 * k + top + iterations * (1 + 2 * top) + 1 + k + 2


def cheng_cost(n, m, **model):
    keys = [i * 2654435761 % 2**32 for i in range(n)]
    items = [
        place(
            from_size(i, n), SplitEntry(b"", encode(keys[i]), False), find(f"cheng{m}")
        )
        for i in range(n)
    ]
    return vm.run(items, **model)


@pytest.mark.parametrize(("n", "m"), [(64, 4), (200, 8), (256, 32), (500, 16)])
def test_cheng_takes_the_time_of_the_paper(n, m):
    """O(P log N + log² N + N/P log P) with P sorters, in start-ups and in bytes."""
    p, k = -(-n // m), rounds(n)
    iterations, top = 2.41 * k + 1, rounds(p)
    trees, count = 2 + 4 * rounds(m), 2 + 2 * k + 1
    startups = trees + 2 * top + iterations * (p + 4 * top) + p + count
    assert cheng_cost(n, m).time <= startups
    item = 6 * WORD_BYTES  # with the length of its key, and the words beside it
    table = 2 * top * p * item  # of all sorters, gathered
    moved = 4 * m * item  # up the tree, among the sorters, and down
    most = (
        moved
        + table
        + iterations * (p * item + 2 * table)
        + 4 * WORD_BYTES * (count + k)
    )
    assert cheng_cost(n, m, alpha=0.0, beta=1.0).time <= most


def test_cheng_holds_as_many_items_as_a_sorter_may():
    """O(N/P) memory, since each of P sorters has a row in every table."""
    few, many = (
        cost(f"cheng{n // 4}", n, lambda i: 0, lambda i: -i, memory=True).peak
        for n in (64, 256)
    )
    assert 2 * few < many < 4.1 * few


@pytest.mark.parametrize("n", SIZES)
def test_rounds_of_the_agreement_and_the_numbers(n):
    """A user's call takes at most three scans on top of the algorithm."""
    chain = links(list(range(n)), n)
    k = rounds(n)
    alone = cost("bitonic", n, lambda i: i % 2, lambda i: -i).rounds
    full = run(chain, lambda x: split(x, n, x.rank % 2, -x.rank, algorithm="bitonic"))
    assert full.rounds <= k + alone + 2 * k
    numbered = run(chain, lambda link: number(link, GroupPlace(link)))
    assert numbered.rounds == 2 * k


def test_the_memory_of_hash_does_not_grow():
    colors = [f"name {i}" for i in range(16)]
    peaks = [
        cost("hash", n, lambda i: colors[i % 16], reorder=False, memory=True).peak
        for n in (128, 1024 if LONG else 512)
    ]
    assert peaks[1] <= peaks[0] + WORD_BYTES <= BOUND
    for n in (64, 512 if LONG else 256):
        name = "name {:04}".format
        assert cost("hash", n, name, reorder=False, memory=True).peak <= BOUND


@pytest.mark.long
def test_the_memory_of_radix_does_not_grow():
    """Keys of 32 bits, each twice, so that no chain is short before the last bits.

    With fewer processes the tables of bins are not full.
    """
    keys = [i * 2654435761 % 2**32 for i in range(512)]
    keys[:2] = [0, 2**32 - 1]

    def peak(n):
        half = n // 2
        return cost(
            "radix", n, lambda i: 0, lambda i: keys[i % half], split=False, memory=True
        ).peak

    peaks = [peak(n) for n in (512, 1024)]
    assert peaks[1] <= peaks[0] + WORD_BYTES <= BOUND


def test_the_memory_of_bitonic_grows_with_the_logarithm():
    """Two addresses and a stretch of the network more, each time n doubles."""
    peaks = [
        run(
            links(list(range(n)), n),
            lambda link: sorts.bitonic(link, (-link.rank, link.rank)),
            memory=[n // 2],
        ).peak
        for n in (16, 32, 64, 128, 256)
    ]
    steps = {after - before for before, after in pairwise(peaks)}
    assert steps == {5 * WORD_BYTES}


def test_the_memory_of_a_table_does_grow():
    """A control: otherwise the tests above might never fail."""
    small, large = (
        cost("allgather_group", n, lambda i: i, memory=True).peak for n in (64, 256)
    )
    assert large > 3 * small
    chain = links(list(range(64)), 64)
    whole = run(chain, lambda link: scans.allgather(link, link.rank), memory=[5])
    assert whole.peak >= 64 * 8
    total = run(chain, lambda x: scans.total(x, 1, operator.add), memory=[5])
    assert total.peak < 400
