"""The limit: a lower bound for all algorithms, reached by every collective
somewhere."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import isthmus
from isthmus import schedule
from isthmus.bench.job import case, must_move
from isthmus.check import sweep
from isthmus.collectives.records import COLLECTIVES
from isthmus.cost.limit import crossing, limit, limits
from isthmus.cost.machine import AlphaBeta, Level, Machine, Memory, Unequal
from isthmus.cost.machines import load
from isthmus.cost.placement import MACHINE, on_nodes, placed
from isthmus.facade import UserSchedule
from isthmus.schedules.hosts import Hosts
from isthmus.schedules.ir import Recv, Reduce, Round, Send, Span
from isthmus.schedules.registry import algorithms
from isthmus.verify import contracts
from isthmus.verify.errors import ScheduleError
from sampling import LONG

KIB, MIB = 1 << 10, 1 << 20
START_UPS = st.sampled_from([0.0, 1e-6, 3e-5])
PER_BYTE = st.sampled_from([0.0, 1e-10, 1e-9, 1e-8])


@st.composite
def cases(draw):
    """Any algorithm of any collective, with sizes, options and a placement."""
    collective = draw(st.sampled_from(sorted(COLLECTIVES)))
    record = COLLECTIVES[collective]
    ranks = draw(st.sampled_from([x for x in record.shapes(6) if sum(x) <= 9]))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    sizes = draw(st.sampled_from(record.cases(rng, *ranks)))
    n = sum(COLLECTIVES[collective].ranks(sizes))
    nodes = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    known = [x for x in algorithms(collective) if x.name != "library"]
    entry = draw(st.sampled_from(known))
    names_of = sweep.with_options if entry.node_memory else lambda e, _: sweep._names(e)
    name = draw(st.sampled_from(names_of(entry, n)))
    try:
        example = schedule(collective, name, nodes=nodes, **sizes)
        example.all_ranks()
    except ValueError:  # not for groups of these sizes
        assume(False)
    return example


@st.composite
def machines(draw, example):
    """Any machine, with ranks on the schedule's nodes or anywhere."""
    n, shares = example.n, example.shares_memory
    kind = "nested" if shares else draw(st.sampled_from(["flat", "hosts", "nested"]))
    gamma, unit = draw(PER_BYTE), draw(st.sampled_from([1, 1000]))
    if kind == "flat":
        return AlphaBeta(draw(START_UPS), draw(PER_BYTE), gamma, unit)
    if kind == "hosts":
        alphas = draw(st.lists(START_UPS, min_size=n, max_size=n))
        betas = draw(st.lists(PER_BYTE, min_size=n, max_size=n))
        return Unequal(Hosts(tuple(alphas), tuple(betas)), gamma, unit)
    levels = tuple(
        Level(
            size,
            draw(START_UPS),
            draw(PER_BYTE),
            draw(st.booleans()),
            draw(st.integers(1, 3)),
            draw(st.sampled_from([None, 0.0, 1e-7, 1e-6])),
            draw(PER_BYTE),
        )
        for size in (n, *draw(st.sampled_from([(), (2,)])), None)
    )
    alone = draw(PER_BYTE)
    memory = Memory(alone, min(alone, draw(PER_BYTE)), draw(START_UPS))
    nodes = (
        example.nodes
        if shares
        else draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    )
    numbers = {node: k for k, node in enumerate(dict.fromkeys(nodes))}
    where = tuple(numbers[x] for x in nodes)
    return Machine(levels, gamma, unit, where, memory=memory)


@given(st.data())
@settings(deadline=None, max_examples=20_000 if LONG else 150)
def test_no_algorithm_beats_the_limit(data):
    example = data.draw(cases())
    model = data.draw(machines(example))
    took = example.simulate(model).time
    for least in limits(example.contract, example.n, model):
        assert least.seconds <= took * (1 + 1e-9)


def marked(contract, n):
    """The ranks that have each element at the beginning and must have it at the end,
    read from the marks of all buffers."""
    holders, wanted = defaultdict(set), defaultdict(set)
    for r in range(n):
        for buf in contract.before(r).values():
            for mark in buf[buf["lo"] >= 0]:
                holders[element(mark)].add(r)
        for buf in contract.after(r).values():
            for mark in buf:
                wanted[element(mark)].add(r)
    return holders, wanted


def element(mark):
    return int(mark["index"]), int(mark["lo"]), int(mark["hi"])


def by_elements(contract, n, where):
    """The elements that must enter and leave each unit, and pass in all, one by one."""
    holders, wanted = marked(contract, n)
    enters, leaves = np.zeros((2, max(where) + 1), int)
    total = 0
    for mark, readers in wanted.items():
        _, lo, hi = mark
        targets = {where[r] for r in readers}
        if mark in holders:  # it needs not be combined: anyone may give it
            sources = {where[r] for r in holders[mark]}
            enters[list(targets - sources)] += 1
            leaves[list(sources)] += len(sources) == 1 and targets != sources
            total += len(targets - sources)
            continue
        sources = {where[r] for r in range(lo, hi)}
        enters[list(targets)] += [sources != {x} for x in targets]
        leaves[list(sources)] += [targets != {x} for x in sources]
        total += min(len(sources - {x}) + len(targets - {x}) for x in where)
    return enters.tolist(), leaves.tolist(), total


@given(st.data())
@settings(deadline=None, max_examples=3_000 if LONG else 100)
def test_what_must_move_is_what_the_marks_say(data):
    example = data.draw(cases())
    where = data.draw(
        st.lists(st.integers(0, 3), min_size=example.n, max_size=example.n)
    )
    where = np.unique(where, return_inverse=True)[1].tolist()
    crossed = crossing(example.contract.demand(), where)
    sums = crossed.enters.tolist(), crossed.leaves.tolist(), crossed.total
    assert sums == by_elements(example.contract, example.n, where)


@given(st.data())
@settings(deadline=None, max_examples=500 if LONG else 30)
def test_what_a_redistribution_must_move_is_what_the_marks_say(data):
    from isthmus import redistribution_schedule as redistribution
    from isthmus.redistribution.layouts import Layout, Replicate, Shard

    shape = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    rows, columns = Layout.blocks(shape, (2, 1)), Layout.blocks(shape, (1, 4))
    cyclic = Layout.cyclic(shape, (2, 2), (1, 2))
    copies = Layout.sharded(shape, (2, 2), [Shard(1), Replicate()])
    of_four = st.sampled_from([columns, cyclic, copies])
    inside = data.draw(st.booleans())
    source = data.draw(of_four if inside else st.sampled_from([rows, columns, copies]))
    ends, ranks = (source, data.draw(of_four)), 4 if inside else None
    example = redistribution(*ends, inside=ranks, combine=data.draw(st.booleans()))
    example.verify()
    where = data.draw(
        st.lists(st.integers(0, 3), min_size=example.n, max_size=example.n)
    )
    where = np.unique(where, return_inverse=True)[1].tolist()
    crossed = crossing(example.contract.demand(), where)
    sums = crossed.enters.tolist(), crossed.leaves.tolist(), crossed.total
    assert sums == by_elements(example.contract, example.n, where)
    on = on_nodes(AlphaBeta(1e-6, 1e-9), tuple(where))
    assert limit_seconds(example, on) <= example.simulate(on).time * (1 + 1e-9)


#: for each collective an algorithm that is at the limit with a host for each rank, on
#: gigabit Ethernet, and sizes for which it is
TABLE = [[0, MIB, MIB, MIB], [MIB, 0, MIB, MIB], [MIB, MIB, 0, MIB], [MIB, MIB, MIB, 0]]
CLOSE = {
    "allgatherv": ("bruck", {"counts": [MIB] * 16}),
    "allreduce": ("bruck", {"p": 16, "m": 16 * MIB}),
    "alltoall": ("pairwise", {"p": 16, "k": MIB}),
    "alltoallv": ("pairwise", {"table": TABLE}),
    "barrier": ("dissemination", {"p": 2}),
    "bcast": ("circulant", {"p": 8, "m": 256 * MIB, "root": 0}),
    "gatherv": ("binomial", {"counts": [MIB] * 16, "root": 0}),
    "reduce": ("circulant", {"p": 8, "m": 256 * MIB, "root": 0}),
    "reduce_scatter": ("bruck", {"counts": [MIB] * 16}),
    "scatterv": ("binomial", {"counts": [MIB] * 16, "root": 0}),
    "inter_allgather": ("unsegmented+bruck", {"p": 12, "q": 4, "ka": MIB, "kb": MIB}),
    "inter_allgatherv": ("unsegmented+bruck", {"a": [MIB] * 12, "b": [MIB] * 4}),
    "inter_allreduce": ("bruck", {"p": 8, "q": 8, "m": 16 * MIB}),
    "inter_alltoall": ("pairwise", {"p": 8, "q": 8, "ka": MIB, "kb": MIB}),
    "inter_alltoallv": ("pairwise", {"ab": [[MIB] * 4] * 4, "ba": [[MIB] * 4] * 4}),
    "inter_barrier": ("dissemination", {"p": 1, "q": 1}),
    "inter_bcast": ("circulant", {"q": 8, "m": 256 * MIB}),
    "inter_gather": ("binomial", {"q": 8, "k": 8 * MIB}),
    "inter_gatherv": ("binomial", {"counts": [8 * MIB] * 8}),
    "inter_reduce": ("circulant", {"q": 8, "m": 256 * MIB}),
    "inter_reduce_scatter": ("bruck", {"a": [2 * MIB] * 8, "b": [2 * MIB] * 8}),
    "inter_reduce_scatter_block": (
        "bruck",
        {"p": 8, "q": 8, "ka": 2 * MIB, "kb": 2 * MIB},
    ),
    "inter_scatter": ("binomial", {"q": 8, "k": 8 * MIB}),
    "inter_scatterv": ("binomial", {"counts": [8 * MIB] * 8}),
    "multi_allgatherv": ("balanced", {"groups": [[MIB] * 4] * 3}),
    "multi_alltoallv": ("rotated", {"sizes": [1] * 4, "table": TABLE}),
}


def close_to_the_limit(collective):
    """The time of an algorithm, as a multiple of the limit."""
    name, sizes = CLOSE[collective]
    example, model = schedule(collective, name, **sizes), load("gigabit-ethernet")
    return (
        example.simulate(model).time / limit(example.contract, example.n, model).seconds
    )


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_each_collective_reaches_its_limit_as_the_documentation_says(collective):
    multiple = close_to_the_limit(collective)
    assert 1 - 1e-9 <= multiple < 1.05
    page = Path(isthmus.__file__).parents[2] / "docs/algorithms.md"
    start = f"| `{collective}` | `{CLOSE[collective][0]}` |"
    rows = [x for x in page.read_text().splitlines() if x.startswith(start)]
    assert [x for x in rows if x.endswith(f"| {multiple:.3f} |")], multiple


THREE_ON_A_NODE = (0, 0, 0, 1)


def test_a_sum_leaves_a_node_combined_and_a_node_may_have_ranks_of_both_groups():
    """Rank 3 is alone, and needs every element once, in and out; an earlier limit
    counted twice as many. Ranks 1 and 2 are a round ahead."""
    m = 1 << 12
    send, tmp, recv = ((Span(buf, 0, m),) for buf in ("send", "tmp", "recv"))
    add = (Reduce(*send, *tmp),)
    programs = [
        [
            Round((Recv(1, tmp),), add),
            Round((Send(3, tmp), Send(2, tmp))),
            Round((Recv(2, recv),)),
        ],
        [Round((Send(0, send),)), Round((Recv(2, recv),))],
        [
            Round((Recv(3, tmp), Recv(0, recv)), add),
            Round((Send(0, tmp), Send(1, tmp))),
        ],
        [Round((Send(2, send), Recv(0, recv)))],
    ]
    example = UserSchedule(
        "inter_allreduce",
        "by hand",
        lambda: contracts.inter_allreduce(2, 2, m),
        lambda r: iter(programs[int(r)]),
        (range(2), range(2, 4)),
        THREE_ON_A_NODE,
        True,
    )
    example.verify()
    levels = Level(4, 1e-8, 1 / 100e9), Level(None, 1e-6, 1 / 1e9)
    model = Machine(levels, placement=THREE_ON_A_NODE, memory=Memory(1e-10))
    least = limit(example.contract, 4, model)
    assert least.size == m
    assert least.seconds <= example.simulate(model).time < 1.05 * least.seconds


@given(st.data())
@settings(deadline=None, max_examples=5_000 if LONG else 100)
def test_what_verifies_can_be_simulated(data):
    """Ranks are rounds apart as well, and take messages in different orders."""
    example = data.draw(cases())
    seed = data.draw(st.integers(0, 1 << 30))
    rng = np.random.default_rng(seed)
    programs = [list(shaken(rounds, rng)) for rounds in example.all_ranks()]
    each = tuple(range(r, r + 1) for r in range(example.n))
    other = replace(example, program=lambda r: iter(programs[int(r)]), groups=each)
    try:
        UserSchedule.of(other).verify()
    except ScheduleError:  # messages of a pair in another order
        return
    model = data.draw(machines(example))
    line = other.simulate(model, record=True)
    plain = example.simulate(model)
    assert line.sent.tolist() == plain.sent.tolist()
    assert line.received.tolist() == plain.received.tolist()
    for least in limits(example.contract, example.n, model):
        assert least.seconds <= line.time * (1 + 1e-9)


def shaken(rounds, rng):
    """The rounds of a rank with idle rounds between, and messages in a different
    order."""
    for r in rounds:
        if rng.random() < 0.3:
            yield Round()
        yield replace(r, comm=tuple(rng.permutation(np.array(r.comm, object)).tolist()))


def test_groups_may_share_a_node():
    """Three and three on nodes of four: rank 3 is beside the first group."""
    example = isthmus.schedule("inter_alltoall", "pairwise", p=3, q=3, ka=1, kb=1)
    passed = crossing(example.contract.demand(), [0, 0, 0, 0, 1, 1])
    assert passed.enters.tolist() == [6, 6] and passed.total == 12


def test_the_bench_counts_what_passes_the_link_of_a_host():
    bench_case = case("allgather", (3, 2), 10)
    passed = must_move(bench_case, [0, 0, 1, 1, 2])
    assert passed.enters.tolist() == [20, 30, 30]
    root = must_move(case("gather", (3, 2), 10), [0, 0, 1, 1, 2])
    assert root.enters.tolist() == [20, 0, 0]
    assert root.leaves.tolist() == [0, 10, 10]
    matrix = must_move(case("redistribution", (2, 2), 1024, "transposed"), [0, 1, 2, 3])
    assert matrix.most == 2048 // 2


def limit_seconds(example, on):
    return limit(example.contract, example.n, on).seconds


def test_a_byte_leaves_its_node_once_whoever_needs_it():
    where = [0, 1, 2, 0, 1, 2]
    sizes = {"counts": [6000, 0, 0, 0, 0, 0], "nodes": where}
    example = isthmus.schedule("allgatherv", "ring", **sizes)
    across = (on := placed(MACHINE, example)).levels[1]
    assert limit_seconds(example, on) == pytest.approx(
        across.alpha + 6000 * across.beta
    )


def test_ranks_of_a_node_may_send_and_copy_at_once():
    example = isthmus.schedule("allgatherv", "ring", counts=[6000, 0], nodes=[0, 0])
    on = on_nodes(MACHINE, (0, 0))
    rate = 1 / on.levels[0].beta + 1 / on.memory.alone
    assert limit_seconds(example, on) == pytest.approx(6000 / rate)


def test_a_rank_must_receive_what_it_does_not_have():
    example = isthmus.schedule("inter_allgather", "direct", p=6, q=2, ka=600, kb=300)
    assert limit_seconds(example, MACHINE) == pytest.approx(
        MACHINE.alpha + 3600 * MACHINE.beta
    )
    example = isthmus.schedule("alltoall", "pairwise", p=4, k=100)
    assert limit_seconds(example, MACHINE) == pytest.approx(
        MACHINE.alpha + 300 * MACHINE.beta
    )
    example = isthmus.schedule("barrier", "dissemination", p=4)
    assert limit_seconds(example, MACHINE) == MACHINE.alpha
    assert (
        limit_seconds(isthmus.schedule("barrier", "dissemination", p=1), MACHINE) == 0
    )
