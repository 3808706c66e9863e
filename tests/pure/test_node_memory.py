"""Memory shared by ranks of a node: right programs, and detected faults."""

from __future__ import annotations

import inspect
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import isthmus
from isthmus.check import sweep
from isthmus.check.placements import (
    all_placements,
    in_a_row,
    loads,
    placements,
    scattered,
)
from isthmus.collectives.records import COLLECTIVES
from isthmus.schedules import registry
from isthmus.schedules.early_receives import posting
from isthmus.schedules.ir import Copy, Recv, Reduce, Round, Send, Span
from isthmus.schedules.program import buffer_size, lay
from isthmus.verify.contracts import Contract
from isthmus.verify.errors import Deadlock, Race, ScheduleError, Unwritten
from isthmus.verify.marks import marks
from isthmus.verify.verify import verify
from sampling import LONG

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "leaders.py"
N = 4
LOW, OWN, HIGH, RECV, TMP, NODE = (
    Span(buf, 0, N) for buf in ("low", "send", "high", "recv", "tmp", "node")
)
NOTHING = Round()


def run(programs, nodes):
    """Run rounds of ranks with N elements in each buffer, from three contributors,
    which combine in the order "low", "send", "high"."""
    start = {"low": marks(0, N), "send": marks(1, N), "high": marks(2, N)}
    start["recv"] = marks(3, N)
    verify(programs, Contract(lambda r: start, lambda r: {}), nodes)


def local(*steps):
    return Round(then=steps)


# Ranks 0 and 1 are on one node, 2 and 3 on another, where they send and receive. What
# touches the memory of the first node: a local step, or a message of rank 2 or 3.

BRING = Round(then=(Copy(OWN, NODE),), meet=True)
WRITES = {
    "copy": lambda r: local(Copy(OWN, NODE)),
    "reduce": lambda r: local(Reduce(LOW, NODE)),
    "receive": lambda r: Round((Recv(r + 2, (NODE,)),)),
}
READS = {
    "copy": lambda r: local(Copy(NODE, RECV)),
    "reduce": lambda r: local(Copy(HIGH, TMP), Reduce(NODE, TMP)),
    "send": lambda r: Round((Send(r + 2, (NODE,)),)),
}


def partner(r, step):
    """The round of rank r + 2 that answers a step of rank r."""
    for c in step.comm:
        return Round((Send(r, (OWN,)) if isinstance(c, Recv) else Recv(r, (RECV,)),))
    return NOTHING


def at_once(first, second):
    """Rank 0 writes to node memory; a meeting; then ranks 0 and 1 do a step each."""
    steps = first(0), second(1)
    met = [BRING, Round(meet=True)]
    programs = [[before, step] for before, step in zip(met, steps, strict=True)]
    return programs + [[partner(r, step)] for r, step in enumerate(steps)]


TOUCHES = [(f"write-{a}", x) for a, x in WRITES.items()]
TOUCHES += [(f"read-{a}", x) for a, x in READS.items()]


@pytest.mark.parametrize("first", TOUCHES, ids=lambda x: x[0])
@pytest.mark.parametrize("second", TOUCHES, ids=lambda x: x[0])
def test_a_race_is_found_with_who_where_and_in_which_round(first, second):
    (first_use, x), (second_use, y) = first, second
    programs = at_once(x, y)
    if first_use.startswith("read") and second_use.startswith("read"):
        run(programs, "aabb")
        return
    with pytest.raises(Race) as caught:
        run(programs, "aabb")
    said = str(caught.value)
    # whichever of the two comes second finds it
    late, early = (1, 0) if said.startswith("rank 1") else (0, 1)
    verbs = [name.partition("-")[0] + "s" for name in (first_use, second_use)]
    assert said.startswith(f"rank {late}, round 1 {verbs[late]} node[0], which ")
    assert f"rank {early} {verbs[early]} between the same meetings" in said
    assert said.endswith("(after meeting 1 of ranks [0, 1])")


def test_a_race_is_found_whoever_comes_first():
    """A late read of a rank against an early write of another, in either order."""
    idle = [NOTHING] * 3
    programs = [[BRING, *idle, READS["copy"](0)], [Round(meet=True), WRITES["copy"](1)]]
    for ranks in (programs, programs[::-1]):
        with pytest.raises(Race, match=r"(writes|reads) node\[0\]"):
            run(ranks, "aa")


def test_only_elements_that_both_touch_race():
    half = N // 2
    low, high = Span("node", 0, half), Span("node", half, half)
    own = Span("send", 0, half)
    run([[local(Copy(own, low))], [local(Copy(own, high))]], "aa")
    over = Span("node", half - 1, half)
    with pytest.raises(Race, match=rf"rank 1, round 0 writes node\[{half - 1}\]"):
        run([[local(Copy(own, low))], [local(Copy(own, over))]], "aa")


def test_a_rank_does_not_race_with_itself():
    run(
        [[local(Copy(OWN, NODE)), local(Copy(NODE, RECV)), local(Copy(OWN, NODE))]], "a"
    )


def test_many_may_read_what_one_may_then_not_write():
    programs = [[BRING, READS["copy"](0)], [Round(meet=True), READS["copy"](1)]]
    programs.append([Round(meet=True), NOTHING, WRITES["copy"](2)])
    with pytest.raises(Race, match=r"which another rank reads"):
        run(programs, "aaa")


def test_a_meeting_separates():
    programs = [[BRING, Round(meet=True)], [Round(meet=True), BRING]]
    run([[*x, READS["copy"](0)] for x in programs], "aa")


def test_a_missing_meeting_is_a_race():
    programs = [[BRING], [Round(meet=True), READS["copy"](1)]]
    run(programs, "aa")
    without = [[replace(x, meet=False) for x in rounds] for rounds in programs]
    with pytest.raises((Race, Unwritten)):
        run(without, "aa")


def test_unequal_numbers_of_meetings_name_who_is_missing():
    met = Round(meet=True)
    with pytest.raises(Deadlock) as caught:
        run([[met, met], [met, met], [met], [met, met, met]], "aaab")
    said = str(caught.value)
    assert "rank 0, round 1 waits for ranks [2] at meeting 1" in said
    assert "rank 1, round 1 waits for ranks [2] at meeting 1" in said
    assert "rank 3" not in said


def test_waiting_for_a_message_of_a_rank_that_waits_at_a_meeting_is_a_deadlock():
    programs = [
        [Round(meet=True), Round((Send(1, (OWN,)),))],
        [Round((Recv(0, (RECV,)),))],
    ]
    programs[1].append(Round(meet=True))
    with pytest.raises(Deadlock) as caught:
        run(programs, "aa")
    assert "rank 0, round 0 waits for ranks [1] at meeting 0" in str(caught.value)
    assert "rank 1, round 0 waits for 4 from rank 0" in str(caught.value)


@pytest.mark.parametrize("name", READS)
def test_reads_of_what_nobody_wrote_are_found(name):
    half = Span("node", 0, N // 2)
    bring = Round(then=(Copy(Span("send", 0, N // 2), half),), meet=True)
    step = READS[name](0)
    programs = [[bring, step], [Round(meet=True)], [partner(0, step)], []]
    with pytest.raises(
        Unwritten, match=rf"rank 0, round 1: node\[{N // 2}\] is read, nobody wrote it"
    ):
        run(programs, "aabb")


@pytest.mark.parametrize("nodes", ["ab", ()])
def test_nodes_do_not_share_their_memory(nodes):
    programs = [[BRING], [Round(meet=True), READS["copy"](1)]]
    run(programs, "aa")
    with pytest.raises(Unwritten, match=r"rank 1, round 1: node\[0\]"):
        run([[*programs[0], READS["copy"](0)], programs[1]], nodes)


def test_scratch_memory_is_not_shared():
    bring = Round(then=(Copy(OWN, TMP),), meet=True)
    with pytest.raises(Unwritten, match=r"rank 1, round 1: tmp\[0\]"):
        run([[bring], [Round(meet=True), local(Copy(TMP, RECV))]], "aa")


def test_a_meeting_tells_of_all_that_the_others_have_heard():
    signal = [Round((Send(0, ()),))]
    programs = [[Round((Recv(2, ()),), meet=True)], [Round(meet=True)], signal]
    waits_for = Contract(
        lambda r: {}, lambda r: {}, waits_for=lambda r: range(3 if r < 2 else 1)
    )
    with pytest.raises(ScheduleError, match="rank 2 may end before rank 0 has begun"):
        verify(programs, waits_for, "aab")
    verify(
        programs,
        replace(waits_for, waits_for=lambda r: range(3 if r < 2 else 0)),
        "aab",
    )


def test_a_receive_into_node_is_not_posted_before_a_meeting():
    """Before the meeting, ranks of the node may touch the target of the receive."""
    for span, early in ((NODE, 2), (RECV, 0)):
        rounds = [local(), Round(meet=True), local(), Round((Recv(2, (span,)),))]
        assert posting(rounds) == [[], [], [], [early]]


# The algorithms that share memory


SHARED = [
    (collective, entry)
    for collective in registry.collectives()
    for entry in registry.algorithms(collective)
    if entry.node_memory
]
SIZES_OF_COLLECTIVE = {
    collective: [
        sizes
        for cases in COLLECTIVES[collective].sweep(5, np.random.default_rng(2))
        for sizes in cases
    ]
    for collective, _ in SHARED
}


@st.composite
def placed(draw):
    """A random algorithm with node memory, with options and sizes, on any nodes."""
    collective, entry = draw(st.sampled_from(SHARED))
    sizes = draw(st.sampled_from(SIZES_OF_COLLECTIVE[collective]))
    n = sum(COLLECTIVES[collective].ranks(sizes))
    name = draw(st.sampled_from(sweep.with_options(entry, n)))
    nodes = draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n))
    return isthmus.schedule(collective, name, nodes=nodes, **sizes)


@settings(max_examples=100 if LONG else 40)
@given(placed())
def test_right_on_any_nodes(example):
    example.verify()


@settings(max_examples=60 if LONG else 20)
@given(placed())
def test_calls_in_a_row_do_not_race_if_the_halves_of_node_take_turns(example):
    """The third call uses the half of the first, since all ranks of a node have met
    between."""
    programs = example.all_ranks()
    half = {"node": ("node", max(buffer_size(rounds, "node") for rounds in programs))}
    calls = [
        [*rounds, *lay(iter(rounds), half), *rounds, *lay(iter(rounds), half)]
        for rounds in programs
    ]
    verify(calls, example.contract, example.nodes)


def times(x, factor):
    """Sizes multiplied by a factor."""
    return [times(y, factor) for y in x] if isinstance(x, list) else factor * x


@st.composite
def long(draw):
    """An algorithm with node memory, on long data and any nodes, and the size of
    chunks."""
    collective, _ = draw(st.sampled_from([x for x in SHARED if "size" in x[1].options]))
    sizes, factor = (
        draw(st.sampled_from(SIZES_OF_COLLECTIVE[collective])),
        draw(st.integers(1, 200)),
    )
    sizes = {
        k: x if k in ("p", "q", "root") else times(x, factor) for k, x in sizes.items()
    }
    n = sum(COLLECTIVES[collective].ranks(sizes))
    nodes = draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n))
    size, startup = draw(st.integers(16 * n, 64 * n)), draw(st.sampled_from([1, 100]))
    name = f"node_aware(size={size},startup={startup},lanes={draw(st.integers(0, 3))})"
    return isthmus.schedule(collective, name, nodes=nodes, **sizes), size


@settings(max_examples=100 if LONG else 12)
@given(long())
def test_memory_of_nodes_is_bounded(schedule_and_size):
    """A rank needs five times the size of a chunk at the most."""
    example, size = schedule_and_size
    for r in range(example.n):
        assert buffer_size(example.rank(r), "node") <= 5 * size


@pytest.mark.parametrize("collective", ["inter_bcast", "inter_reduce"])
@pytest.mark.parametrize("ranks", [1, 3, 32 if LONG else 8])
def test_memory_of_streams_is_bounded(collective, ranks):
    """A long vector needs node memory for a few rounds only."""
    nodes = [0, *(1 + r // ranks for r in range(5 * ranks))]
    for size in (16 * len(nodes), 1 << 13, 1 << 17):
        example = isthmus.schedule(
            collective, f"node_aware(size={size})", q=5 * ranks, m=1 << 15, nodes=nodes
        )
        ends = [buffer_size(example.rank(r), "node") for r in (0, 1, ranks, 3 * ranks)]
        assert max(ends) <= 4 * size + len(nodes)


@pytest.mark.parametrize(
    ("collective", "entry"), SHARED, ids=[collective for collective, _ in SHARED]
)
def test_without_any_one_of_its_meetings_an_algorithm_is_wrong(collective, entry):
    """On a single node, in several chunks: every meeting is necessary."""
    sizes = max(
        SIZES_OF_COLLECTIVE[collective],
        key=lambda x: (sum(COLLECTIVES[collective].ranks(x)), str(x)),
    )
    n = sum(COLLECTIVES[collective].ranks(sizes))
    example = isthmus.schedule(collective, entry.name, **sizes)
    programs = example.all_ranks()
    met = [[k for k, x in enumerate(rounds) if x.meet] for rounds in programs]
    assert len({len(x) for x in met}) == 1 and met[0]
    for t in range(len(met[0])):
        less = [list(rounds) for rounds in programs]
        for r in range(n):
            k = met[r][t]
            less[r][k] = replace(less[r][k], meet=False)
        with pytest.raises(ScheduleError):
            verify(less, example.contract, example.nodes)


# The sweep of placements


@pytest.mark.parametrize(("n", "bell"), [(1, 1), (2, 2), (3, 5), (4, 15), (7, 877)])
def test_all_placements_up_to_the_names_of_nodes(n, bell):
    drawn = list(all_placements(n))
    assert len(set(drawn)) == len(drawn) == bell


@pytest.mark.parametrize("sizes", [(1,), (4,), (1, 3), (2, 2), (3, 2), (4, 3)])
def test_loads_are_all_placements_up_to_the_order_of_ranks(sizes):
    def loads_of(nodes):
        ends = np.cumsum(sizes)[:-1]
        parts = [x.tolist() for x in np.split(np.array(nodes), ends)]
        counts = (tuple(x.count(node) for x in parts) for node in set(nodes))
        return tuple(sorted(counts, reverse=True))

    all_loads = list(loads(sizes))
    assert len(set(all_loads)) == len(all_loads)
    assert set(all_loads) == {loads_of(nodes) for nodes in all_placements(sum(sizes))}
    rng = np.random.default_rng(1)
    for x in all_loads:
        nodes = in_a_row(x)
        assert loads_of(nodes) == loads_of(scattered(nodes, sizes, rng)) == x


def test_placements_have_shared_uneven_and_scattered_ones():
    drawn = set(placements((2, 3), 4, np.random.default_rng(0)))
    assert {(0, 0, 0, 0, 0), (0, 1, 0, 0, 1), (0, 1, 2, 3, 4)} <= drawn
    assert len({len(x) for x in drawn}) == 1


def test_a_sweep_tries_all_options_on_all_placements_of_few_ranks():
    cases = sweep.on_nodes("inter_allgatherv", 2, 0, 2)
    three = {
        (x.algorithm, x.sizes["nodes"]) for x in cases if len(x.sizes["nodes"]) == 3
    }
    names = sweep.with_options(registry.find("inter_allgatherv", "node_aware"), 3)
    assert three == {(name, nodes) for name in names for nodes in all_placements(3)}
    assert len(names) == 7 and "node_aware(size=9,lanes=3)" in names


def test_a_sweep_finds_a_race(monkeypatch):
    """An Allgather on a node whose ranks do not meet."""
    known = dict(registry._algorithms)
    monkeypatch.setattr(registry, "_algorithms", known)

    @registry.algorithm("allgatherv", paper="x", cost=float, node_memory=True)
    def hasty(p, r, blocks, nodes=()):
        near = blocks.within("node")
        yield Round(then=(Copy(blocks[r][0], near[r][0]),))
        yield Round(
            meet=True, then=tuple(Copy(near[i][0], blocks[i][0]) for i in range(p))
        )

    all_cases = sweep.on_nodes("allgatherv", 3, 0, 2)
    hasty_cases = [x for x in all_cases if x.algorithm == "hasty"]
    (failure,) = sweep.examine(hasty_cases).failures.values()
    assert "nodes=(0, 0)" in failure
    assert "Unwritten" in failure or "Race" in failure
    assert len(hasty_cases) == sweep.placements_in(hasty_cases) == 1 + 2 + 5


def test_the_example_of_the_documentation(monkeypatch):
    """An algorithm on "node" in under 30 lines, right on every placement."""
    monkeypatch.setattr(registry, "_algorithms", dict(registry._algorithms))
    names = runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert len(inspect.getsource(names["leaders"]).splitlines()) < 30
    all_cases = sweep.on_nodes("allgatherv", 6, 0, 4)
    leader_cases = [x for x in all_cases if x.algorithm == "leaders"]
    assert sweep.examine(leader_cases).failures == {}
    assert sweep.placements_in(leader_cases) == 1 + 2 + 5 + 15 + 52 + 1
