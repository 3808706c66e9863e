"""Pictures show the messages and data of schedules."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest

import isthmus
from isthmus import schedule
from isthmus.collectives import between
from isthmus.collectives.records import COLLECTIVES
from isthmus.draw.palette import groups_of
from isthmus.draw.sheet import runs
from isthmus.draw.steps import steps
from isthmus.schedules.ir import Round
from isthmus.schedules.registry import algorithms
from isthmus.schedules.schedule import Schedule
from isthmus.verify.contracts import Contract
from isthmus.verify.errors import Deadlock
from isthmus.verify.marks import blank

pytest.importorskip("matplotlib")

from matplotlib import rc_context

from isthmus.draw import circle, palette, speed
from isthmus.draw.schedule import MAX_STEP_COLUMNS, figure

ROOTED = {
    "inter_bcast": {"q": 5, "m": 6},
    "inter_reduce": {"q": 5, "m": 6},
    "inter_gatherv": {"counts": [2, 0, 3, 4]},
    "inter_scatterv": {"counts": [2, 0, 3, 4]},
}
EXAMPLES = {record_name: record.example for record_name, record in COLLECTIVES.items()}
OTHERS = {
    record_name: EXAMPLES[record_name]
    for record_name in [*(x.name for x in between.BETWEEN_RECORDS), "reduce_scatter"]
    if "allgather" not in record_name
}
UNEVEN = {"a": [5, 0, 9, 2, 1, 7], "b": [10, 3]}
#: nodes of ranks that are neither consecutive nor of one group only
SCATTERED = ["x", "y", "x", "z", "y", "x", "x", "y"]


def words(picture) -> list[str]:
    """All text in a picture."""
    return [text.get_text() for text in picture.axes[0].texts]


def schedules() -> list[Schedule]:
    example = [
        schedule("inter_allgatherv", entry.name + tail, **UNEVEN)
        for entry in algorithms("inter_allgatherv")
        for tail in ("", "+ring", "+library")
        if (entry.staged or not tail) and entry.name + tail != "merged+library"
    ]
    example += [
        schedule("allgatherv", entry.name, counts=[2, 0, 3, 4])
        for entry in algorithms("allgatherv")
    ]
    example += [
        schedule(collective, entry.name, p=6, m=5, root=4)
        for collective in ("bcast", "reduce")
        for entry in algorithms(collective)
    ]
    example += [
        schedule(collective, entry.name, **sizes)
        for collective, sizes in {**OTHERS, **ROOTED}.items()
        for entry in algorithms(collective)
    ]
    return example


@pytest.mark.parametrize(
    "example", schedules(), ids=lambda s: f"{s.collective}-{s.algorithm}"
)
def test_the_last_step_shows_what_the_collective_promises(example):
    last = list(steps(example))[-1]
    for rank, memory in enumerate(last.memory):
        for buf, wanted in example.contract.after(rank).items():
            assert (memory[buf] == wanted).all()


NODE_AWARE = {
    **{x: EXAMPLES[x] for x in EXAMPLES if x[:5] != "multi" and x != "inter_allgather"},
    "bcast": {"p": 6, "m": 12, "root": 4},
}


@pytest.mark.parametrize("algorithm", ["node_aware", "node_aware(size=8,lanes=2)"])
@pytest.mark.parametrize("collective", NODE_AWARE)
def test_steps_on_nodes_end_with_what_the_collective_promises(collective, algorithm):
    if collective.endswith("barrier"):
        algorithm = "node_aware"
    sizes = NODE_AWARE[collective]
    n = schedule(collective, algorithm, **sizes).n
    example = schedule(collective, algorithm, **sizes, nodes=SCATTERED[:n])
    taken = list(steps(example))
    for rank, memory in enumerate(taken[-1].memory):
        for buf, wanted in example.contract.after(rank).items():
            assert (memory[buf] == wanted).all()
    met = [sum(r.meet for r in rounds) for rounds in example.all_ranks()]
    for k, node in enumerate(dict.fromkeys(SCATTERED[:n])):
        meetings = sum(k in step.meetings for step in taken)
        assert {meetings} == {met[r] for r in range(n) if SCATTERED[r] == node}


def test_a_node_is_a_row_that_its_ranks_write_and_read():
    example = schedule("allgatherv", "node_aware", counts=[3, 2, 4])
    bring, take = steps(example)
    assert not bring.messages and bring.meetings == (0,) and take.meetings == ()
    assert {(x.rank, x.src, x.dst) for x in bring.node_steps} == {
        (r, "recv", "node") for r in range(3)
    }
    assert {(x.rank, x.src, x.dst) for x in take.node_steps} == {
        (r, "node", "recv") for r in range(3)
    }
    assert bring.shared[0]["lo"].tolist() == [0] * 3 + [1] * 2 + [2] * 4


def test_messages_know_whether_they_end_in_node_memory():
    example = schedule(
        "inter_allgather", "node_aware", p=2, q=2, ka=3, kb=3, nodes=[0, 0, 1, 1]
    )
    all_messages = [m for step in steps(example) for m in step.messages]
    assert all_messages and all(m.from_node and m.to_node for m in all_messages)


def test_nodes_memory_and_meetings_are_drawn_and_explained():
    example = schedule(
        "inter_allreduce", "node_aware", p=3, q=2, m=8, nodes=[0, 1, 0, 1, 0]
    )
    picture = figure(example)
    said = words(picture)
    assert {"node 0", "node 1", "a0", "a2", "b1"} <= {*said}
    assert said.count("shared") == 2
    assert any("its ranks meet" in text and "shared memory" in text for text in said)
    # rows are in the order of nodes
    height = {t.get_text(): t.get_position()[1] for t in picture.axes[0].texts[::-1]}
    rows = sorted(("a0", "a1", "a2", "b0", "b1"), key=lambda name: -height[name])
    assert rows == ["a0", "a2", "b1", "a1", "b0"]


def test_a_flat_schedule_has_boxes_only_if_there_are_several_nodes():
    sizes = {"counts": [3, 1, 2, 2]}
    said = words(figure(schedule("allgatherv", "ring", **sizes, nodes=[0, 1, 0, 1])))
    assert "node 1" in said and "shared" not in said
    assert not any("ranks meet" in text for text in said)
    said = words(figure(schedule("allgatherv", "ring", **sizes, nodes=[7] * 4)))
    assert "ranks" in said and "node 7" not in said


def test_nodes_of_one_rank_and_many_ranks_can_be_drawn():
    for nodes in ([0, 1, 2, 3], [r % 3 for r in range(18)]):
        example = schedule(
            "allgatherv", "node_aware", counts=[1] * len(nodes), nodes=nodes
        )
        figure(example).savefig(io.BytesIO(), format="png")


def test_a_meeting_that_a_rank_misses_is_a_deadlock():
    def program(r):
        return iter([Round(meet=True)] * (2 - r))

    nothing = Contract(lambda r: {"recv": blank(0)}, lambda r: {})
    example = Schedule(
        "by_hand", "", lambda: nothing, program, (range(2),), (0, 0), True
    )
    with pytest.raises(Deadlock):
        list(steps(example))


@pytest.mark.parametrize("collective", ROOTED)
def test_a_root_and_another_group_are_drawn(collective):
    for entry in algorithms(collective):
        example = schedule(collective, entry.name, **ROOTED[collective])
        assert {"group A", "group B", "a0", "b3"} <= {*words(figure(example))}


def test_a_root_that_contributes_nothing_is_drawn_in_any_order_too():
    said = words(figure(schedule("inter_reduce", "circulant(n=2)", q=5, m=6)))
    assert "nothing" in said and "Σ5" in said


def test_both_ends_of_a_message_are_in_one_step():
    taken = list(steps(schedule("inter_allgather", "segmented", p=6, q=2, ka=6, kb=6)))
    first = {(m.source, m.target): len(m.data) for m in taken[0].messages}
    assert first[6, 0] == 2 and first[0, 6] == 6
    assert len(first) == len(taken[0].messages) == 12


def test_the_library_is_shown_as_such():
    example = schedule("inter_allgatherv", "balanced+library", **UNEVEN)
    _, last = steps(example)
    assert last.library == ((0, 6), (6, 2)) and not last.messages
    assert "MPI library" in words(figure(example))


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_a_picture_can_be_written(kind):
    file = io.BytesIO()
    example = schedule("inter_allgather", "merged", p=3, q=2, ka=2, kb=2)
    figure(example).savefig(file, format=kind)
    assert len(file.getvalue()) > 1000


def test_ranks_steps_and_sizes_are_named():
    said = words(figure(schedule("inter_allgather", "direct", p=3, q=2, ka=1, kb=4)))
    assert {"a0", "a1", "a2", "b0", "b1", "group A", "group B", "step 1"} <= {*said}
    assert "allgather between two groups, direct" in said
    assert any("3 ranks, 1 element each" in text for text in said)


def test_steps_in_the_middle_of_a_long_schedule_are_left_out():
    example = schedule("inter_allgather", "root_gathering_ring", p=6, q=6, ka=6, kb=6)
    n, said = len(list(steps(example))), words(figure(example))
    assert n > MAX_STEP_COLUMNS
    assert f"… {n - MAX_STEP_COLUMNS} steps …" in said
    assert "step 1" in said and f"step {n}" in said


@pytest.mark.parametrize("p, q, k", [(1, 1, 0), (1, 1, 1), (12, 9, 3)])
def test_sizes_at_the_edge_can_be_drawn(p, q, k):
    said = words(figure(schedule("inter_allgather", "balanced", p=p, q=q, ka=k, kb=k)))
    assert ("nothing" in said) == (k == 0)


def test_sums_say_how_many_ranks_they_are_of():
    for name in ("binomial", "circulant(n=2)"):
        said = words(figure(schedule("reduce", name, p=5, m=4, root=0)))
        assert "Σ5" in said and any("combined" in text for text in said)


def test_a_circle_shows_which_part_goes_where():
    example = schedule("bcast", "circulant(n=3)", p=9, m=9, root=0)
    picture = circle.figure(example, 3)
    titles = [axes.get_title() for axes in picture.axes]
    assert titles[:2] == [
        "step 1: to the rank 3 further on",
        "step 2: to the rank 5 further on",
    ]
    assert len(titles) == 6
    # everyone but the root gets each of three parts once
    labels = [t.get_text() for axes in picture.axes for t in axes.texts]
    parts = [len(step.messages) for step in steps(example)]
    assert sum(parts) == 3 * 8 and len(labels) == 3 * 8 + 6 * 9
    with pytest.raises(ValueError, match="up to 24 ranks and 8 parts"):
        circle.figure(example, 9)


def test_runs_of_equal_values():
    values = np.array([1, 1, 2, 1])
    assert list(runs(values)) == [(0, 2, 1), (2, 3, 2), (3, 4, 1)]
    assert list(runs(values[:0])) == []


def test_labels_count_inside_the_group():
    _, b = groups_of([range(3), range(3, 5)])
    assert [b.label(r) for r in b.ranks] == ["b0", "b1"]


def test_the_ratio_is_written_at_the_bars():
    pairs = [
        speed.SpeedRow("8 B", "10 µs", "5 µs", 2.0),
        speed.SpeedRow("x", "a", "b", 0.1),
    ]
    said = words(speed.figure("title", "subtitle", pairs))
    assert {"title", "2.00×", "0.10×", "native 10 µs", "isthmus 5 µs"} <= {*said}


def test_pictures_and_pages_have_the_same_colours():
    """Of ranks, as ramps; of timelines, as the style of the page in light mode."""
    root = Path(isthmus.__file__).parent / "explore" / "web"
    script = (root / "colours.js").read_text("utf-8")
    ramps = dict(re.findall(r"^  (\w): \[(.*)\],$", script, re.MULTILINE))
    shared = {name: tuple(re.findall(r"#\w{6}", text)) for name, text in ramps.items()}
    assert shared == palette.RAMPS
    style = (root / "page.css").read_text("utf-8")
    light = dict(re.findall(r"--([\w-]+): (#\w{6});", style.partition("@media")[0]))
    names = {"send": "SEND", "receive": "RECEIVE", "idle": "IDLE"}
    names |= {"critical": "PATH", "work": "WORK", "waits": "WAIT"}
    for name, constant in names.items():
        assert light[name] == getattr(palette, f"{constant}_COLOUR"), name
    for letter, ramp in palette.RAMPS.items():
        lightness = [sum(palette.on_ramp(letter, i / 20)) for i in range(21)]
        assert lightness == sorted(lightness, reverse=True), ramp


def test_a_circle_shows_the_parts_of_a_pipelined_broadcast(tmp_path):
    pytest.importorskip("typer")
    from isthmus.cli.app import run

    path = tmp_path / "circle.svg"
    line = ["draw", "bcast", "circulant", "--groups", "5", "--circle", "3", "-o"]
    with rc_context({"svg.fonttype": "none"}):
        assert run([*line, str(path)]) == 0
    words = re.findall(r"<text [^>]*>([^<]*)</text>", path.read_text("utf-8"))
    assert {"0", "1", "2"} <= set(words) and not any("–" in word for word in words)
