"""Several items per process, and refused calls."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from chains import in_order, links, members, pickled, random_order, run
from isthmus.groups import compare
from isthmus.groups.agree import Refused, agree
from isthmus.groups.items import Item, rank_items
from isthmus.groups.split import split
from isthmus.verify.errors import Deadlock


def expected(chain, items):
    """For every process, found by counting along the chain."""
    line = [x for link in members(chain) for x in items[link.address] if x is not None]
    ids = {x: i for i, x in enumerate(sorted(set(line), key=in_order))}
    sizes, seen = Counter(line), Counter()
    ranked = [None] * len(chain)
    for link in members(chain):
        ranked[link.address] = []
        for x in items[link.address]:
            place = None if x is None else Item(ids[x], sizes[x], seen[x])
            ranked[link.address].append(place)
            seen[x] += 1
    return ranked


@pytest.mark.parametrize("n", range(1, 20))
def test_items_are_ranked_along_the_chain(n):
    rng = random.Random(n)
    for values in (["a"], ["a", "b", b"a", 1, 1.0, (1, 2)], range(-20, 20), [None, 0]):
        chain = links(random_order(rng, n), n)
        items = [rng.choices(values, k=rng.randrange(6)) for _ in range(n)]
        done = run(chain, lambda link: rank_items(link, items[link.address]))
        assert done.results == expected(chain, items)


@pytest.mark.parametrize(
    "counts",
    [[1, 0, 0, 1], [0, 0, 0, 0], [0, 5, 0, 0], [3, 0, 0, 0, 0, 2], [0, 0, 1, 0, 0, 1]],
)
def test_processes_without_items(counts):
    n = len(counts)
    chain = links(list(range(n)), n)
    items = [["same"] * c for c in counts]
    done = run(chain, lambda x: rank_items(x, items[x.rank]), carry=pickled)
    assert done.results == expected(chain, items)


def test_items_of_any_iterable():
    chain = links([0, 1], 2)
    done = run(chain, lambda x: rank_items(x, (c for c in "aba")))
    assert done.results == expected(chain, [list("aba")] * 2)


def test_one_process_creates_each_file():
    names = [["a", "b"], ["b"], [], ["c", "a", "c"]]
    chain = links(list(range(4)), 4)
    done = run(chain, lambda x: rank_items(x, names[x.rank]))
    created = [
        name
        for mine, places in zip(names, done.results, strict=True)
        for name, place in zip(mine, places, strict=True)
        if place.rank == 0
    ]
    assert sorted(created) == ["a", "b", "c"]


def everywhere(n, dialogue):
    """The error of every process, or None, after the end of all processes."""
    raised = [None] * n

    def guarded(link):
        try:
            return (yield from dialogue(link))
        except Exception as error:
            raised[link.rank] = error

    run(links(list(range(n)), n), guarded)
    return raised


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("bad", [[1], float("nan"), object()])
def test_a_bad_colour_on_one_process_is_an_error_on_all(n, bad):
    for who in {0, n // 2, n - 1}:
        raised = everywhere(n, lambda x: split(x, n, bad if x.rank == who else 1))
        assert type(raised[who]) in (TypeError, ValueError)
        others = [e for i, e in enumerate(raised) if i != who]
        assert all(isinstance(e, Refused) for e in others)
        assert all(f"rank {who}: " in str(e) for e in others)


def test_bad_keys_items_and_names():
    for call in (
        lambda x: split(x, 4, 0, [] if x.rank == 2 else 1),
        lambda x: rank_items(x, [1, {}] if x.rank == 1 else []),
        lambda x: rank_items(x, None if x.rank == 1 else [1]),
        lambda x: split(x, 4, 0, algorithm="quick"),
        lambda x: split(x, 4, 0, algorithm="quick" if x.rank == 3 else "hash"),
        lambda x: split(x, 4, "a" if x.rank == 1 else 1, algorithm="radix"),
        lambda x: split(x, 4, 1, 0.5, algorithm="radix"),
        lambda x: split(x, 9, 1, algorithm="allgather_mpi"),
    ):
        assert all(isinstance(e, (ValueError, TypeError)) for e in everywhere(4, call))


@pytest.mark.parametrize("n", [2, 3, 7, 12])
def test_calls_that_differ_are_an_error_on_all(n):
    for call in (
        lambda x: split(x, n, 0, algorithm="hash" if x.rank else "bitonic"),
        lambda x: split(x, n, 0, split=x.rank != n - 1),
        lambda x: split(x, n, 0, reorder=x.rank != 0),
        lambda x: rank_items(x, []) if x.rank == 0 else split(x, n, 0),
    ):
        raised = everywhere(n, call)
        assert all(isinstance(e, Refused) for e in raised)
        assert all(" calls " in str(e) for e in raised)


def test_the_agreement_gives_the_largest_of_every_fact():
    chain = links([2, 0, 3, 1], 4)
    facts = run(chain, lambda x: agree(x, ("f",), (x.rank, -x.rank))).results
    assert facts == [(3, 0)] * 4


def test_without_the_agreement_a_bad_call_would_hang():
    """A control: otherwise the tests above might never fail."""

    def leaves(link):
        if link.rank == 1:
            return None
        return (yield from agree(link, ("f",)))

    with pytest.raises(Deadlock):
        run(links([0, 1, 2], 3), leaves)


class Circle:
    """A value with a comparison in a ring, which no encoding expresses."""

    def __init__(self, n):
        self.n = n


def around(x, y):
    return x.n % 3 - y.n % 3


@pytest.mark.parametrize("name", ["auto", "bitonic", "gather_scatter", "cheng4"])
@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_colours_and_keys_that_only_a_function_compares(monkeypatch, name, n):
    monkeypatch.setattr(compare, "_comparisons", {Circle: around})
    chain = links(list(range(n)), n)
    done = run(
        chain,
        lambda x: split(x, n, Circle(x.rank), Circle(-x.rank), algorithm=name),
        carry=pickled,
    )
    for r, place in enumerate(done.results):
        same = list(range(r % 3, n, 3))
        assert place.link.size == len(same) and place.id == r % 3
        assert place.link.rank == same.index(r)
    mixed = run(
        chain,
        lambda x: split(x, n, Circle(1) if x.rank % 2 else "text", algorithm=name),
    )
    assert [p.id for p in mixed.results] == [r % 2 for r in range(n)]


def test_a_compared_colour_cannot_be_hashed(monkeypatch):
    monkeypatch.setattr(compare, "_comparisons", {Circle: around})
    for name in ("hash", "hash64", "radix"):
        raised = everywhere(
            3, lambda x: split(x, 3, Circle(1) if x.rank == 1 else 1, algorithm=name)
        )
        assert all(isinstance(e, ValueError) for e in raised)
