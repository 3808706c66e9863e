"""Machine files: shipped machines work, and defects are a line of error."""

from __future__ import annotations

import pytest

import isthmus
from isthmus.cost import machines
from isthmus.cost.machine import AlphaBeta, Level, Machine, Memory

FLAT = 'latency = "2 us"\nbandwidth = "50 Mbit/s"\n'
NODES = """
name = "mine"
[[level]]
name = "node"
units = 4
latency = "250 ns"
bandwidth = "4 GiB/s"
shared_port = false
[[level]]
latency = "1.3 µs"
bandwidth = "9.6 GB/s"
"""
MEMORY = """
[memory]
copy = "10 GB/s"
together = "100 GB/s"
meeting = "1 us"
"""


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "mine.toml"
        path.write_text(text, "utf-8")
        return path

    return write


@pytest.mark.parametrize("name", machines.shipped())
def test_what_ships_simulates_and_says_where_it_is_from(name):
    machine = machines.load(name)
    assert machine.name != name
    assert "arithmetic" in machine.note or "Typical values" in machine.note
    sizes = {"p": 100, "q": 28, "ka": 1000, "kb": 1000}
    example = isthmus.schedule("inter_allgather", "segmented+bruck", **sizes)
    assert 0 < example.simulate(machine).time < 1


def test_the_shipped_machines():
    assert machines.shipped() == [
        "bluegene-p",
        "cori-like",
        "dawn-like",
        "ddr-infiniband",
        "gigabit-ethernet",
        "hdr-infiniband",
        "nec-sx8",
        "shared-memory",
        "sicortex",
        "sierra-like",
    ]
    cori = machines.load("cori-like")
    assert not cori.flat and cori.levels[0].size == 32


def test_units_are_exact(written):
    assert machines.load(written(FLAT)) == AlphaBeta(2e-6, 1.6e-7)
    assert machines.load(written(FLAT), unit=8).unit == 8
    assert machines.load(written(NODES)) == Machine(
        (
            Level(4, 250e-9, 1 / (4 << 30), shared=False),
            Level(None, 1.3e-6, float(f"{1 / 9.6e9:.17g}")),
        )
    )
    assert machines.load(written(NODES)).name == "mine"


def test_a_placement(written):
    text = NODES.replace("[[level]]", "placement = [0, 1, 0]\n[[level]]", 1)
    assert machines.load(written(text)).placement == (0, 1, 0)


def test_the_memory_of_a_node(written):
    assert machines.load(written(NODES)).memory == Memory()
    assert machines.load(written(NODES + MEMORY)).memory == Memory(1e-10, 1e-11, 1e-6)
    alone = machines.load(written(NODES + '[memory]\ncopy = "4 GB/s"')).memory
    assert alone == Memory(2.5e-10)


def test_the_lanes_of_a_port(written):
    text = swap(NODES, "units = 4", "units = 4\nlanes = 2")
    assert [x.lanes for x in machines.load(written(text)).levels] == [2, 1]


@pytest.mark.parametrize("name", ["cori-like", "hdr-infiniband"])
def test_shipped_machines_with_nodes_know_their_memory(name):
    memory = machines.load(name).memory
    assert 0 < memory.together < memory.alone and memory.meeting > 0


def test_the_gap_between_messages(written):
    text = swap(NODES, "units = 4", 'units = 4\ngap = "50 ns"')
    levels = machines.load(written(text)).levels
    assert [x.between for x in levels] == [5e-8, 1.3e-6]


def test_what_messages_of_a_level_have_together(written):
    text = swap(NODES, "units = 4", 'units = 4\ntogether = "8 GB/s"')
    model = machines.load(written(text))
    assert [x.together for x in model.levels] == [1.25e-10, 0]
    # four in a ring inside a node: 2 GB/s for each
    ring = isthmus.schedule("allgatherv", "ring", counts=[1000] * 4)
    assert ring.simulate(model).time == pytest.approx(3 * (250e-9 + 1000 / 2e9))


def swap(text, old, new):
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    "text, wrong",
    [
        (swap(FLAT, "2 us", "-2 us"), "latency: '-2 us' is negative"),
        (swap(FLAT, "50 M", "-50 M"), "bandwidth: '-50 Mbit/s' is negative"),
        (swap(FLAT, "50 M", "0 M"), "bandwidth: '0 Mbit/s' is not above zero"),
        (swap(FLAT, "Mbit/s", "knots"), "bandwidth: unknown unit in '50 knots'; known"),
        (swap(FLAT, "2 us", "2"), "latency: unknown unit in '2'; known: s, ms"),
        (swap(FLAT, '"2 us"', "2"), "latency: 2 is not a number with a unit, such as"),
        (swap(FLAT, "2 us", "nan us"), "latency: 'nan us' is not a number with a unit"),
        (swap(FLAT, 'latency = "2 us"', ""), "latency: missing"),
        (swap(FLAT, "latency", "latancy"), "latency: missing"),
        (FLAT + 'latancy = "1 us"', "latancy: unknown key"),
        (FLAT + 'model = "alphabeta"', "model: unknown key"),
        ("", "latency: missing"),
        ("name = ", "not a TOML file: "),
        ("level = 3", "level: must be one [[table]] or more"),
        (swap(NODES, "units = 4", ""), "level 1: units: missing"),
        (swap(NODES, "= 4", "= 0"), "level 1: units: 0 is not a whole number"),
        (swap(NODES, "= false", "= 1"), "level 1: shared_port: 1 is not true or false"),
        (swap(NODES, "1.3", "-1.3"), "level 2: latency: '-1.3 µs' is negative"),
        (NODES + "color = 1", "level 2: color: unknown key"),
        (swap(NODES, "name", "placement = [-1]\nname"), "placement: must be a list"),
        (swap(NODES, "= 4", "= 4\nlanes = 0"), "level 1: lanes: 0 is not a whole"),
        (NODES + '[memory]\nmeeting = "1 us"', "memory: copy: missing"),
        (NODES + MEMORY + "size = 1", "memory: size: unknown key"),
        (swap(NODES, "name", "memory = 3\nname"), "memory: must be a [table]"),
        (
            NODES + swap(MEMORY, "100", "9"),
            "memory: together: is less than one process copies alone",
        ),
        (FLAT + MEMORY, "memory: unknown key"),
        (swap(NODES, "= 4", '= 4\ngap = "1 KB"'), "level 1: gap: unknown unit"),
    ],
)
def test_what_is_wrong_is_one_line(written, text, wrong):
    path = written(text)
    with pytest.raises(ValueError) as caught:
        machines.load(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: {wrong}") and "\n" not in line


def test_files_that_are_none(tmp_path):
    with pytest.raises(ValueError, match="no such file, nor a shipped machine; known"):
        machines.load(tmp_path / "none.toml")
    with pytest.raises(ValueError, match=r"irectory|ermission"):
        machines.load(tmp_path)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="not a TOML file"):
        machines.load(binary)
