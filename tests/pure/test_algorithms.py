"""What holds for every algorithm of every collective, whatever the sizes."""

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
from isthmus.cost.alphabeta import AlphaBeta
from isthmus.schedules import registry
from isthmus.schedules.ir import Library, Recv, Send, is_signal
from isthmus.verify.errors import ScheduleError
from isthmus.verify.verify import verify
from record_sizes import (
    DIVISIBLE,
    claimed,
    equal_sizes,
    is_declined,
    is_of_root,
    names_of,
    nodes_of,
    ranks_of,
    sizes_of,
)
from sampling import LONG, some

ENTRIES = [(of, e) for of in COLLECTIVES for e in registry.algorithms(of)]
MODEL = AlphaBeta(2e-6, 1e-9)


def each(entries):
    ids = [f"{of}-{entry.name}" for of, entry in entries]
    return pytest.mark.parametrize(("of", "entry"), entries, ids=ids)


def check(schedule):
    """Right, and the same whether built for all ranks at once or for each alone."""
    programs = schedule.all_ranks()
    verify(programs, schedule.contract, schedule.nodes)
    if not schedule.node_memory:  # whose ranks are always built alone
        assert programs == [schedule.rank(r) for r in range(schedule.n)]


#: ranks of a group, at the most, that the small ones have
SMALL = {INSIDE: 6, BETWEEN: 4 if LONG else 3, SEVERAL: 4}


@each(ENTRIES)
def test_right_for_all_small_groups(of, entry):
    record, turn = COLLECTIVES[of], ENTRIES.index((of, entry))
    most = SMALL[INSIDE if is_of_root(record) else record.groups]
    sweep = record.sweep(most, np.random.default_rng(5))
    for i, cases in enumerate(some(sweep, 3 if record.groups == SEVERAL else 1, turn)):
        if is_declined(record, entry.name, record.ranks(cases[0])):
            with pytest.raises(ValueError, match="does not work for a group of"):
                isthmus.schedule(of, entry.name, **cases[0])
            continue
        for k, sizes in enumerate(some(cases, 2 + len(cases) // 4, turn + i)):
            name = staged(entry, turn + i) if (k + i) % 2 else entry.name
            if not is_declined(record, name, record.ranks(sizes)):
                check(isthmus.schedule(of, name, **sizes))


def staged(entry, turn):
    """The algorithm with a stage, if it has one; stages take turns."""
    stages = [x.name for x in registry.algorithms("allgatherv") if not x.node_memory]
    stage = stages[turn % len(stages)]
    return f"{entry.name}+{stage}" if entry.staged else entry.name


def most_ranks(entry):
    """Of those that share memory, an exchange among many takes long."""
    return 10 if entry.node_memory and not LONG else 16


@each(ENTRIES)
@settings(max_examples=50 if LONG else 5)
@given(data=st.data())
def test_right_for_any_sizes_options_and_placements(of, entry, data):
    record = COLLECTIVES[of]
    ranks = data.draw(ranks_of(record, most_ranks(entry)))
    name = data.draw(names_of(entry))
    assume(not is_declined(record, name, ranks))
    sizes = data.draw(sizes_of(record, ranks))
    n = sum(record.ranks(sizes))
    nodes = data.draw(nodes_of(n)) if "nodes" in entry.options else ()
    check(isthmus.schedule(of, name, nodes=nodes, **sizes))


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
    """Elements that ranks divide, and the parts that are cut of a vector of a root."""
    n = ranks[0] + is_of_root(record)
    cut = "root" in record.example or is_of_root(record)
    unit = lcm(*ranks, *([max(n - 1, 1), bcast.segments(n)] * cut))
    m = -(-DIVISIBLE // unit) * unit
    while cut and (m % bcast.parts(n, m) or m % inter_bcast.links(n, m)):
        m += unit
    return m


def simulated_of_claimed(of, name, ranks, each):
    """The simulated time, of what the closed form says."""
    record, sizes = COLLECTIVES[of], equal_sizes(COLLECTIVES[of], ranks, each)
    time = isthmus.schedule(of, name, **sizes).simulate(MODEL).time
    told = registry.resolve(of, name)[0].given(startup=STARTUP_ELEMENTS)
    args = [*claimed(record, ranks, each), MODEL.alpha, MODEL.beta]
    if record.groups != INSIDE and of.endswith(("allgather", "allgatherv")):
        stage = name.partition("+")[2] or "bruck"
        args.append(registry.find("allgatherv", stage).cost)
    wanted = told.cost(*args)
    return time / wanted if wanted else 1 + time


def bounds(of, name, ranks, is_regular):
    """Between which parts of its closed form an algorithm is."""
    p, q = ranks[0], ranks[-1]
    if name == "halving" and not is_power(p):
        return 1, 1.5
    if name == "pipelined" and p != q:
        return 0.9, 1
    if name.startswith("root_gathering"):  # parts of a broadcast are rounded
        return 1, 1.001
    if name == "moving_entry":  # a round may begin before all end one
        return 0.7, 1
    if (of, name) == ("inter_alltoall", "bruck") and not (p == q and is_power(p)):
        return 0.4, 1.04  # a block's way depends on where the groups lie on the circle
    if (of, name) == ("multi_allgatherv", "ring"):
        return 0.85, 1
    if of.startswith("inter_allgather") and p != q and name == "leader":
        return 1, 3  # of groups of one size
    if of.startswith("inter_allgather") and not is_regular and name == "merged":
        return 0.5, 1.5  # of blocks of one size
    return 1, 1


#: each program and closed form once, of all collectives that have it
CLAIMS = {
    (entry.program, entry.cost): (of, entry)
    for of, entry in ENTRIES
    if not entry.node_memory and entry.name != "library"
}


@each(list(CLAIMS.values()))
def test_the_closed_form_is_what_the_simulator_says(of, entry):
    record = COLLECTIVES[of]
    for ranks in SHAPES[INSIDE if is_of_root(record) else record.groups]:
        m = divisible(record, ranks)
        others = {"ka", "ab", "a"} & record.example.keys() and not record.combines
        for each in (m, (m, 4 * m), (4 * m, m)) if others else (m,):
            for name in named(entry, ranks, each == m):
                if is_declined(record, name, ranks):
                    continue
                least, most = bounds(of, entry.name, ranks, each == m)
                ratio = simulated_of_claimed(of, name, ranks, each)
                assert least * (1 - 1e-12) <= ratio <= most * (1 + 1e-12), (name, ranks)


def named(entry, ranks, is_regular):
    """The algorithm, with all stages that there are closed forms of or with one."""
    if not entry.staged:
        return [entry.name]
    stages = ["ring", "bruck", "recursive_doubling"]
    few = some(stages, 1 if is_regular else 3, sum(ranks))
    return [f"{entry.name}+{stage}" for stage in few]


# A spoilt one is caught


def is_sent(data):
    return is_signal(data) or any(s.size for s in data)


def messages(programs):
    """Who sends to whom for the how manieth time, and the places of both ends."""
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
    """The places of all local steps that do something."""
    for r, rounds in enumerate(programs):
        for k, x in enumerate(rounds):
            for i, s in enumerate(x.then):
                if s.src.size and s.src != s.dst:
                    yield r, k, i


def without(programs, places, part):
    """The same but some messages, or local steps."""
    less = [list(rounds) for rounds in programs]
    for r, k, i in places:
        kept = tuple(x for j, x in enumerate(getattr(less[r][k], part)) if j != i)
        less[r][k] = replace(less[r][k], **{part: kept})
    return less


#: those that send, or copy, what is there already
REDUNDANT = {"scatter_allgather", "merged", "doubling", "local_first"}
REDUNDANT |= {"root_gathering_sequential", "root_gathering_ring"}
REDUNDANT |= {"leader", "leader_ring", "leaders_long"}


def survives(programs, schedule):
    """Whether nothing is found wrong."""
    try:
        verify(programs, schedule.contract, schedule.nodes)
    except ScheduleError:
        return False
    return True


@each(ENTRIES)
def test_a_spoilt_one_is_caught(of, entry):
    """Without a message, without one of its ends, or without a local step."""
    record, turn = COLLECTIVES[of], ENTRIES.index((of, entry))
    if is_declined(record, entry.name, record.ranks(record.example)):
        return
    schedule = isthmus.schedule(of, entry.name, **record.example)
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
    """Sizes of which one is wrong, and what is said of it."""
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
def test_bad_sizes_are_refused(of, entry):
    record = COLLECTIVES[of]
    for sizes, words in wrong_sizes(record):
        with pytest.raises(ValueError, match=words):
            isthmus.schedule(of, entry.name, **sizes)
    takes = f"{of} takes {', '.join(record.example)}; got"
    less = dict(islice(record.example.items(), 1, None))
    for sizes in (less, {**record.example, "x": 1}):
        with pytest.raises(TypeError, match=takes):
            isthmus.schedule(of, entry.name, **sizes)


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


@pytest.mark.parametrize(("of", "sizes", "words"), MISFITS)
def test_sizes_that_do_not_fit_are_refused(of, sizes, words):
    name = next(registry.algorithms(of)).name
    with pytest.raises(ValueError, match=words):
        isthmus.schedule(of, name, **sizes)


@each(ENTRIES)
def test_every_algorithm_says_its_idea_and_its_source(of, entry):
    assert len(entry.idea) > 20 and entry.idea.endswith(".")
    assert entry.paper
