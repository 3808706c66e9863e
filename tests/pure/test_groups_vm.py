"""The virtual machine: counts of time and memory, and refused dialogues."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from isthmus.groups import scans, vm
from isthmus.groups.chain import from_size, rounds
from isthmus.groups.dialogue import AllgatherStep, ExchangeStep, PostStep, nbytes
from isthmus.groups.footprint import footprint
from isthmus.verify.errors import BadMessage, Deadlock


def say(*steps):
    """A dialogue of fixed steps that returns all received values."""
    received = []
    for step in steps:
        received.append((yield step))
    return received


def test_values_arrive_in_the_order_of_the_receives():
    done = vm.run(
        [
            say(ExchangeStep(((2, "a"),))),
            say(ExchangeStep(((2, "b"),))),
            say(ExchangeStep((), (1, 0))),
        ]
    )
    assert done.results[2] == [["b", "a"]]
    assert done.rounds == 1 and done.messages == 2


def test_rounds_are_the_longest_chain_of_steps_that_waited():
    relay = [say(ExchangeStep(((1, 0),)))]
    relay += [
        say(ExchangeStep((), (i - 1,)), ExchangeStep(((i + 1, 0),)))
        for i in range(1, 5)
    ]
    relay += [say(ExchangeStep((), (4,)))]
    assert vm.run(relay).rounds == 5


def test_a_step_without_messages_takes_no_round():
    assert vm.run([say(ExchangeStep(), ExchangeStep())]).rounds == 0


def test_bytes_and_messages_of_each_rank():
    done = vm.run(
        [say(ExchangeStep(((1, (1, b"abc", None)),))), say(ExchangeStep((), (0,)))]
    )
    assert [t.bytes for t in done.ranks] == [8 + 11 + 8, 0]
    assert [t.messages for t in done.ranks] == [1, 0]


def test_virtual_time_is_that_of_one_port_each_way():
    """The receiver receives two messages of 8 bytes in sequence."""
    senders = [say(ExchangeStep(((2, 1),))), say(ExchangeStep(((2, 1),)))]
    done = vm.run([*senders, say(ExchangeStep((), (0, 1)))], alpha=2.0, beta=0.5)
    assert done.ranks[2].time == done.time == 2 * (2.0 + 8 * 0.5)
    dialogues = [say(ExchangeStep(((1 - i, 1),), (1 - i,))) for i in range(2)]
    assert vm.run(dialogues, alpha=2.0, beta=0.5).time == 2.0 + 8 * 0.5


@pytest.mark.parametrize("n", [2, 5, 64, 100])
def test_virtual_time_does_not_hang_on_the_order_of_messages(n):
    """A scan exchanges with both sides: two messages a round, for all at once."""
    scan = [scans.total(from_size(i, n), 1, operator.add) for i in range(n)]
    assert rounds(n) <= vm.run(scan).time <= 2 * rounds(n)


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([ExchangeStep((), (1,)), ExchangeStep((), (0,))], "receive from \\[1\\]"),
        ([ExchangeStep(((1, 0),)), ExchangeStep(((0, 0),))], "send to \\[1\\]"),
        ([PostStep((), 1), ExchangeStep()], "received 0 of 1"),
        ([AllgatherStep(1), ExchangeStep()], "waits for all others"),
    ],
)
def test_ranks_that_wait_for_ever_are_a_deadlock(steps, words):
    """The second case passes with buffered sends, and must not pass without."""
    with pytest.raises(Deadlock, match=words):
        vm.run([say(step) for step in steps])


@pytest.mark.parametrize(
    "step",
    [
        ExchangeStep(((0, 1),)),
        ExchangeStep(((1, 1), (1, 2))),
        ExchangeStep((), (1, 1)),
        ExchangeStep(((2, 1),)),
        ExchangeStep((), (-1,)),
        "hello",
    ],
)
def test_what_is_no_step_is_refused(step):
    with pytest.raises(BadMessage, match="rank 0"):
        vm.run([say(step), say(ExchangeStep((), (0,)))])


def test_posts_reach_ranks_that_do_not_know_from_whom():
    to = [2, 0, 1, 3]  # the last one posts to itself
    done = vm.run([say(PostStep(((to[i], i),), 1)) for i in range(4)])
    assert [received for ((received,),) in done.results] == [1, 2, 0, 3]
    assert done.messages == 3 and done.rounds == 1


def test_several_posts_from_one_rank():
    done = vm.run([say(PostStep(((1, "a"), (1, "b")), 0)), say(PostStep((), 2))])
    assert sorted(done.results[1][0]) == ["a", "b"]


def test_the_librarys_allgather():
    done = vm.run([say(AllgatherStep(i)) for i in range(5)])
    assert all(received == [[0, 1, 2, 3, 4]] for received in done.results)
    assert done.rounds == 3 and done.ranks[0].bytes == 4 * 8


def test_the_trace_tells_who_sent_what_in_which_round():
    first = say(ExchangeStep(((1, "x"),)), ExchangeStep((), (1,)))
    second = say(ExchangeStep((), (0,)), ExchangeStep(((0, "y"),)))
    done = vm.run([first, second], trace=True)
    assert [(m.round, m.source, m.target, m.value) for m in done.trace] == [
        (0, 0, 1, "x"),
        (1, 1, 0, "y"),
    ]


def test_memory_is_what_the_frames_hold():
    def keeps(n):
        captured = [7] * n

        def inner(size):
            extra_bytes = bytes(size)
            yield ExchangeStep()
            return extra_bytes

        yield from inner(100)
        del captured
        yield ExchangeStep()

    def peak(n):
        return vm.run([keeps(n)], memory=[0]).peak

    assert peak(1000) - peak(10) == 990 * 8
    assert peak(0) >= 100


def test_memory_counts_shared_things_once_and_closures_too():
    shared = tuple(range(100))
    hidden = list(range(500))

    def twice():
        first, second = shared, shared
        see = lambda: hidden  # noqa: E731
        yield ExchangeStep()
        return first, second, see

    dialogue = twice()
    next(dialogue)
    assert 4800 <= footprint(dialogue) <= 4800 + 200


def test_memory_counts_what_a_loop_goes_over():
    """The list under a loop is in no variable, and counts all the same."""

    def loops(n):
        for _ in reversed([7] * n):
            yield ExchangeStep()

    dialogues = loops(10), loops(1010)
    for dialogue in dialogues:
        next(dialogue)
    assert footprint(dialogues[1]) - footprint(dialogues[0]) == 1000 * 8


def test_memory_counts_what_a_step_sends_and_hears():
    sender = say(ExchangeStep(((1, bytes(1000)),)))
    done = vm.run([sender, say(ExchangeStep((), (0,)))], memory=[0, 1])
    assert all(t.memory >= 1000 for t in done.ranks)


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (None, 8),
        (5, 8),
        (-(2**63) + 1, 8),
        (2**64, 16),
        (True, 8),
        (1.5, 8),
        (b"abc", 11),
        ("äb", 11),
        ((1, (2, b"")), 24),
        ({1: (2, 3)}, 24),
        (np.zeros(4), 32),
    ],
)
def test_bytes_of_a_value(value, size):
    assert nbytes(value) == size
