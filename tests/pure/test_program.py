"""Composing and reading programs."""

from __future__ import annotations

import numpy as np

from isthmus.schedules.ir import Copy, Pieces, Recv, Round, Send, Span
from isthmus.schedules.program import (
    buffer_size,
    map_spans,
    merge_rounds,
    per_rank,
    shift,
    then,
    trim,
)


def hello(to, n=1):
    yield Round((Send(to, (Span("send", 0, n),)),))


def test_then_is_one_after_the_other():
    assert [r.comm[0].to for r in then(hello(1), hello(2))] == [1, 2]


def test_beside_joins_rounds_and_lets_the_longer_go_on():
    joined = list(merge_rounds(then(hello(1), hello(2)), hello(3)))
    assert [[c.to for c in r.comm] for r in joined] == [[1, 3], [2]]


def test_shift_renumbers_peers():
    program = iter([Round((Send(1, ()), Recv(2, ())))])
    (r,) = shift(program, 10)
    assert (r.comm[0].to, r.comm[1].frm) == (11, 12)


def test_map_spans_moves_messages_elsewhere():
    (r,) = map_spans(
        hello(1, 4), lambda s: (Span("tmp", s.start, 1), Span("tmp", 9, 3))
    )
    assert [(s.buf, s.size) for s in r.comm[0].data] == [("tmp", 1), ("tmp", 3)]


def test_a_batch_is_taken_apart_and_what_is_empty_left_out():
    batch = Round(
        (
            Send(np.array([1, 2]), (Span("send", 0, np.array([3, 0])),)),
            Recv(0, (Span("recv", 0, 4),), np.array([False, True])),
        ),
        (Copy(Span("send", 0, 0), Span("tmp", 0, 0)),),
    )
    (first,), (second,) = per_rank([batch], 2)
    assert first == Round((Send(1, (Span("send", 0, 3),)),))
    assert second == Round((Recv(0, (Span("recv", 0, 4),)),))
    assert trim([Round()]) == []


def test_the_size_of_a_buffer_is_the_room_that_is_needed():
    rounds = [Round((), (Copy(Span("send", 0, 2), Span("tmp", 5, 2)),))]
    assert (buffer_size(rounds, "tmp"), buffer_size(rounds, "recv")) == (7, 0)


def test_pieces_are_the_same_message_as_a_tuple_of_spans():
    start, size = np.array([[0, 5], [8, 9]]), np.array([[2, 0], [1, 3]])
    peers = np.array([1, 0])
    batch = Round((Send(peers, Pieces("recv", start, size)),))
    spans = tuple(Span("recv", a, n) for a, n in zip(start, size, strict=True))
    assert per_rank([batch], 2) == per_rank(
        [Round((Send(np.array([1, 0]), spans),))], 2
    )
    alone = Round((Send(1, Pieces("recv", start[:, 0], size[:, 0])),))
    assert trim([alone]) == per_rank([batch], 2)[0]
    assert buffer_size([alone], "recv") == 9 and buffer_size([alone], "tmp") == 0


def test_trim_takes_plain_and_numpy_numbers_alike():
    """Plain messages stay; messages with numpy numbers become plain."""
    zero, two = np.int64(0), np.int64(2)
    span, empty = Span("recv", 2, 5), Span("recv", 2, 0)
    plain = Send(1, (span,))
    comm = (
        plain,
        Send(1, (span,), False),
        Send(1, (empty,)),
        Recv(two, (Span("recv", two, 5),), np.bool_(True)),
        Recv(two, (Span("recv", two, zero),)),
        Recv(2, (span, empty)),
    )
    (left,) = trim([Round(comm), Round((Send(1, (empty,)),))])
    assert left.comm == (plain, Recv(2, (span,)), Recv(2, (span,)))
    assert left.comm[0] is plain and type(left.comm[1].frm) is int
    assert [left] == per_rank([Round(comm)], 1)[0]


def test_pieces_of_one_rank_are_spans_of_plain_ints():
    (span,) = Pieces("recv", np.array([4]), np.array([2]))
    assert type(span.start) is int and type(span.size) is int
