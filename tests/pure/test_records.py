"""From the knowledge of a rank to its rounds: the rounds on MPI are the verified
ones."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings, strategies as st

from isthmus.algorithms.parts import stages
from isthmus.choose import estimate
from isthmus.choose.choice import choice
from isthmus.choose.tuning import BUILT_IN
from isthmus.collectives.known import Equal, Summed, listed, unit_of
from isthmus.collectives.placement import Placement
from isthmus.collectives.records import COLLECTIVES
from isthmus.facade import UserSchedule
from isthmus.schedules.early_receives import posting
from isthmus.schedules.ir import Recv
from isthmus.schedules.program import reads, writes
from isthmus.schedules.registry import algorithms
from measured import measured
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


def auto(a, b, machine=BUILT_IN):
    """The automatic choice between two groups, from counts as far as known."""
    is_irregular = not isinstance(a, Equal)
    record = COLLECTIVES["inter_allgather" + "v" * is_irregular]
    return choice(record, {"a": a, "b": b}, machine).name


def between(name, a, b, machine=BUILT_IN, nodes=()):
    """The schedule of an Allgatherv as a communicator makes it, from a rank's
    knowledge."""
    unit = unit_of(a.bits | b.bits)
    placement = Placement(
        nodes,
        startup_bytes=machine.startup_bytes,
        ring_bytes=estimate.ring_bytes(machine),
    )
    sizes = {"a": a.blocks(unit), "b": b.blocks(unit)}
    name = auto(a, b, machine) if name == "auto" else name
    record = COLLECTIVES["inter_allgatherv"]
    return record.schedule(name, sizes, placement, unit)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40 if LONG else 8)
@given(a=BYTES, b=BYTES)
def test_the_ranks_fit_together(name, a, b):
    UserSchedule.of(between(name, listed(a), listed(b))).verify()


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=9),
    st.sampled_from([1, 2, 4, 8, 16]),
)
def test_a_basic_element_is_never_split(counts, itemsize):
    group = listed([k * itemsize for k in counts])
    unit = unit_of(group.bits)
    assert unit % itemsize == 0
    assert all(k % unit == 0 for k in group.counts)


def test_nothing_to_send_has_a_grain_too():
    assert unit_of(0) == 64 and unit_of(12) == 4


@pytest.mark.parametrize("name", MODEST)
@settings(max_examples=40 if LONG else 8)
@given(a=BYTES, b=BYTES)
def test_what_a_rank_is_told_of_its_group_is_enough(name, a, b):
    all_counts = listed(a), listed(b)
    for r in range(len(a) + len(b)):
        counts, i = (a, r) if r < len(a) else (b, r - len(a))
        bits = listed(counts).bits
        place = sum(counts[:i]), counts[i], sum(counts), max(counts), bits
        own = Summed(len(counts), i, *place)
        known_counts = (own, all_counts[1]) if r < len(a) else (all_counts[0], own)
        assert between(name, *known_counts).rank(r) == between(name, *all_counts).rank(
            r
        )
        assert auto(*known_counts) == auto(*all_counts)


def test_the_choice_is_the_same_on_every_rank_and_follows_the_sizes():
    assert auto(Equal(2, 8), Equal(2, 8)) == "direct"
    assert auto(Equal(512, 1 << 16), Equal(512, 1 << 16)) == "segmented"
    assert auto(listed([1 << 20]), listed([0] * 40)) == "balanced"


def test_on_a_network_long_shares_go_in_laps():
    network = measured(1e-3, 1.25e-7, changing=1.25)  # 8000 bytes in a start-up
    for share, name in ((1 << 11, "segmented"), (32_000, "pipelined(parts=2)")):
        assert auto(Equal(20, share), Equal(20, share), network) == name
    endless = Equal(20, 1 << 40)
    assert auto(endless, endless, network) == "pipelined(parts=32)"
    unequal = listed([0, 640_000] * 10), listed([640_000, 0] * 10)
    assert auto(*unequal, network) == "pipelined(parts=6)"


def test_a_giant_block_on_a_network_enters_where_others_send():
    network = measured(2.6e-4, 1.6e-8, changing=1.25)  # 16 KiB in a start-up
    giant, equal = listed([64 << 20] + [0] * 15), listed([4 << 20] * 16)
    for groups in ((giant, equal), (equal, giant), (giant, giant)):
        assert auto(*groups, network) == "moving_entry"
        assert auto(*groups) != "moving_entry"
    short = listed([1 << 16] + [0] * 15), listed([1 << 12] * 16)
    for groups in (short, (equal, equal)):
        assert auto(*groups, network) != "moving_entry"


def test_its_pieces_follow_the_machine_and_the_nodes():
    giant, equal = listed([1 << 20, 0, 0]), listed([1 << 18] * 3)
    nodes, pieces = (0, 1, 1, 2, 2, 3), []
    for alpha in (1e-6, 1e-4):
        schedule = between("moving_entry", giant, equal, measured(alpha, 1e-9), nodes)
        UserSchedule.of(schedule).verify()
        rounds = schedule.rank(3)
        pieces.append(sum(isinstance(c, Recv) for x in rounds for c in x.comm))
    assert pieces[0] > 3 * pieces[1]
    # the last rank of node 2 sends to node 3, which nothing else enters
    rounds = schedule.rank(5)
    sources = {c.frm for x in rounds for c in x.comm if isinstance(c, Recv)}
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
    schedule = between(name, listed(a), listed(b))
    for r in range(len(a) + len(b)):
        rounds = schedule.rank(r)
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
    rounds = between("segmented+ring", Equal(6, 4096), Equal(6, 4096)).rank(0)
    assert posting(rounds, 4)[5] == [1]


def test_an_option_in_a_name_is_not_overruled():
    """The machine's start-up cuts a block in pieces, unless the name says how long."""

    def rounds(name):
        sizes = {"p": 1, "q": 1, "ka": 1 << 20, "kb": 1 << 20}
        placement = Placement(startup_bytes=1024.0)
        all_ranks = COLLECTIVES["inter_alltoall"].schedule(name, sizes, placement)
        return len(all_ranks.rank(0))

    assert rounds("paced") == 32
    assert rounds("paced(startup=2048)") == 16


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="no algorithm 'x'"):
        between("x", Equal(1, 8), Equal(1, 8))


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
        between(name, Equal(2, 8), Equal(2, 8)).rank(0)
