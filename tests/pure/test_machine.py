"""The reference machine and the verifier: accepted and refused programs."""

from __future__ import annotations

from dataclasses import replace

import pytest

import isthmus
from isthmus.schedules.ir import Copy, Recv, Reduce, Round, Send, Span
from isthmus.verify.contracts import Contract, allgatherv, reduce
from isthmus.verify.errors import (
    BadMessage,
    BadOrder,
    Deadlock,
    Overlap,
    ScheduleError,
    Unwritten,
)
from isthmus.verify.marks import blank, marks
from isthmus.verify.reference_machine import run
from isthmus.verify.verify import WrongResult, verify


@pytest.fixture
def exchange():
    """A right schedule to spoil: programs of all ranks, and the contract."""
    allgather = isthmus.schedule(
        "inter_allgather", "segmented+ring", p=4, q=2, ka=6, kb=8
    )
    programs = allgather.all_ranks()
    verify(programs, allgather.contract)
    return programs, allgather.contract


def spoil(programs, rank, at, change):
    """The programs with a single round of a rank changed."""
    spoilt = [list(p) for p in programs]
    spoilt[rank][at] = change(spoilt[rank][at])
    return spoilt


def swap_peer(r):
    return replace(
        r,
        comm=tuple(
            replace(c, to=c.to ^ 1) if isinstance(c, Send) else c for c in r.comm
        ),
    )


def shift_span(kind, by):
    def change(r):
        def moved(c):
            first, *rest = c.data
            return replace(c, data=(replace(first, start=first.start + by), *rest))

        return replace(
            r, comm=tuple(moved(c) if isinstance(c, kind) else c for c in r.comm)
        )

    return change


def test_a_swapped_peer_is_caught(exchange):
    programs, contract = exchange
    with pytest.raises(ScheduleError):
        verify(spoil(programs, 0, 1, swap_peer), contract)


def test_a_shifted_send_is_caught_with_rank_round_and_element(exchange):
    programs, contract = exchange
    with pytest.raises(Unwritten, match=r"rank 0, round 1: recv\[4\] is read"):
        verify(spoil(programs, 0, 1, shift_span(Send, 1)), contract)


def test_a_shifted_receive_is_caught_with_its_round(exchange):
    programs, contract = exchange
    with pytest.raises(Unwritten, match=r"rank 1, round 2: recv\[0\] is read"):
        verify(spoil(programs, 1, 1, shift_span(Recv, 8)), contract)


def test_a_span_outside_its_buffer_is_caught(exchange):
    programs, contract = exchange
    with pytest.raises(BadMessage, match=r"rank 0, round 0: .* lies outside a buffer"):
        verify(spoil(programs, 0, 0, shift_span(Send, 1)), contract)


def test_a_dropped_round_is_caught(exchange):
    programs, contract = exchange
    for rank, program in enumerate(programs):
        for k in range(len(program)):
            spoilt = [list(p) for p in programs]
            del spoilt[rank][k]
            with pytest.raises(ScheduleError):
                verify(spoilt, contract)


def test_a_round_dropped_everywhere_is_caught(exchange):
    programs, contract = exchange
    for k in range(3):
        with pytest.raises(ScheduleError):
            verify([p[:k] + p[k + 1 :] for p in programs[:4]] + programs[4:], contract)


def test_an_overlap_inside_a_round_is_caught(exchange):
    programs, contract = exchange

    def overlapping(r):
        (c,) = (c for c in r.comm if isinstance(c, Recv))
        return replace(r, comm=(*r.comm, Send(1, c.data)))

    with pytest.raises(Overlap, match=r"rank 0, round 1: .* overlaps"):
        verify(spoil(programs, 0, 1, overlapping), contract)


def test_reading_one_span_twice_is_no_overlap():
    whole = (Span("send", 0, 2),)
    programs = [
        [Round((Send(1, whole), Send(2, whole)))],
        [Round((Recv(0, (Span("recv", 0, 2),)),))],
        [Round((Recv(0, (Span("recv", 0, 2),)),))],
    ]
    memory = [{"send": marks(0, 2), "recv": blank(2)} for _ in range(3)]
    run(programs, memory)
    assert (memory[2]["recv"] == marks(0, 2)).all()


def test_leaning_on_buffered_sends_is_a_deadlock():
    mine, other = (Span("send", 0, 1),), (Span("recv", 0, 1),)
    programs = [
        [Round((Send(1 - r, mine),)), Round((Recv(1 - r, other),))] for r in (0, 1)
    ]
    memory = [{"send": marks(r, 1), "recv": blank(1)} for r in (0, 1)]
    with pytest.raises(Deadlock, match="rank 0, round 0 waits to send 1 to rank 1"):
        run(programs, memory)


def test_a_circle_of_waiting_ranks_is_a_deadlock():
    programs = [[Round((Recv((r + 1) % 3, (Span("recv", 0, 1),)),))] for r in range(3)]
    with pytest.raises(Deadlock, match="rank 2, round 0 waits for 1 from rank 0"):
        run(programs, [{"recv": blank(1)} for _ in range(3)])


def test_ends_of_different_size_are_caught():
    programs = [
        [Round((Send(1, (Span("send", 0, 2),)),))],
        [Round((Recv(0, (Span("recv", 0, 1),)),))],
    ]
    memory = [{"send": marks(0, 2)}, {"recv": blank(1)}]
    with pytest.raises(BadMessage, match="sends 2 elements to rank 1, round 0, which"):
        run(programs, memory)


def test_a_message_to_nobody_is_caught():
    with pytest.raises(BadMessage, match="there is no rank 7"):
        run([[Round((Send(7, (Span("send", 0, 1),)),))]], [{"send": marks(0, 1)}])


def chain_reduce(p, n, order):
    """Each rank combines the data from the rank before with its own."""
    own, room = Span("send", 0, n), Span("tmp", 0, n)
    programs = []
    for r in range(p):
        rounds = []
        if r > 0:
            rounds.append(Round((Recv(r - 1, (room,)),), order(room, own)))
        if r < p - 1:
            rounds.append(Round((Send(r + 1, (own,)),)))
        else:
            rounds.append(Round((), (Copy(own, Span("recv", 0, n)),)))
        programs.append(rounds)
    return programs


def test_a_reduction_in_rank_order_is_right():
    steps = chain_reduce(5, 3, lambda came, own: (Reduce(came, own),))
    verify(steps, reduce(5, 3, root=4))


def test_a_reduction_in_the_wrong_order_is_caught():
    def wrong(came, own):
        return Reduce(own, came), Copy(came, own)

    with pytest.raises(BadOrder, match="rank 1, round 0"):
        verify(chain_reduce(5, 3, wrong), reduce(5, 3, root=4))


def test_a_rank_counted_twice_is_caught():
    def twice(came, own):
        return Reduce(came, own), Reduce(came, own)

    with pytest.raises(BadOrder):
        verify(chain_reduce(3, 2, twice), reduce(3, 2, root=2))


def test_a_missing_contribution_is_caught():
    with pytest.raises(WrongResult, match="holds element 0 of rank 2, must hold"):
        verify(chain_reduce(3, 2, lambda came, own: ()), reduce(3, 2, root=2))


def test_nothing_to_do_is_right():
    verify([[]], allgatherv([4]))
    verify([[], []], Contract(lambda r: {}, lambda r: {}))
