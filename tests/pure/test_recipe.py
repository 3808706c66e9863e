"""From bytes to one rank's rounds: what runs on MPI is what is verified here."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings, strategies as st

from isthmus.algorithms.parts import stages
from isthmus.choose.estimate import Machine
from isthmus.choose.recipe import (
    Equal,
    Placement,
    Sizes,
    Summed,
    algorithm_for,
    between,
    granularity,
    listed,
)
from isthmus.choose.recipe_between import Pair, alltoall
from isthmus.schedules.early_receives import posting
from isthmus.schedules.ir import Recv
from isthmus.schedules.program import reads, writes
from isthmus.schedules.registry import algorithms
from isthmus.verify.contracts import multi_allgatherv
from isthmus.verify.verify import verify
from sampling import LONG

NAMES = [
    "auto",
    "segmented",
    "balanced",
    "balanced+circulant(n=2)",
    "pipelined(parts=3)",
    "merged",
    "two_step",
    "root_gathering",
]
#: those that need not know what every rank of their own group contributes
MODEST = [a.name for a in algorithms("inter_allgatherv") if not a.own_counts]
BYTES = st.lists(st.sampled_from([0, 1, 4, 8, 24, 800, 4096]), min_size=1, max_size=9)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40 if LONG else 8)
@given(a=BYTES, b=BYTES)
def test_the_ranks_fit_together(name, a, b):
    sizes = Sizes(listed(a), listed(b))
    made = [between(name, sizes, r) for r in range(len(a) + len(b))]
    ua, ub = made[0].units["send"], made[0].units["recv"]
    units = {(m.units["send"], m.units["recv"]) for m in made[: len(a)]}
    assert units == {(ua, ub)}
    units = {(m.units["send"], m.units["recv"]) for m in made[len(a) :]}
    assert units == {(ub, ua)}
    contract = multi_allgatherv([[k // ua for k in a], [k // ub for k in b]])
    verify([m.rounds for m in made], contract)


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=9),
    st.sampled_from([1, 2, 4, 8, 16]),
)
def test_a_basic_element_is_never_split(counts, itemsize):
    group = listed([k * itemsize for k in counts])
    unit = granularity(group.bits)
    assert unit % itemsize == 0
    assert all(k % unit == 0 for k in group.counts)


def test_nothing_to_send_has_a_grain_too():
    assert granularity(0) == 64 and granularity(12) == 4


@pytest.mark.parametrize("name", MODEST)
@settings(max_examples=40 if LONG else 8)
@given(a=BYTES, b=BYTES)
def test_what_a_rank_is_told_of_its_group_is_enough(name, a, b):
    whole = Sizes(listed(a), listed(b))
    for r in range(len(a) + len(b)):
        counts, i = (a, r) if r < len(a) else (b, r - len(a))
        bits = listed(counts).bits
        place = sum(counts[:i]), counts[i], sum(counts), max(counts), bits
        own = Summed(len(counts), i, *place)
        told = Sizes(own, whole.b) if r < len(a) else Sizes(whole.a, own)
        assert between(name, told, r) == between(name, whole, r)
        assert algorithm_for("auto", told) == algorithm_for("auto", whole)


def test_a_recipe_is_kept_by_value():
    sizes = Sizes(Equal(3, 64), Equal(2, 64))
    assert between("segmented", sizes, 1) is between(
        "segmented", Sizes(Equal(3, 64), Equal(2, 64)), 1
    )


def test_the_choice_is_the_same_on_every_rank_and_follows_the_sizes():
    few, many = (
        Sizes(Equal(2, 8), Equal(2, 8)),
        Sizes(Equal(512, 1 << 16), Equal(512, 1 << 16)),
    )
    assert algorithm_for("auto", few) == "direct"
    assert algorithm_for("auto", many) == "segmented"
    lopsided = Sizes(listed([1 << 20]), listed([0] * 40))
    assert algorithm_for("auto", lopsided) == "balanced"
    assert algorithm_for("two_step", few) == "two_step"


def test_on_a_network_long_shares_go_in_laps():
    network = Machine(1e-3, 1.25e-7, changing=1.25)  # 8000 bytes in a start-up
    for share, name in ((1 << 11, "segmented"), (32_000, "pipelined(parts=2)")):
        sizes = Sizes(Equal(20, share), Equal(20, share))
        assert algorithm_for("auto", sizes, network) == name
    endless = Sizes(Equal(20, 1 << 40), Equal(20, 1 << 40))
    assert algorithm_for("auto", endless, network) == "pipelined(parts=32)"
    unequal = Sizes(listed([0, 640_000] * 10), listed([640_000, 0] * 10))
    assert algorithm_for("auto", unequal, network) == "pipelined(parts=6)"


def test_a_giant_block_on_a_network_enters_where_others_send():
    network = Machine(2.6e-4, 1.6e-8, changing=1.25)  # 16 KiB in a start-up
    giant, equal = listed([64 << 20] + [0] * 15), listed([4 << 20] * 16)
    for sizes in (Sizes(giant, equal), Sizes(equal, giant), Sizes(giant, giant)):
        name = algorithm_for("auto", sizes, network, own_counts=True)
        assert name == "moving_entry"
        assert algorithm_for("auto", sizes, network) != name
        assert algorithm_for("auto", sizes, own_counts=True) != name
    short = Sizes(listed([1 << 16] + [0] * 15), listed([1 << 12] * 16))
    alike = Sizes(equal, equal)
    for sizes in (short, alike):
        found = algorithm_for("auto", sizes, network, own_counts=True)
        assert found == algorithm_for("auto", sizes, network)


def test_its_pieces_follow_the_machine_and_the_nodes():
    giant, equal = listed([1 << 20, 0, 0]), listed([1 << 18] * 3)
    sizes = Sizes(giant, equal)
    placement = Placement(nodes=(0, 1, 1, 2, 2, 3))
    pieces = []
    for alpha in (1e-6, 1e-4):
        machine = Machine(alpha, 1e-9)
        made = [between("moving_entry", sizes, r, machine, placement) for r in range(6)]
        unit = made[0].units["recv"]
        contract = multi_allgatherv(
            [[k // unit for k in x.counts.tolist()] for x in (giant, equal)]
        )
        verify([m.rounds for m in made], contract)
        pieces.append(sum(isinstance(c, Recv) for x in made[3].rounds for c in x.comm))
    assert pieces[0] > 3 * pieces[1]
    # the last rank of node 2 sends to node 3, which nothing else enters
    sources = {c.frm for x in made[5].rounds for c in x.comm if isinstance(c, Recv)}
    assert sources <= {0, 4}


def test_stages_follow_the_group_and_its_data():
    assert stages.stage_for(2, 8) == "ring"
    assert stages.stage_for(8, 8) == "recursive_doubling"
    assert stages.stage_for(7, 8) == "bruck"
    assert stages.stage_for(8, 1 << 30) == "ring"


def touches(r):
    """Every span a round reads or writes."""
    return [*reads(r), *writes(r), *(x for s in r.then for x in (s.src, s.dst))]


def meet(x, y):
    return x.buf == y.buf and x.start < y.start + y.size and y.start < x.start + x.size


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40 if LONG else 8)
@given(a=BYTES, b=BYTES, window=st.integers(0, 5))
def test_a_receive_is_posted_early_only_where_nobody_minds(name, a, b, window):
    sizes = Sizes(listed(a), listed(b))
    for r in range(len(a) + len(b)):
        rounds = between(name, sizes, r).rounds
        last: dict[int, int] = {}
        for k, posts in enumerate(posting(rounds, window)):
            receives = [c for c in rounds[k].comm if isinstance(c, Recv)]
            assert len(posts) == len(receives)
            for at, c in zip(posts, receives, strict=True):
                assert k - window <= at <= k
                assert at >= last.get(c.frm, 0)
                last[c.frm] = at
                others = [s for j in range(at, k) for s in touches(rounds[j])]
                assert not any(meet(s, t) for s in c.data for t in others)


def test_receives_of_a_ring_are_posted_ahead():
    rounds = between("segmented+ring", Sizes(Equal(6, 4096), Equal(6, 4096)), 0).rounds
    assert posting(rounds, 4)[5] == [1]


def test_an_option_in_a_name_is_not_overruled():
    """The machine's start-up cuts a block in pieces, unless the name says how long."""
    pair = Pair(1, 1, 0, 0)

    def rounds(name):
        sizes = (1 << 20,), (1 << 20,)
        return len(alltoall("inter_alltoall", name, pair, *sizes, 1024.0).rounds)

    assert rounds("paced") == 32
    assert rounds("paced(startup=16384)") == 2


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="no algorithm 'x'"):
        between("x", Sizes(Equal(1, 8), Equal(1, 8)), 0)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("balanced+ring(n=4)", "'ring' has no option 'n=4'; it has: none"),
        ("balanced+circulant(m=4)", "it has: n, startup"),
        ("balanced+circulant(n=x)", "n = 'x': must be of type int"),
        ("balanced+circulant(n=4", "is not the name of an algorithm"),
    ],
)
def test_unknown_options_are_refused(name, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        between(name, Sizes(Equal(2, 8), Equal(2, 8)), 0)
