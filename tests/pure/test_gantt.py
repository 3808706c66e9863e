"""The Gantt picture: busy ports by time, and distinguishable colours."""

from __future__ import annotations

import io
import sys
from itertools import pairwise

import numpy as np
import pytest

from isthmus import schedule
from isthmus.cost.machine import AlphaBeta, Level, Machine, Memory
from isthmus.cost.timeline import MEETING
from isthmus.draw import svg

pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgb

from isthmus.draw.gantt import gantt
from isthmus.draw.gantt_rows import busy, stays
from isthmus.draw.palette import IDLE_COLOUR, RECEIVE_COLOUR, SEND_COLOUR, WORK_COLOUR

MODEL = AlphaBeta(2e-6, 1 / 12e9)


def recorded(algorithm: str, p: int, q: int, k: int = 10_000):
    example = schedule("inter_allgather", algorithm, p=p, q=q, ka=k, kb=k)
    return example.simulate(MODEL, record=True)


def words(picture) -> list[str]:
    axes = picture.axes[0]
    said = [*picture.texts, *axes.texts, *axes.get_yticklabels(), axes.xaxis.label]
    said += picture.legends[0].get_texts()
    return [text.get_text() for text in said]


def test_ranks_groups_units_and_shares_are_written():
    line = recorded("segmented+ring", 6, 2)
    said = words(gantt(line, (6, 2), "inter_allgather, segmented+ring"))
    assert {"a0", "a5", "b0", "b1", "group A", "group B", "time [µs]"} <= {*said}
    assert {"idle", "critical path", "inter_allgather, segmented+ring"} <= {*said}
    assert any(f"ports idle {line.idle:.0%}" in text for text in said)


def test_names_are_thinned_out_and_do_not_overlap():
    picture = gantt(recorded("direct", 32, 32), (32, 32))
    axes = picture.axes[0]
    inches = picture.get_figheight() * axes.get_position().height
    low, high = axes.get_ylim()
    ticks = np.diff(axes.get_yticks()) * inches / (high - low)
    assert (abs(ticks) > 0.13).all() and 20 < len(ticks) < 64


@pytest.mark.parametrize("n, k", [(1, 1), (1, 0), (128, 100)])
def test_sizes_at_the_edge_can_be_drawn(n, k):
    file = io.BytesIO()
    gantt(recorded("direct", n, n, k), (n, n)).savefig(file, format="png")
    assert len(file.getvalue()) > 1000


def test_one_group_is_not_called_a():
    example = schedule("allgatherv", "ring", counts=[3, 4])
    assert "r1" in words(gantt(example.simulate(MODEL, record=True)))


@pytest.mark.parametrize("name", ["segmented+ring", "leader", "direct", "balanced"])
def test_stretches_add_up_to_the_time_of_the_ports(name):
    line = recorded(name, 5, 3)
    rank, start, end, level = busy(line.events, line.time)
    spent = np.bincount(rank, (end - start) * level, line.n)
    assert spent == pytest.approx(line.sending + line.receiving, rel=1e-6)


def test_the_path_goes_along_ranks_of_its_messages():
    line = recorded("root_gathering_sequential", 6, 3)
    e, path = line.events, line.critical_path()
    ends = [{int(e.source[i]), int(e.target[i])} for i in path]
    at = stays(ends, int(e.target[path[0]]))
    assert all(r in (e.source[i], e.target[i]) for i, r in zip(path, at, strict=True))
    for before, r in zip(path, at[1:], strict=False):
        assert r in (e.source[before], e.target[before])


NODES = (0, 1, 0, 2, 1, 0)


def on_nodes(algorithm, meeting=1e-6, nodes=NODES):
    """An allgatherv on nodes with slow memory."""
    levels = Level(len(nodes), 5e-7, 1 / 8e9), Level(None, 2e-6, 1 / 12e9)
    model = Machine(levels, placement=nodes, memory=Memory(1e-10, 2e-11, meeting))
    example = schedule(
        "allgatherv", algorithm, counts=[30_000] * len(nodes), nodes=nodes
    )
    return example.simulate(model, record=True)


def test_copies_and_meetings_are_drawn_and_named():
    picture = gantt(on_nodes("node_aware"), nodes=NODES)
    said = words(picture)
    assert {"copies, reduces", "waits for its node", "node 0", "r5"} <= {*said}
    assert not any(text.startswith("group") for text in said)
    colours = {to_rgb(c.get_facecolor()[0]) for c in picture.axes[0].collections}
    assert to_rgb(WORK_COLOUR) in colours
    # rows are in the order of nodes
    ticks = picture.axes[0].get_yticklabels()
    assert [t.get_text() for t in ticks] == ["r0", "r2", "r5", "r1", "r4", "r3"]


def test_without_work_there_is_no_more_to_explain():
    said = words(gantt(on_nodes("ring"), nodes=NODES))
    assert "copies, reduces" not in said and "waits for its node" not in said
    assert "sends (upper half)" in said


def test_many_ranks_on_nodes_can_be_drawn():
    nodes = tuple(r % 3 for r in range(36))
    picture = gantt(on_nodes("node_aware", nodes=nodes), nodes=nodes)
    picture.savefig(io.BytesIO(), format="png")
    assert "sends and receives" in words(picture)


@pytest.mark.parametrize("meeting", [0.0, 1e-6])
@pytest.mark.parametrize(
    "algorithm", ["node_aware", "node_aware(size=20000)", "node_aware(lanes=3)"]
)
def test_the_path_through_work_and_meetings_has_no_gaps(algorithm, meeting):
    line = on_nodes(algorithm, meeting)
    legs = line.critical_legs()
    assert legs[0].start == 0 and legs[-1].end == pytest.approx(line.time)
    for before, here in pairwise(legs):
        assert before.end == pytest.approx(here.start, rel=1e-9)
    # nobody on the path waits for longer than a meeting takes
    w = line.work
    is_meeting = w.kind == MEETING
    long = (w.end - w.start)[is_meeting] > meeting * (1 + 1e-6)
    waits = set(zip(w.rank[is_meeting][long], w.start[is_meeting][long], strict=True))
    assert waits and not waits & {(leg.ranks[0], leg.start) for leg in legs}
    e = line.events
    messages = [leg for leg in legs if leg.ranks[0] != leg.ranks[1]]
    assert [(e.source[i], e.target[i]) for i in line.critical_path()] == [
        leg.ranks for leg in messages
    ]


def test_what_cannot_be_drawn_is_said():
    example = schedule("inter_allgather", "direct", p=2, q=1, ka=1, kb=1)
    with pytest.raises(ValueError, match="record=True"):
        gantt(example.simulate(MODEL))
    with pytest.raises(ValueError, match="the 3 ranks"):
        gantt(example.simulate(MODEL, record=True), (2, 2))
    with pytest.raises(ValueError, match="nodes of 2 ranks"):
        gantt(example.simulate(MODEL, record=True), (2, 1), nodes=(0, 0))


#: Machado, Oliveira, Fernandes 2009, full severity
SEEN = {
    "protanopia": "0.152286 1.052583 -0.204868 0.114503 0.786281 0.099216 "
    "-0.003882 -0.048116 1.051998",
    "deuteranopia": "0.367322 0.860646 -0.227968 0.280085 0.672501 0.047413 "
    "-0.011820 0.042940 0.968881",
    "tritanopia": "1.255528 -0.076749 -0.178779 -0.078411 0.930809 0.147602 "
    "0.004733 0.691367 0.303900",
    "everyone": "1 0 0 0 1 0 0 0 1",
}


def luminance(colour: str, matrix: np.ndarray) -> float:
    """How light someone sees a colour."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(matrix @ linear, 0, 1)
    return float(seen @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("matrix", SEEN.values(), ids=SEEN)
def test_colours_survive_colour_blindness(matrix):
    how = np.array(matrix.split(), float).reshape(3, 3)
    idle, receive, send = (
        luminance(c, how) + 0.05 for c in (IDLE_COLOUR, RECEIVE_COLOUR, SEND_COLOUR)
    )
    assert idle / receive > 2.8 and idle / send > 4.5 and receive / send > 1.5
    works = luminance(WORK_COLOUR, how) + 0.05
    assert idle / works > 1.6 and works / receive > 1.6


def test_a_notebook_gets_svg():
    example = schedule("inter_allgather", "segmented", p=3, q=2, ka=2, kb=2)
    text = svg.svg(example)
    assert text is not None and "<svg" in text and text == svg.svg(example)


def test_a_notebook_gets_no_picture_that_takes_long():
    many = schedule("inter_allgather", "segmented", p=60, q=60, ka=1, kb=1)
    large = schedule("inter_allgather", "segmented", p=4, q=4, ka=10**5, kb=10**5)
    assert svg.svg(many) is None and svg.svg(large) is None


def test_without_matplotlib_a_notebook_gets_text(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    example = schedule("inter_allgather", "direct", p=1, q=1, ka=1, kb=1)
    assert svg.svg(example) is None
