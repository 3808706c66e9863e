"""Properties of every algorithm of every collective, for any sizes."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from math import lcm

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import isthmus
from isthmus.algorithms import bcast, inter_bcast
from isthmus.algorithms.parts.patterns import STARTUP_ELEMENTS, is_power
from isthmus.collectives.collective import BETWEEN, INSIDE, SEVERAL
from isthmus.collectives.records import COLLECTIVES
from isthmus.cost.machine import AlphaBeta
from isthmus.schedules import registry
from isthmus.schedules.ir import Library, Recv, Send, is_signal
from isthmus.verify.errors import ScheduleError
from isthmus.verify.verify import verify
from record_names import is_declined
from record_sizes import (
    DIVISIBLE,
    claimed,
    equal_sizes,
    is_of_root,
    names_of,
    nodes_of,
    ranks_of,
    sizes_of,
)
from sampling import LONG, some

ENTRIES = [
    (collective, e)
    for collective in COLLECTIVES
    for e in registry.algorithms(collective)
]
MODEL = AlphaBeta(2e-6, 1e-9)


def each(entries):
    ids = [f"{collective}-{entry.name}" for collective, entry in entries]
    return pytest.mark.parametrize(("collective", "entry"), entries, ids=ids)


def check(schedule):
    """Verify a schedule, and compare rounds of all ranks at once with those of each
    rank."""
    programs = schedule.all_ranks()
    verify(programs, schedule.contract, schedule.nodes)
    if not schedule.node_memory:  # whose ranks are always built alone
        assert programs == [schedule.rank(r) for r in range(schedule.n)]


#: ranks of a group, at the most, that the small ones have
SMALL = {INSIDE: 6, BETWEEN: 4 if LONG else 3, SEVERAL: 4}


@each(ENTRIES)
def test_right_for_all_small_groups(collective, entry):
    record, turn = COLLECTIVES[collective], ENTRIES.index((collective, entry))
    most = SMALL[INSIDE if is_of_root(record) else record.groups]
    sweep = record.sweep(most, np.random.default_rng(5))
    for i, cases in enumerate(some(sweep, 3 if record.groups == SEVERAL else 1, turn)):
        if is_declined(record, entry.name, record.ranks(cases[0])):
            with pytest.raises(ValueError, match="does not work for a group of"):
                isthmus.schedule(collective, entry.name, **cases[0])
            continue
        for k, sizes in enumerate(some(cases, 2 + len(cases) // 4, turn + i)):
            name = staged(entry, turn + i) if (k + i) % 2 else entry.name
            if not is_declined(record, name, record.ranks(sizes)):
                check(isthmus.schedule(collective, name, **sizes))


def staged(entry, turn):
    """The name of the algorithm, with a stage if staged; stages take turns."""
    stages = [x.name for x in registry.algorithms("allgatherv") if not x.node_memory]
    stage = stages[turn % len(stages)]
    return f"{entry.name}+{stage}" if entry.staged else entry.name


def most_ranks(entry):
    """The most ranks of a test; fewer for exchanges through node memory, since these
    take long."""
    return 10 if entry.node_memory and not LONG else 16


@each(ENTRIES)
@settings(max_examples=50 if LONG else 5)
@given(data=st.data())
def test_right_for_any_sizes_options_and_placements(collective, entry, data):
    record = COLLECTIVES[collective]
    ranks = data.draw(ranks_of(record, most_ranks(entry)))
    name = data.draw(names_of(entry))
    assume(not is_declined(record, name, ranks))
    sizes = data.draw(sizes_of(record, ranks))
    n = sum(record.ranks(sizes))
    nodes = data.draw(nodes_of(n)) if "nodes" in entry.options else ()
    check(isthmus.schedule(collective, name, nodes=nodes, **sizes))


# The closed forms


#: groups whose blocks and parts divide
SHAPES = {
    INSIDE: [(p,) for p in (1, 2, 3, 4, 6, 8, 13, 16)],
    BETWEEN: [
        *((1, 1), (2, 1), (1, 4), (4, 4), (8, 2), (2, 8)),
        *((16, 4), (3, 3), (6, 3), (3, 6), (12, 4), (5, 5)),
    ],
    SEVERAL: [(4, 4, 4), (2, 2, 2, 2), (5, 5)],
}


def divisible(record, ranks):
    """The least elements that divide by ranks, and by the parts of a root's vector."""
    n = ranks[0] + is_of_root(record)
    cut = "root" in record.example or is_of_root(record)
    unit = lcm(*ranks, *([max(n - 1, 1), bcast.segments(n)] * cut))
    m = -(-DIVISIBLE // unit) * unit
    while cut and (m % bcast.parts(n, m) or m % inter_bcast.links(n, m)):
        m += unit
    return m


def simulated_of_claimed(collective, name, ranks, each):
    """The simulated time as a multiple of the closed form's time."""
    record, sizes = (
        COLLECTIVES[collective],
        equal_sizes(COLLECTIVES[collective], ranks, each),
    )
    time = isthmus.schedule(collective, name, **sizes).simulate(MODEL).time
    algorithm = registry.resolve(collective, name)[0].given(startup=STARTUP_ELEMENTS)
    args = [*claimed(record, ranks, each), MODEL.alpha, MODEL.beta]
    if record.groups != INSIDE and collective.endswith(("allgather", "allgatherv")):
        stage = name.partition("+")[2] or "bruck"
        args.append(registry.find("allgatherv", stage).cost)
    wanted = algorithm.cost(*args)
    return time / wanted if wanted else 1 + time


def bounds(collective, name, ranks, is_regular):
    """The least and the greatest multiple of the closed form for an algorithm."""
    p, q = ranks[0], ranks[-1]
    if name == "halving" and not is_power(p):
        return 1, 1.5
    if name == "pipelined" and p != q:
        return 0.9, 1
    if name.startswith("root_gathering"):  # parts of a broadcast are rounded
        return 1, 1.001
    if name == "moving_entry":  # a round may begin before all end one
        return 0.7, 1
    if (collective, name) == ("inter_alltoall", "bruck") and not (
        p == q and is_power(p)
    ):
        return 0.4, 1.04  # a block's way depends on where the groups lie on the circle
    if (collective, name) == ("multi_allgatherv", "ring"):
        return 0.85, 1
    if collective.startswith("inter_allgather") and p != q and name == "leader":
        return 1, 3  # of groups of one size
    if collective.startswith("inter_allgather") and not is_regular and name == "merged":
        return 0.5, 1.5  # of blocks of one size
    return 1, 1


#: each program and closed form once, of all collectives that have it
CLAIMS = {
    (entry.program, entry.cost): (collective, entry)
    for collective, entry in ENTRIES
    if not entry.node_memory and entry.name != "library"
}


@each(list(CLAIMS.values()))
def test_the_closed_form_is_what_the_simulator_says(collective, entry):
    record = COLLECTIVES[collective]
    for ranks in SHAPES[INSIDE if is_of_root(record) else record.groups]:
        m = divisible(record, ranks)
        others = {"ka", "ab", "a"} & record.example.keys() and not record.combines
        for each in (m, (m, 4 * m), (4 * m, m)) if others else (m,):
            for name in named(entry, ranks, each == m):
                if is_declined(record, name, ranks):
                    continue
                least, most = bounds(collective, entry.name, ranks, each == m)
                ratio = simulated_of_claimed(collective, name, ranks, each)
                assert least * (1 - 1e-12) <= ratio <= most * (1 + 1e-12), (name, ranks)


def named(entry, ranks, is_regular):
    """The names of the algorithm, with all stages of known cost, or with a single
    stage."""
    if not entry.staged:
        return [entry.name]
    stages = ["ring", "bruck", "recursive_doubling"]
    few = some(stages, 1 if is_regular else 3, sum(ranks))
    return [f"{entry.name}+{stage}" for stage in few]


# A spoilt one is caught


def is_sent(data):
    return is_signal(data) or any(s.size for s in data)


def messages(programs):
    """The k-th send and receive of each pair of ranks, as the places of both ends."""
    ends = {}
    for r, rounds in enumerate(programs):
        for k, x in enumerate(rounds):
            for i, c in enumerate(x.comm):
                if isinstance(c, Library) or not is_sent(c.data):
                    continue
                way = (r, c.to) if isinstance(c, Send) else (c.frm, r)
                ends.setdefault(way, ([], []))[isinstance(c, Recv)].append((r, k, i))
    for sends, receives in ends.values():
        yield from zip(sends, receives, strict=True)


def steps(programs):
    """The places of all local steps with an effect."""
    for r, rounds in enumerate(programs):
        for k, x in enumerate(rounds):
            for i, s in enumerate(x.then):
                if s.src.size and s.src != s.dst:
                    yield r, k, i


def without(programs, places, part):
    """The programs without messages, or local steps, at given places."""
    less = [list(rounds) for rounds in programs]
    for r, k, i in places:
        rest = tuple(x for j, x in enumerate(getattr(less[r][k], part)) if j != i)
        less[r][k] = replace(less[r][k], **{part: rest})
    return less


#: those that send, or copy, what is there already
REDUNDANT = {"scatter_allgather", "merged", "doubling", "local_first"}
REDUNDANT |= {"root_gathering_sequential", "root_gathering_ring"}
REDUNDANT |= {"leader", "leader_ring", "leaders_long"}


def survives(programs, schedule):
    """Whether verification misses the fault of a program."""
    try:
        verify(programs, schedule.contract, schedule.nodes)
    except ScheduleError:
        return False
    return True


@each(ENTRIES)
def test_a_spoilt_one_is_caught(collective, entry):
    """A program without a message, without an end of a message, or without a local
    step."""
    record, turn = COLLECTIVES[collective], ENTRIES.index((collective, entry))
    if is_declined(record, entry.name, record.ranks(record.example)):
        return
    schedule = isthmus.schedule(collective, entry.name, **record.example)
    programs = schedule.all_ranks()
    spoilt = []
    for k, ends in enumerate(some(messages(programs), 3, turn)):
        assert not survives(without(programs, ends[k % 2 :][:1], "comm"), schedule)
        spoilt.append(without(programs, ends, "comm"))
    for place in some(steps(programs), 3, turn):
        spoilt.append(without(programs, [place], "then"))
    survivors = sum(survives(x, schedule) for x in spoilt)
    assert survivors <= (len(spoilt) * 2 / 3 if entry.name in REDUNDANT else 0)


# Bad sizes are refused


def wrong_sizes(record):
    """Sizes with a wrong value each, and the words of the error."""
    for name, right in record.example.items():
        others = record.example
        if name == "root":
            yield {**others, name: 5}, "root = 5: must be a rank, 0 to 4"
            yield {**others, name: -1}, "root = -1"
        elif isinstance(right, int):
            wrong = 0 if name in ("p", "q") else -1
            yield {**others, name: wrong}, f"{name} = {wrong}: must be at least"
        else:
            yield {**others, name: []}, "is empty|must be|is an empty"
        if isinstance(right, list) and name != "sizes":
            row = right[0] if isinstance(right[0], list) else right
            less = [*row[:-1], -2]
            wrong = [less, *right[1:]] if row is right[0] else less
            yield {**others, name: wrong}, "= -2: must be at least 0"


@each(ENTRIES)
def test_bad_sizes_are_refused(collective, entry):
    record = COLLECTIVES[collective]
    for sizes, words in wrong_sizes(record):
        with pytest.raises(ValueError, match=words):
            isthmus.schedule(collective, entry.name, **sizes)
    takes = f"{collective} takes {', '.join(record.example)}; got"
    less = dict(islice(record.example.items(), 1, None))
    for sizes in (less, {**record.example, "x": 1}):
        with pytest.raises(TypeError, match=takes):
            isthmus.schedule(collective, entry.name, **sizes)


MISFITS = [
    ("alltoallv", {"table": [[1, 2]]}, "must be p by p"),
    ("inter_reduce_scatter", {"a": [1, 2], "b": [4]}, "must be the same"),
    ("inter_reduce_scatter_block", {"p": 2, "q": 3, "ka": 1, "kb": 1}, "the same"),
    ("inter_alltoallv", {"ab": [[1, 2]], "ba": [[1, 2]]}, "must be p×q and q×p"),
    ("multi_allgatherv", {"groups": [[1], []]}, "empty"),
    ("multi_alltoallv", {"sizes": [1, 1], "table": [[0, 1]]}, "must have 2 rows"),
    ("multi_alltoallv", {"sizes": [2], "table": [[0, 1], [0, 0]]}, "inside a group"),
    ("multi_alltoallv", {"sizes": [0, 1], "table": [[0]]}, "must be at least 1"),
]


@pytest.mark.parametrize(("collective", "sizes", "words"), MISFITS)
def test_sizes_that_do_not_fit_are_refused(collective, sizes, words):
    name = next(registry.algorithms(collective)).name
    with pytest.raises(ValueError, match=words):
        isthmus.schedule(collective, name, **sizes)


@each(ENTRIES)
def test_every_algorithm_says_its_idea_and_its_source(collective, entry):
    assert len(entry.idea) > 20 and entry.idea.endswith(".")
    assert entry.paper
