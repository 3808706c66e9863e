"""Hashing colours: colours with equal hashes stay apart."""

from __future__ import annotations

import hashlib

import pytest

from chains import links, oracle, run
from isthmus.groups.bins import BIN_BITS
from isthmus.groups.encoding import encode
from isthmus.groups.hash_split import MAX_HASH_ITERATIONS, hash_split
from isthmus.groups.jenkins import BIN_COUNT, HASH_BITS, bin_of, one_at_a_time
from isthmus.groups.split import SPLIT_ALGORITHMS, split
from isthmus.groups.split_entry import SplitEntry

#: 32 bits of Jenkins' hash are equal
RACKS = "rack143-node800.cluster.example.org", "rack150-node292.cluster.example.org"
#: 31 bits of another hash that is in use for host names are equal
HOSTS = "nid017260", "nid024315"
#: nothing but zeros has the hash 0, whatever its length and rotation
ZEROS = b"\0", b"\0\0"


def test_jenkins_vectors():
    assert one_at_a_time(b"") == 0
    assert one_at_a_time(b"a") == 0xCA2E9442
    fox = b"The quick brown fox jumps over the lazy dog"
    assert one_at_a_time(fox) == 0x519E91F5


def test_the_pairs_do_collide():
    assert one_at_a_time(RACKS[0].encode()) == one_at_a_time(RACKS[1].encode())
    assert one_at_a_time(ZEROS[0]) == one_at_a_time(ZEROS[1])

    def short(name):
        digest = hashlib.blake2b(name.encode(), digest_size=4).digest()
        return [
            int.from_bytes(digest, order) & 0x7FFFFFFF for order in ("big", "little")
        ]

    assert any(x == y for x, y in zip(short(HOSTS[0]), short(HOSTS[1]), strict=True))


@pytest.mark.parametrize("pair", [RACKS, HOSTS, ZEROS, (b"", b"\0"), ("", b"")])
@pytest.mark.parametrize("name", sorted(set(SPLIT_ALGORITHMS) - {"radix"}))
def test_names_that_hashes_confuse_stay_apart(pair, name):
    n = 70  # more than hash64 hands to a table
    chain = links(list(range(n)), n)
    colors = [pair[i % 3 % 2] for i in range(n)]
    done = run(chain, lambda x: split(x, n, colors[x.rank], algorithm=name))
    want = oracle(chain, colors, [None] * n)
    assert [(p.link, p.id, p.groups) for p in done.results] == want


def test_bins_change_with_the_region_and_then_with_the_rotation():
    code = encode("some colour")
    regions = HASH_BITS // BIN_BITS
    bins = [bin_of(code, i) for i in range(4 * regions)]
    assert all(0 <= q < BIN_COUNT for q in bins)
    assert bins[:regions] != bins[regions : 2 * regions]
    assert bin_of(b"", 100) == bin_of(b"", 100)  # rotation of next to nothing


def forced(choose, n, colors, keys=None, small=0, most=MAX_HASH_ITERATIONS):
    """A hash split with bins of our own making."""
    chain = links(list(range(n)), n)

    def dialogue(link):
        key = b"" if keys is None else encode(keys[link.rank])
        color = colors[link.rank]
        entry = SplitEntry(None if color is None else encode(color), key)
        return hash_split(link, entry, small, choose, most)

    done = run(chain, dialogue)
    want = oracle(chain, colors, keys or [None] * n)
    assert [p.link for p in done.results] == [x[0] for x in want]
    return done


@pytest.mark.parametrize("n", [1, 2, 3, 8, 30, 100])
@pytest.mark.parametrize("small", [0, 4, 64])
def test_colours_that_never_part_are_sorted_in_the_end(n, small):
    colors = [i % 3 for i in range(n)]
    keys = [-i for i in range(n)]
    forced(lambda code, iteration: 0, n, colors, keys, small, 5)
    forced(lambda code, iteration: 0, n, [*colors[:-1], None], keys, small, 5)


def test_the_cap_ends_it():
    """Without a cap, the split would go on forever."""
    done = forced(lambda code, iteration: 3, 20, [0, 1] * 10)
    assert done.rounds < 1000


def test_colours_that_part_late():
    """Two of three part in the second iteration, all in the fifth."""

    def choose(code, iteration):
        bins = {encode(0): 0, encode(1): int(iteration >= 4), encode(2): 5}
        return bins[code] if iteration else 0

    forced(choose, 50, [i % 3 for i in range(50)])


def test_one_colour_is_seen_after_the_first_split():
    """A split, a look at the neighbour, a total; then the order of the keys."""
    k, bitonic = 6, 6 + 21 + 1 + 6 + 1
    assert forced(bin_of, 64, ["same"] * 64).rounds == k + 1 + k + bitonic
