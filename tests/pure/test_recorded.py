"""Timelines of real runs, from the logs of their ranks."""

from __future__ import annotations

import pytest

from isthmus.cost.recorded import Log, MessageEnd as End, timeline
from isthmus.export import chrome

SEND, RECV = True, False


def relay() -> list[Log]:
    """Rank 0 sends 8 bytes to 1, and 1 passes them on to 2; the clock begins at 100."""
    return [
        Log(100.0, 101.0, (End(SEND, 1, 8, 0, 100.5, 101.0),)),
        Log(
            100.0,
            104.0,
            (
                End(RECV, 0, 8, 0, 100.0, 102.0),
                End(SEND, 2, 8, 1, 102.5, 104.0),
            ),
        ),
        Log(100.25, 105.0, (End(RECV, 1, 8, 0, 100.25, 105.0),)),
    ]


def test_a_message_lasts_until_its_receiver_has_it():
    run_timeline = timeline(relay())
    e = run_timeline.events
    assert e.source.tolist() == [0, 1] and e.target.tolist() == [1, 2]
    assert e.start.tolist() == [0.5, 2.5]
    assert e.end.tolist() == [2.0, 5.0]  # not when the eager send was complete
    assert run_timeline.time == 5.0 and run_timeline.finish.tolist() == [1.0, 4.0, 5.0]
    assert run_timeline.sent.tolist() == [
        8,
        8,
        0,
    ] and run_timeline.received.tolist() == [0, 8, 8]
    assert run_timeline.sending.tolist() == [1.5, 2.5, 0] and run_timeline.rounds == 2


def test_a_message_does_not_begin_before_its_receiver_is_ready():
    logs = relay()
    logs[2] = Log(103.0, 105.0, (End(RECV, 1, 8, 0, 103.5, 105.0),))
    assert timeline(logs).events.start.tolist() == [0.5, 3.5]


def test_messages_of_a_pair_match_in_their_order():
    sends = tuple(End(SEND, 1, size, size, 0.0, 9.0) for size in (1, 2, 3))
    recvs = tuple(End(RECV, 0, k, k, 0.0, float(k)) for k in (1, 2, 3))
    e = timeline([Log(0.0, 9.0, sends), Log(0.0, 9.0, recvs)]).events
    assert e.size.tolist() == [1, 2, 3] and e.end.tolist() == [1.0, 2.0, 3.0]


def test_two_at_once_keep_a_port_busy_once():
    sends = (End(SEND, 1, 4, 0, 0.0, 2.0), End(SEND, 1, 4, 0, 1.0, 3.0))
    recvs = (End(RECV, 0, 4, 0, 0.0, 2.0), End(RECV, 0, 4, 0, 0.0, 3.0))
    run_timeline = timeline([Log(0.0, 3.0, sends), Log(0.0, 3.0, recvs)])
    assert run_timeline.sending.tolist() == [
        3.0,
        0.0,
    ] and run_timeline.receiving.tolist() == [0, 3.0]
    assert run_timeline.idle == pytest.approx(0.5)


def test_a_message_without_its_sender_is_refused():
    with pytest.raises(ValueError, match="nobody sent"):
        timeline([Log(0.0, 1.0, ()), Log(0.0, 1.0, (End(RECV, 0, 4, 0, 0.0, 1.0),))])


def test_the_path_goes_back_to_what_the_sender_waited_for():
    assert timeline(relay()).critical_path() == [0, 1]
    nothing = timeline([Log(0.0, 1.0, ())] * 2)
    assert nothing.critical_path() == [] and nothing.time == 1.0


def test_it_is_drawn_and_traced_as_a_simulated_one():
    pytest.importorskip("matplotlib")
    from isthmus.draw.gantt import gantts

    run_timeline = timeline(relay())
    picture = gantts({"recorded": run_timeline, "again": run_timeline})
    assert len(picture.axes) == 2
    assert {axes.get_xlim() for axes in picture.axes} == {(0.0, 5.0)}
    words = [text.get_text() for text in picture.texts]
    assert "recorded" in words and "again" in words
    slices = [x for x in chrome.trace(run_timeline)["traceEvents"] if x["ph"] == "X"]
    assert len(slices) == 4
