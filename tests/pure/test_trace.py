"""The trace of a timeline, in the format of viewers of trace events."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise

import pytest

from isthmus import schedule
from isthmus.cost.machine import AlphaBeta, Level, Machine, Memory
from isthmus.export.chrome import trace, write

MODEL = AlphaBeta(2e-6, 1 / 12e9)
SCHEDULE = schedule("inter_allgather", "segmented+ring", p=6, q=2, ka=600, kb=600)


@pytest.fixture
def line():
    return SCHEDULE.simulate(MODEL, record=True)


@pytest.fixture
def events(line, tmp_path):
    path = tmp_path / "new" / "trace.json"
    write(path, line, (6, 2))
    return json.loads(path.read_text())["traceEvents"]


def events_of_kind(events, kind):
    return [event for event in events if event["ph"] == kind]


def test_groups_are_processes_and_ports_are_threads(events):
    named = events_of_kind(events, "M")
    groups = {e["pid"]: e["args"]["name"] for e in named if e["name"] == "process_name"}
    assert groups == {0: "group A", 1: "group B"}
    threads = {e["tid"]: e for e in named if e["name"] == "thread_name"}
    assert len(threads) == 16
    assert threads[13]["args"]["name"] == "rank 6 receives" and threads[13]["pid"] == 1


def test_every_message_is_a_slice_at_both_ends(events, line):
    slices = events_of_kind(events, "X")
    assert len(slices) == 2 * len(line.events)
    for event in slices:
        assert event["dur"] > 0 and event["ts"] >= 0
        assert {"bytes", "peer", "round"} == {*event["args"]}
        assert event["pid"] == (event["tid"] >= 12)
    assert max(e["ts"] + e["dur"] for e in slices) == pytest.approx(line.time * 1e6)
    sent = sum(e["args"]["bytes"] for e in slices if e["cat"] == "sends")
    assert sent == line.sent.sum()


def test_slices_of_a_port_do_not_overlap(events):
    ports = defaultdict(list)
    for event in events_of_kind(events, "X"):
        ports[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for slices in ports.values():
        slices.sort()
        for (_, end), (start, _) in pairwise(slices):
            assert end <= start + 1e-6


def test_arrows_go_from_slice_to_slice(events):
    slices = events_of_kind(events, "X")
    starts, ends = ({e["id"]: e for e in events_of_kind(events, kind)} for kind in "sf")
    assert starts.keys() == ends.keys() and len(starts) == len(slices) / 2
    for arrow in (*starts.values(), *ends.values()):
        around = [
            e
            for e in slices
            if e["tid"] == arrow["tid"] and e["ts"] < arrow["ts"] < e["ts"] + e["dur"]
        ]
        assert len(around) == 1 and around[0]["pid"] == arrow["pid"]
    assert all(e["bp"] == "e" for e in ends.values())
    assert all(starts[i]["ts"] < ends[i]["ts"] for i in starts)


def test_copies_and_meetings_have_a_thread_of_their_own():
    nodes = (0, 1, 0, 1)
    levels = Level(2, 5e-7, 1 / 8e9), Level(None, 2e-6, 1 / 12e9)
    model = Machine(levels, placement=nodes, memory=Memory(1e-10, 2e-11, 1e-6))
    sizes = {"p": 2, "q": 2, "ka": 500, "kb": 500}
    example = schedule("inter_allgather", "node_aware", **sizes, nodes=nodes)
    line = example.simulate(model, record=True)
    trace_events = trace(line, (2, 2), nodes)["traceEvents"]
    named = [e for e in events_of_kind(trace_events, "M") if e["name"] == "thread_name"]
    names = {e["tid"]: e["args"]["name"] for e in named}
    assert names[3 * 2 + 2] == "rank 2 (node 0) works" and len(names) == 12
    work = [e for e in events_of_kind(trace_events, "X") if e["cat"] == "works"]
    assert {e["name"] for e in work} == {"copies, reduces", "waits for its node"}
    assert len(work) == len(line.work) and all(e["tid"] % 3 == 2 for e in work)
    assert all(e["pid"] == (e["tid"] >= 6) for e in work)
    sends = [e for e in events_of_kind(trace_events, "X") if e["cat"] == "sends"]
    assert len(sends) == len(line.events) and all(e["tid"] % 3 == 0 for e in sends)


def test_what_has_no_messages_has_no_trace():
    with pytest.raises(ValueError, match="record=True"):
        trace(SCHEDULE.simulate(MODEL))
    with pytest.raises(ValueError, match="the 8 ranks"):
        trace(SCHEDULE.simulate(MODEL, record=True), (4, 2))
