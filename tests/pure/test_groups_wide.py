"""The splits with arrays are those of the dialogues, to the last byte."""

from __future__ import annotations

import random

import pytest

from isthmus.groups import vm
from isthmus.groups.chain import whole
from isthmus.groups.hashed import hashed
from isthmus.groups.hashing import bin_of
from isthmus.groups.place import number
from isthmus.groups.split import entry_of, find, place
from isthmus.groups.wide import hashed as wide_hashed, split as wide
from isthmus.groups.wide.entries import entries as as_arrays
from isthmus.groups.wide.hashing import Bins
from isthmus.groups.wide.links import whole as wide_whole
from isthmus.groups.wide.network import Network
from sampling import LONG, some

SORTS = ["bitonic", "radix", "hash", "hash64"]
TABLES = ["allgather_group", "allgather_mpi", "gather_scatter", "cheng8", "cheng32"]
FLAGS = [(True, False), (True, True), (False, True)]
ALPHA, BETA = 2.0, 0.25


def numbered(link, entry, name):
    """A split by an algorithm, and the numbers of the groups."""
    done = yield from place(link, entry, find(name))
    return (yield from number(link, done))


def by_dialogues(name, entries):
    """Rows (rank, size, left, right, id), and rows of tallies."""
    n = len(entries)
    done = vm.run(
        [numbered(whole(i, n), entries[i], name) for i in range(n)],
        alpha=ALPHA,
        beta=BETA,
    )
    rows = []
    for found in done.results:
        link, id_ = found.link, found.id
        ends = (link.left, link.right) if link else (None, None)
        rows.append(
            (
                link.rank if link else -1,
                link.size if link else 0,
                *(-1 if x is None else x for x in (*ends, id_)),
            )
        )
    return rows, [(t.rounds, t.messages, t.bytes, t.time) for t in done.ranks]


def by_arrays(name, entries):
    net = Network(len(entries), ALPHA, BETA)
    found = wide.number(net, wide.place(net, entries, name))
    x = found.links
    rows = zip(x.rank, x.size, x.left, x.right, found.id, strict=True)
    tallies = zip(net.rounds, net.messages, net.bytes, net.time, strict=True)
    return list(rows), list(tallies)


def some_entries(name, n, groups, length, flags, seed=0, out=0.0):
    """Random colours of a length, or integers; keys with ties, some below zero."""
    rng = random.Random(seed)
    names = [i if name == "radix" else str(i).rjust(length, "x") for i in range(groups)]
    return [
        entry_of(
            None if rng.random() < out else rng.choice(names),
            rng.randrange(-5, n),
            *flags,
        )
        for _ in range(n)
    ]


def check(name, entries):
    wanted, counts = by_dialogues(name, entries)
    found, tallies = by_arrays(name, entries)
    assert found == wanted
    assert tallies == counts


@pytest.mark.parametrize("name", SORTS + TABLES)
def test_arrays_do_what_dialogues_do(name):
    """Every n, with one group, few and many, and every kind of call in turn."""
    for n in [*range(1, 18), *some(range(18, 71), 7)]:
        groups, flags = (1, 3, n)[n % 3], FLAGS[n // 3 % 3]
        check(name, some_entries(name, n, groups, 5, flags, n))


@pytest.mark.parametrize("name", [*SORTS, "gather_scatter", "cheng8"])
def test_with_some_left_out(name):
    for n in (1, 2, 9, 40, 70):
        for out in (0.3, 1.0):
            check(name, some_entries(name, n, 4, 5, (True, True), n, out))


@pytest.mark.parametrize("name", SORTS)
def test_long_colours_and_more_processes(name):
    check(name, some_entries(name, 300, 5, 80, FLAGS[1]))
    check(name, some_entries(name, 129, 129, 80, FLAGS[0]))
    if LONG:
        check(name, some_entries(name, 257, 257, 80, FLAGS[1]))
        check(name, some_entries(name, 1000, 700, 80, FLAGS[0]))


@pytest.mark.parametrize("most", [1, 2])
def test_colours_that_no_hash_parts_are_sorted(most):
    n = 60
    entries = some_entries("hash", n, 40, 5, (True, True))
    done = vm.run([hashed(whole(i, n), entries[i], most=most) for i in range(n)])
    net = Network(n)
    places = wide_hashed.hashed(net, wide_whole(n), as_arrays(entries), most=most)
    assert places.links.rank.tolist() == [p.link.rank for p in done.results]
    assert places.links.size.tolist() == [p.link.size for p in done.results]
    assert net.bytes.tolist() == [t.bytes for t in done.ranks]
    assert net.time.tolist() == [t.time for t in done.ranks]


def test_colours_of_many_lengths_are_hashed_alike():
    rng = random.Random(1)
    codes = [
        b"",
        b"\0",
        b"\0\0",
        *(rng.randbytes(rng.randrange(1, 90)) for _ in "x" * 50),
    ]
    bins = Bins(codes)
    for iteration in (0, 7, 8, 20, 31):
        assert bins.of(iteration).tolist() == [bin_of(c, iteration) for c in codes]


def test_radix_refuses_what_does_not_fit_a_word():
    """And takes what just fits."""
    for bits in (31, 32):
        entries = [entry_of(x, x, True, True) for x in (0, 2**bits - 1)]
        if bits == 31:
            check("radix", entries)
        else:
            with pytest.raises(ValueError, match="63 bits"):
                wide.place(Network(2), entries, "radix")
