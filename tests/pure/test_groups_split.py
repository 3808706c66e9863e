"""Every algorithm against an oracle, on chains of any size and order."""

from __future__ import annotations

import random

import pytest

from chains import links, members, oracle, pickled, random_order, run
from isthmus.groups.split import SPLIT_ALGORITHMS, choose, find, split
from isthmus.groups.split_entry import GroupPlace
from sampling import LONG, some

NAMES = ["auto", *SPLIT_ALGORITHMS, "cheng7"]
#: those that take any value
ANY = [name for name in NAMES if name != "radix"]
#: how many processes: all that are few
SIZES = [*range(1, 14), *some(range(14, 41), 9, 3)]

#: what a process's colour and key may be, of its address i and a source of chance
COLORS = {
    "one": lambda i, rng: 7,
    "few": lambda i, rng: rng.randrange(3),
    "many": lambda i, rng: i,
    "pairs": lambda i, rng: i // 2,
    "some left out": lambda i, rng: rng.choice([None, 1, 2]),
    "all left out": lambda i, rng: None,
    "huge and negative": lambda i, rng: rng.choice([-(2**70), 2**70, -1, 0, 2**31]),
}
KEYS = {
    "none": lambda i, rng: None,
    "reversed": lambda i, rng: -i,
    "ties": lambda i, rng: rng.randrange(2),
    "mixed": lambda i, rng: rng.choice([None, -5, 2**40, 3]),
}
OTHERS = {
    "names": lambda i, rng: f"node{rng.randrange(4)}",
    "bytes": lambda i, rng: bytes(rng.randrange(3)),
    "empty": lambda i, rng: rng.choice(["", b"", (), "\0"]),
    "floats": lambda i, rng: rng.choice([0.5, -0.0, 0.0, float("inf"), 1e300]),
    "kinds": lambda i, rng: rng.choice([1, 1.0, True, "1", b"1", (1,), (1, None)]),
    "tuples": lambda i, rng: (rng.randrange(2), "x" * rng.randrange(2)),
}


def usable(name, chain):
    """Whether an algorithm takes a chain: `allgather_mpi` needs all processes."""
    return name != "allgather_mpi" or len(members(chain)) == len(chain)


def check(name, chain, colors, keys, carry=None, **flags):
    """Run a split as a user would, and compare everything with the oracle."""

    def dialogue(link):
        c, k = colors[link.address], keys[link.address]
        return split(link, len(chain), c, k, algorithm=name, **flags)

    done = run(chain, dialogue, carry=carry)
    want = oracle(chain, colors, keys, **flags)
    assert done.results == [x and GroupPlace(*x) for x in want]
    return done


def drawn(kind, n, rng):
    return [kind(i, rng) for i in range(n)]


@pytest.mark.parametrize("name", NAMES)
def test_integers(name):
    rng = random.Random(name)
    for n in SIZES:
        chain = links(list(range(n)), n)
        few = n > (13 if LONG else 7)
        for color in rng.sample(list(COLORS.values()), 3 if few else len(COLORS)):
            key = rng.choice(list(KEYS.values()))
            check(name, chain, drawn(color, n, rng), drawn(key, n, rng))


@pytest.mark.parametrize("name", ANY)
def test_values_of_all_kinds(name):
    rng = random.Random(name)
    for n in [*some(range(1, 14), 3), 17, *[33] * LONG, 40]:
        chain = links(list(range(n)), n)
        for color in OTHERS.values():
            key = rng.choice([*KEYS.values(), *OTHERS.values()])
            carry = pickled if n < 9 else None
            check(name, chain, drawn(color, n, rng), drawn(key, n, rng), carry)


@pytest.mark.parametrize("name", NAMES)
def test_some_of_the_processes_in_any_order(name):
    rng = random.Random(name)
    for n in SIZES:
        order = random_order(rng, n)
        if name == "allgather_mpi":
            order = rng.sample(range(n), n)
        for kind in ("few", "some left out", "pairs"):
            colors = drawn(COLORS[kind], n, rng)
            keys = drawn(rng.choice(list(KEYS.values())), n, rng)
            check(name, links(order, n), colors, keys)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "split_and_reorder", [(True, False), (False, True), (False, False)]
)
def test_without_split_or_without_reorder(name, split_and_reorder):
    rng = random.Random(name)
    flags = dict(zip(("split", "reorder"), split_and_reorder, strict=True))
    for n in (1, 2, 3, 8, 13, 21):
        chain = links(rng.sample(range(n), n), n)
        colors = drawn(COLORS["some left out"], n, rng)
        done = check(name, chain, colors, drawn(KEYS["mixed"], n, rng), **flags)
        if split_and_reorder == (False, False):
            agreement = (n - 1).bit_length()
            assert done.rounds == agreement


def test_every_process_a_sorter():
    rng = random.Random(1)
    for n in range(1, 14):
        chain = links(rng.sample(range(n), n), n)
        for kind in ("few", "many", "some left out"):
            keys = drawn(KEYS["ties"], n, rng)
            check("cheng1", chain, drawn(COLORS[kind], n, rng), keys)


LARGE = ["auto", "gather_scatter", "cheng64", "bitonic", "radix", "hash", "hash64"]


@pytest.mark.parametrize("name", LARGE)
def test_larger_chains(name):
    rng = random.Random(name)
    for kind in ("few", "some left out", "many"):
        n = 600 if kind == "few" else rng.randrange(41, 500)
        n = n if LONG else n // 3
        chain = links(rng.sample(range(n), n), n)
        keys = drawn(KEYS["ties" if kind == "few" else "none"], n, rng)
        check(name, chain, drawn(COLORS[kind], n, rng), keys)


@pytest.mark.parametrize("name", ["allgather_group", "allgather_mpi"])
def test_larger_chains_in_tables(name):
    rng = random.Random(name)
    for kind, most in (("many", 300), ("few", 1000)):
        n = rng.randrange(most // 2, most + 1) // (1 if LONG else 3)
        chain = links(rng.sample(range(n), n), n)
        colors = drawn(COLORS[kind], n, rng)
        check(name, chain, colors, drawn(KEYS["ties"], n, rng))


@pytest.mark.parametrize("name", ANY)
@pytest.mark.parametrize("n", [1, 2, 9, 70])
def test_an_empty_colour_is_not_none(name, n):
    """Processes without a colour, with an empty colour, or with a similar colour."""
    colors = [(None, "", b"", (), "\0", None, "")[i % 7] for i in range(n)]
    check(name, links(list(range(n)), n), colors, [None] * n)


@pytest.mark.parametrize("n", [2, 5])
def test_the_librarys_allgather_is_refused_on_a_part(n):
    """On all processes of the part, and before anything is split."""
    chain = links(list(range(n))[::-1], n + 1)

    def dialogue(link):
        try:
            yield from split(link, n + 1, 0, algorithm="allgather_mpi")
        except ValueError as error:
            return str(error)
        return "split"

    places = [x for x in run(chain, dialogue).results if x is not None]
    assert len(places) == n
    assert all("needs a chain of all processes" in words for words in places)


@pytest.mark.parametrize("name", NAMES)
def test_splits_of_splits(name):
    """Three splits deep, each of a chain in the order of the split before."""
    rng = random.Random(name)
    inner = "allgather_group" if name == "allgather_mpi" else name
    for n in (4, 5, 8, 13, 30):
        chains = [links(list(range(n)), n)]
        for depth in range(3):
            following = []
            for chain in chains:
                colors = drawn(COLORS["some left out" if depth == 1 else "few"], n, rng)
                keys = [rng.randrange(5) for _ in range(n)]
                check(inner if depth else name, chain, colors, keys)
                want = oracle(chain, colors, keys)
                groups = {x[1] for x in want if x and x[0]}
                following += [
                    [x[0] if x and x[0] and x[1] == g else None for x in want]
                    for g in groups
                ]
            chains = following


def test_one_process_sends_nothing():
    for name in NAMES:
        for color in (0, None):
            done = check(name, links([0], 1), [color], [5])
            assert done.messages == 0 and done.rounds == 0


def test_names_of_algorithms():
    assert find("cheng128").name == "cheng128"
    for wrong in ("cheng0", "cheng-1", "chengx", "quick", 5, None):
        with pytest.raises(ValueError, match="known: auto, allgather_group"):
            find(wrong)
    assert all(entry.idea for entry in SPLIT_ALGORITHMS.values())


def test_the_automatic_choice():
    """A table for short chains; else hash64, or bitonic for colours with an order."""
    assert choose(8, True, False, False) == choose(8, True, True, False)
    assert choose(8, True, True, False) == "allgather_mpi"
    assert choose(8, False, False, False) == "allgather_group"
    for whole in (True, False):
        assert choose(10**6, whole, False, False) == "hash64"
        assert choose(10**6, whole, True, False) == "bitonic"
        assert choose(10**6, whole, False, True) == "bitonic"


SORTED = ["auto", "allgather_group", "gather_scatter", "cheng4", "bitonic"]


def sign(x, y):
    return (x > y) - (x < y)


@pytest.mark.parametrize("name", SORTED)
def test_comparisons_of_one_call(name):
    """Colours in any case, keys descending; then keys by their last digit."""
    rng = random.Random(name)
    for n in (1, 2, 7, 20):
        chain = links(rng.sample(range(n), n), n)
        colors = [rng.choice(["a", "A", "b", "B", None]) for _ in range(n)]
        keys = [rng.choice([[rng.randrange(30)], None]) for _ in range(n)]
        lower = [c and c.lower() for c in colors]

        def call(x, compare_key):
            return split(
                x,
                n,
                colors[x.address],
                keys[x.address],
                algorithm=name,
                compare_color=lambda a, b: sign(a.lower(), b.lower()),
                compare_key=compare_key,
            )

        done = run(chain, lambda x: call(x, lambda a, b: sign(b, a)), carry=pickled)
        turned = [k and -k[0] for k in keys]
        want = oracle(chain, lower, turned)
        assert done.results == [GroupPlace(*x) for x in want]
        done = run(
            chain, lambda x: call(x, lambda a, b: a[0] % 10 - b[0] % 10), carry=pickled
        )
        want = oracle(chain, lower, [k and k[0] % 10 for k in keys])
        assert done.results == [GroupPlace(*x) for x in want]


def test_comparisons_that_not_all_give_or_that_cannot_be_used():
    chain = links([1, 0, 2], 3)
    for wrong, words, options in (
        (sign, "calls split(auto, True, True)", {}),
        (5, "not a function", {}),
        (sign, "needs a colour with an encoding", {"algorithm": "hash"}),
    ):
        raised = []

        def dialogue(link):
            compare = wrong if link.rank == 1 or options else None
            try:
                yield from split(link, 3, 0, compare_color=compare, **options)
            except (TypeError, ValueError) as error:
                raised.append(str(error))

        run(chain, dialogue)
        assert len(raised) == 3 and all(words in text for text in raised)


def test_radix_that_does_not_stop_early():
    rng = random.Random(4)
    kinds = "one", "few", "some left out", "huge and negative"
    for turn, n in enumerate(SIZES):
        chain = links(random_order(rng, n), n)
        for color in some(kinds, 2, turn):
            key = rng.choice(list(KEYS.values()))
            colors = drawn(COLORS[color], n, rng)
            check("radix_full", chain, colors, drawn(key, n, rng))
