"""A dialogue as a batch equals the dialogue process by process, to the last byte."""

from __future__ import annotations

import operator
import random

import numpy as np
import pytest

from isthmus.groups import scans, vm, vm_batch
from isthmus.groups.batch import bit_length, codes, each_byte
from isthmus.groups.chain import from_addresses, from_size
from isthmus.groups.dialogue import AllgatherStep, ExchangeStep, PostStep
from isthmus.groups.hash_split import hash_split
from isthmus.groups.jenkins import bin_of
from isthmus.groups.split import entry_of, find, place
from isthmus.groups.split_entry import batched, number
from isthmus.verify.errors import BadMessage
from sampling import LONG, some

NAMES = ["bitonic", "radix", "hash", "hash64"]
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
        [numbered(from_size(i, n), entries[i], name) for i in range(n)],
        alpha=ALPHA,
        beta=BETA,
    )
    rows = []
    for outcome in done.results:
        link, id_ = outcome.link, outcome.id
        ends = (link.left, link.right) if link else (None, None)
        rows.append(
            (
                link.rank if link else -1,
                link.size if link else 0,
                *(-1 if x is None else x for x in (*ends, id_)),
            )
        )
    return rows, [(t.rounds, t.messages, t.bytes, t.time) for t in done.ranks]


def run_as_batch(name, entries):
    n = len(entries)
    talk = numbered(from_size(np.arange(n), n), batched(entries), name)
    done = vm_batch.run(talk, n, alpha=ALPHA, beta=BETA)
    link, id_ = done.result.link, done.result.id
    none = np.full(n, -1)
    columns = (none, none + 1, none, none)
    if link is not None:
        columns = link.rank, link.size, link.left, link.right
    ids = none if id_ is None else np.broadcast_to(id_, n)
    tallies = zip(done.rounds, done.messages, done.bytes, done.time, strict=True)
    return list(zip(*columns, ids, strict=True)), list(tallies)


def random_entries(name, n, groups, length, flags, seed=0, out=0.0):
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
    batch_rows, tallies = run_as_batch(name, entries)
    assert batch_rows == wanted
    assert tallies == counts


@pytest.mark.parametrize("name", NAMES + TABLES)
def test_a_batch_does_what_processes_do(name):
    """Every n, with a single group, few and many groups, and every kind of call in
    turn."""
    for n in [*range(1, 10), *some(range(10, 18), 3), *some(range(18, 71), 20)]:
        groups, flags = (1, 3, n)[n % 3], FLAGS[n // 3 % 3]
        check(name, random_entries(name, n, groups, 5, flags, n))


@pytest.mark.parametrize("name", NAMES + TABLES)
def test_with_some_left_out(name):
    for n in (1, 2, 9, 40, *[70] * LONG):
        for out in (0.3, 1.0):
            check(name, random_entries(name, n, 4, 5, (True, True), n, out))


@pytest.mark.parametrize("name", NAMES)
def test_long_colours_and_more_processes(name):
    check(name, random_entries(name, 129, 40, 80, FLAGS[0]))
    if LONG:
        check(name, random_entries(name, 300, 5, 80, FLAGS[1]))
        check(name, random_entries(name, 129, 129, 80, FLAGS[0]))
        check(name, random_entries(name, 257, 257, 80, FLAGS[1]))
        check(name, random_entries(name, 1000, 700, 80, FLAGS[0]))


@pytest.mark.parametrize("most", [1, 2])
def test_colours_that_no_hash_parts_are_sorted(most):
    n = 60
    entries = random_entries("hash", n, 40, 5, (True, True))
    done = vm.run(
        [hash_split(from_size(i, n), entries[i], max_iterations=most) for i in range(n)]
    )
    talk = hash_split(from_size(np.arange(n), n), batched(entries), max_iterations=most)
    batch = vm_batch.run(talk, n)
    link = batch.result.link
    assert link.rank.tolist() == [p.link.rank for p in done.results]
    assert link.size.tolist() == [p.link.size for p in done.results]
    assert batch.bytes.tolist() == [t.bytes for t in done.ranks]
    assert batch.time.tolist() == [t.time for t in done.ranks]


def test_colours_of_many_lengths_are_hashed_alike():
    rng = random.Random(1)
    names = [
        b"",
        b"\0",
        b"\0\0",
        *(rng.randbytes(rng.randrange(1, 90)) for _ in "x" * 50),
    ]
    for iteration in (0, 7, 8, 20, 31):
        outcome = each_byte(lambda x: bin_of(x, iteration), codes([*names, None]))
        assert outcome.tolist() == [*(bin_of(x, iteration) for x in names), -1]


def test_radix_refuses_what_does_not_fit_a_word():
    """Keys of 31 bits just fit; keys of 32 bits are refused."""
    for bits in (31, 32):
        entries = [entry_of(x, x, True, True) for x in (0, 2**bits - 1)]
        if bits == 31:
            check("radix", entries)
        else:
            with pytest.raises(ValueError, match="63 bits"):
                run_as_batch("radix", entries)


def test_bits_of_arrays_are_those_of_ints():
    values = [0, 1, *(2**k + d for k in range(1, 63) for d in (-1, 0, 1))]
    assert bit_length(np.array(values)).tolist() == [x.bit_length() for x in values]


@pytest.mark.parametrize("n", [1, 2, 7, 33])
def test_scans_in_a_batch_of_any_operator_and_several_chains(n):
    """Strings, as digits of a number, stand for data that do not commute."""
    rng = random.Random(n)
    order = rng.sample(range(n), n)
    cut = rng.randrange(n + 1)
    chains = [order[:cut], order[cut:]]
    links = [from_addresses(a, c) for a in range(n) for c in chains if a in c]

    def join(x, y):
        return x[0] * 3 ** y[1] + y[0], x[1] + y[1]

    def talk(link):
        mine = (link.rank % 3, link.rank * 0 + 1)
        done = yield from scans.double_scan(link, mine, mine, join)
        total = yield from scans.total(link, link.rank, operator.add)
        return done.upto, done.onward, total

    want = vm.run([talk(link) for link in links])
    fields = ("rank", "size", "address", "left", "right")
    rows = [[getattr(x, name) for x in links] for name in fields]
    batch = type(links[0])(
        *(np.array([-1 if x is None else x for x in row]) for row in rows)
    )
    outcome = vm_batch.run(talk(batch), n)
    (upto, _), (onward, _), total = outcome.result
    assert upto.tolist() == [x[0][0] for x in want.results]
    assert onward.tolist() == [x[1][0] for x in want.results]
    assert total.tolist() == [x[2] for x in want.results]
    assert outcome.rounds.tolist() == [t.rounds for t in want.ranks]
    assert outcome.time.tolist() == [t.time for t in want.ranks]


NONE, NEXT = np.array([-1, -1, -1]), np.array([1, -1, -1])


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (ExchangeStep((), (NEXT,)), "receive nothing"),
        (ExchangeStep(((NEXT, 1),), (NONE,)), "does not wait"),
        (ExchangeStep(((NEXT, 1),), (np.array([-1, 2, -1]),)), "receive nothing"),
        (PostStep(((NEXT, 1),), np.array([1, 0, 0])), "posted"),
    ],
)
def test_messages_with_one_end_are_refused(step, words):
    def talk():
        yield step

    with pytest.raises(BadMessage, match=words):
        vm_batch.run(talk(), 3)


def exchanges(*steps):
    """A dialogue of steps, each with a target and a source of every rank; a number of
    eight bytes goes from each to each."""
    for targets, sources in steps:
        sent = [(np.array(targets), np.arange(len(targets)))]
        yield ExchangeStep(sent, [np.array(sources)])


#: ranks 0 and 1 on a node, 2 and 3 on another; messages inside cost a tenth
PORTS = vm_batch.NodePorts(np.array([0, 0, 1, 1]), ALPHA / 10, BETA / 10)


@pytest.mark.parametrize(
    ("targets", "sources", "times"),
    [
        # inside the nodes, all at once
        ([1, 0, 3, 2], [1, 0, 3, 2], [0.2 + 0.2] * 4),
        # one message out of each node has the port alone
        ([2, -1, 0, -1], [2, -1, 0, -1], [4, 0, 4, 0]),
        # two messages pass the port one after the other; start-ups overlap
        ([2, 3, 0, 1], [2, 3, 0, 1], [4, 6, 4, 6]),
    ],
)
def test_messages_of_a_node_pass_its_port_one_after_the_other(targets, sources, times):
    steps = exchanges((targets, sources))
    done = vm_batch.run(steps, 4, alpha=ALPHA, beta=BETA, nodes=PORTS)
    assert done.time.tolist() == pytest.approx(times)


def test_a_port_is_busy_with_the_messages_of_earlier_steps():
    """Rank 0 is done with the first step before rank 1 is, and then waits for it."""
    steps = exchanges(*(([2, x, 0, y],) * 2 for x, y in ((3, 1), (-1, -1))))
    done = vm_batch.run(steps, 4, alpha=0.0, beta=BETA, nodes=PORTS)
    assert done.time.tolist() == pytest.approx([6, 4, 6, 4])


def test_an_allgather_brings_a_node_what_each_of_its_ranks_lacks():
    def gather(n):
        yield AllgatherStep(np.arange(n))

    alone = vm_batch.run(gather(4), 4, alpha=ALPHA, beta=BETA)
    shared = vm_batch.run(gather(4), 4, alpha=ALPHA, beta=BETA, nodes=PORTS)
    assert alone.time[0] == 2 * ALPHA + 3 * 8 * BETA
    assert shared.time[0] == 2 * ALPHA + 2 * 2 * 8 * BETA
