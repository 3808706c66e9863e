"""The LogGOPS model: LogGOPSim's own numbers, closed forms; and GOAL text."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import isthmus
from isthmus.cost.alphabeta import AlphaBeta
from isthmus.cost.loggops import LogGOPS
from isthmus.export.goal import goal, write_goal
from isthmus.schedules.ir import Copy, Recv, Reduce, Round, Send, Span
from isthmus.schedules.schedule import Schedule
from isthmus.verify.errors import BadMessage, Deadlock

FILE = Path(__file__).parent / "golden" / "loggops.json"
GOLDEN = json.loads(FILE.read_text())
MODEL = LogGOPS(L=2500, o=1500, g=1000, G=6)
RENDEZVOUS = LogGOPS(L=2500, o=1500, g=1000, G=6, S=0)


def handmade(*ranks):
    """A schedule of the rounds of every rank."""
    return Schedule(
        "none",
        "handmade",
        None,
        lambda r: iter(ranks[r]),
        tuple(range(r, r + 1) for r in range(len(ranks))),
    )


def data(size, buf="recv"):
    return (Span(buf, 0, size),)


def tree(n, size):
    """A binomial reduction to rank 0: messages and calculations in turn."""

    def rounds(r):
        bit = 1
        while bit < n:
            if r & bit:
                yield Round((Send(r - bit, data(size)),))
                return
            if r + bit < n:
                then = Reduce(Span("tmp", 0, size), Span("recv", 0, size))
                yield Round((Recv(r + bit, data(size, "tmp")),), (then,))
            bit *= 2

    return handmade(*(list(rounds(r)) for r in range(n)))


def built(case):
    """The schedule of a golden case."""
    if case["collective"] == "tree":
        return tree(**case["sizes"])
    return isthmus.schedule(case["collective"], case["algorithm"], **case["sizes"])


def nanoseconds(times):
    return np.rint(np.asarray(times) * 1e9).astype(int).tolist()


def named(case):
    return f"{case['collective']}-{case['algorithm']}-{built(case).n}"


@pytest.mark.parametrize("machine", GOLDEN["machines"])
@pytest.mark.parametrize("case", GOLDEN["cases"], ids=named)
def test_every_rank_ends_when_loggopsim_says(case, machine):
    model = LogGOPS(**GOLDEN["machines"][machine])
    finish = nanoseconds(built(case).simulate(model).finish)
    finish_times = case["finish"][machine]
    assert finish_times == (finish if isinstance(finish_times, list) else max(finish))


def loggopsim(case, machine):
    """What the program itself says: each rank's end, above 16 ranks the latest."""
    values = GOLDEN["machines"][machine]
    flags = [x for key in "LogGOS" for x in (f"-{key}", str(values[key]))]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "x.goal").write_text(goal(built(case), gamma=values["gamma"]))
        run = {"cwd": folder, "check": True, "capture_output": True, "text": True}
        subprocess.run(["txt2bin", "-i", "x.goal", "-o", "x.bin"], **run)
        out = subprocess.run(["LogGOPSim", "-f", "x.bin", *flags], **run).stdout
    hosts = [int(time) for time in re.findall(r"^Host \d+: (\d+)", out, re.M)]
    return hosts or int(re.search(r"finishing time at host \d+: (\d+)", out)[1])


@pytest.mark.skipif(shutil.which("LogGOPSim") is None, reason="needs LogGOPSim")
@pytest.mark.parametrize("machine", GOLDEN["machines"])
def test_loggopsim_still_says_so(machine):
    for case in GOLDEN["cases"]:
        assert loggopsim(case, machine) == case["finish"][machine]


def test_golden_rounds_have_an_order():
    for case in GOLDEN["cases"]:
        rounds = [r for mine in built(case).all_ranks() for r in mine]
        assert max(len(r.comm) for r in rounds) <= 16


def one(size, p=1, q=1):
    """Every one of p sends to every one of q."""
    return isthmus.schedule("inter_allgather", "direct", p=p, q=q, ka=size, kb=0)


@pytest.mark.parametrize("size", [1, 2, 1000, 10**9])
@pytest.mark.parametrize("model", [MODEL, RENDEZVOUS])
def test_a_message_alone(size, model):
    line = one(size).simulate(model, record=True)
    alone = 2 * model.o + model.L + (size - 1) * model.G
    done = model.o if size <= model.S else model.o + model.L
    assert nanoseconds(line.finish) == [done, alone]
    assert nanoseconds(line.events.start) == [0]
    assert nanoseconds(line.events.end) == [alone]
    assert line.time == alone / 1e9


@pytest.mark.parametrize("O", [0, 2, 9])
def test_overhead_per_byte(O):  # noqa: E741
    model = LogGOPS(2500, 1500, 1000, 6, O)
    finish = one(100).simulate(model).finish
    taken = 2 * 1500 + 2500 + 99 * max(O, 6)
    assert nanoseconds(finish) == [1500 + 99 * O, taken]


@pytest.mark.parametrize("g", [0, 1000, 4000])
def test_one_rank_sends_one_after_the_other(g):
    model = LogGOPS(2500, 1500, g, 6)
    line = one(100, q=5).simulate(model, record=True)
    step = max(1500, g + 99 * 6)
    assert nanoseconds(line.events.start) == [i * step for i in range(5)]
    assert nanoseconds([line.time]) == [4 * step + 5500 + 99 * 6]


@pytest.mark.parametrize("g", [0, 1000, 4000])
@pytest.mark.parametrize("k", [2, 20, 100])
def test_one_rank_takes_in_one_after_the_other(g, k):
    model = LogGOPS(2500, 1500, g, 6)
    line = one(100, p=k).simulate(model)
    step = max(1500, g) + 99 * 6
    assert nanoseconds([line.time]) == [(k - 1) * step + 5500 + 99 * 6]


def late(size):
    """Rank 0 sends and sends again; rank 1 looks for both after another message."""
    return handmade(
        [Round((Send(1, data(size)),)), Round((Send(1, data(size)),))],
        [Round((Recv(2, data(1)),)), *[Round((Recv(0, data(size)),))] * 2],
        [Round((Recv(3, data(9000)),)), Round((Send(1, data(1)),))],
        [Round((Send(2, data(9000)),))],
    )


def test_a_long_message_waits_for_its_receive():
    starts = {}
    for model in (MODEL, LogGOPS(2500, 1500, 1000, 6, S=99)):
        events = late(100).simulate(model, record=True).events
        mine = nanoseconds(events.start[events.source == 0])
        starts[model.S] = mine
    matched = 5500 + 8999 * 6 + 4000 + 1500
    assert starts == {65535: [0, 1000 + 99 * 6], 99: [0, matched]}


def test_the_unit_is_the_bytes_of_an_element():
    wide = LogGOPS(2500, 1500, 1000, 6, gamma=2, unit=8)
    narrow = LogGOPS(2500, 1500, 1000, 6, gamma=2)
    assert tree(5, 30).simulate(wide).time == tree(5, 240).simulate(narrow).time


def test_fractions_of_a_nanosecond_are_times_too():
    line = one(1001).simulate(LogGOPS(L=1000.5, o=0, g=0, G=0.25))
    assert line.time == 1250.5e-9


counts = st.lists(st.integers(0, 300), min_size=1, max_size=7)
time = st.integers(0, 4000)
names = st.sampled_from(["direct", "segmented", "balanced", "leader", "merged"])


@settings(max_examples=60)
@given(names, counts, counts, time, time, time, st.sampled_from([0, 50, 65535]))
def test_what_holds_on_every_machine(name, a, b, L, o, g, S):
    schedule = isthmus.schedule("inter_allgatherv", name, a=a, b=b)
    line = schedule.simulate(LogGOPS(L, o, g, 3, S=S), record=True)
    other = schedule.simulate(AlphaBeta(1.0, 1.0))
    for field in ("sent", "received", "messages"):
        assert np.array_equal(getattr(line, field), getattr(other, field))
    assert line.rounds == other.rounds
    assert 0 <= line.idle <= 1
    e = line.events
    lasts = np.rint((e.end - e.start) * 1e9)
    assert np.all(lasts >= 2 * o + L + (e.size - 1) * 3)
    assert line.time >= e.end.max(initial=0.0)


def test_without_messages_there_is_no_time():
    line = one(0, 3, 4).simulate(MODEL, record=True)
    assert line.time == 0 and line.rounds == 0 and len(line.events) == 0
    assert line.sent.tolist() == [0] * 7 and line.idle == 0


def test_a_negative_parameter_is_named():
    with pytest.raises(ValueError, match="g = -1: must be at least 0"):
        LogGOPS(1, 1, -1, 1)


def test_bad_schedules_are_refused():
    send, recv = Round((Send(1, data(4)),)), Round((Recv(0, data(4)),))
    with pytest.raises(Deadlock, match=r"ranks \[1\] wait"):
        handmade([], [recv]).simulate(MODEL)
    with pytest.raises(BadMessage, match=r"ranks \[1\] get"):
        handmade([send], []).simulate(MODEL)
    with pytest.raises(BadMessage, match="expects 5 bytes from rank 0, gets 4"):
        handmade([send], [Round((Recv(0, data(5)),))]).simulate(MODEL)
    with pytest.raises(ValueError, match="has no time"):
        isthmus.schedule("allgatherv", "library", counts=[1, 2]).simulate(MODEL)


def test_goal_text():
    send, recv = Round((Send(1, data(4)),)), Round((Recv(0, data(4)),))
    reduce = Reduce(Span("recv", 0, 4), Span("tmp", 0, 4))
    copy = Round((), (Copy(Span("recv", 0, 4), Span("tmp", 0, 4)),))
    two = Round((*send.comm, Send(2, data(3))))
    example = handmade(
        [two, send], [recv, copy, Round(recv.comm, (reduce,))], [Round(), recv], []
    )
    assert goal(example, unit=2, gamma=3) == (
        "num_ranks 4\n"
        "\nrank 0 {\n"
        "l0: send 8b to 1 tag 0\n"
        "l1: send 6b to 2 tag 0\n"
        "l2: send 8b to 1 tag 0\n"
        "l2 requires l0\n"
        "l2 requires l1\n"
        "}\n"
        "\nrank 1 {\n"
        "l0: recv 8b from 0 tag 0\n"
        "l1: recv 8b from 0 tag 0\n"
        "l1 requires l0\n"
        "l2: calc 24\n"
        "l2 requires l1\n"
        "}\n"
        "\nrank 2 {\n"
        "l0: recv 8b from 0 tag 0\n"
        "}\n"
        "\nrank 3 {\n"
        "}\n"
    )


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=named)
def test_goal_has_every_message_at_both_ends(case):
    example = built(case)
    text = goal(example)
    file = io.StringIO()
    write_goal(example, file)
    assert file.getvalue() == text
    line = example.simulate(AlphaBeta(0, 1)) if case["collective"] != "tree" else None
    for verb in ("send", "recv"):
        sizes = [int(s) for s in re.findall(rf"^l\d+: {verb} (\d+)b", text, re.M)]
        assert 0 not in sizes
        assert line is None or sum(sizes) == line.sent.sum()


def test_goal_of_the_library_is_refused():
    with pytest.raises(ValueError, match="cannot be exported"):
        goal(isthmus.schedule("allgatherv", "library", counts=[1, 2]))


def remake():
    """Ask LogGOPSim for all times anew."""
    for case in GOLDEN["cases"]:
        case["finish"] = {name: loggopsim(case, name) for name in GOLDEN["machines"]}
    pairs = GOLDEN["machines"].items()
    machines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in pairs)
    cases = ",\n".join(map(json.dumps, GOLDEN["cases"]))
    FILE.write_text(
        f'{{\n"machines": {{\n{machines}\n}},\n"cases": [\n{cases}\n]\n}}\n'
    )


if __name__ == "__main__":
    remake()
