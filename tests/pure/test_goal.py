"""GOAL text for LogGOPSim: `isthmus export --goal`."""

from __future__ import annotations

import io
import re

import pytest

import isthmus
from isthmus.cli import main
from isthmus.collectives.records import COLLECTIVES
from isthmus.cost.machine import AlphaBeta
from isthmus.export.goal import goal, write_goal
from isthmus.schedules.ir import Copy, Recv, Reduce, Round, Send, Span
from isthmus.schedules.registry import algorithms
from isthmus.schedules.schedule import Schedule

#: allgathers for groups of some sizes, and the one that nobody knows
NOT_FOR_FIVE = ("library", "recursive_doubling", "neighbor_exchange")


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


def test_goal_text():
    send, recv = Round((Send(1, data(4)),)), Round((Recv(0, data(4)),))
    reduce = Reduce(Span("recv", 0, 4), Span("tmp", 0, 4))
    copy = Round((), (Copy(Span("recv", 0, 4), Span("tmp", 0, 4)),))
    two = Round((*send.comm, Send(2, data(3))))
    schedule = handmade(
        [two, send], [recv, copy, Round(recv.comm, (reduce,))], [Round(), recv], []
    )
    assert goal(schedule, unit=2, gamma=3) == (
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


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_goal_has_every_message_at_both_ends(collective):
    example = COLLECTIVES[collective].example
    for entry in algorithms(collective):
        name = entry.name + "+ring" * entry.staged
        if entry.node_memory or name in (
            "library",
            "recursive_doubling",
            "neighbor_exchange",
        ):
            continue
        case_schedule = isthmus.schedule(collective, name, **example)
        text, file = goal(case_schedule), io.StringIO()
        write_goal(case_schedule, file)
        assert file.getvalue() == text
        sent = case_schedule.simulate(AlphaBeta(0, 1)).sent.sum()
        for verb in ("send", "recv"):
            sizes = [int(s) for s in re.findall(rf"^l\d+: {verb} (\d+)b", text, re.M)]
            assert sum(sizes) == sent


def test_goal_of_the_library_is_refused():
    with pytest.raises(ValueError, match="cannot be exported"):
        goal(isthmus.schedule("allgatherv", "library", counts=[1, 2]))


def test_the_command_writes_goal(tmp_path):
    path = tmp_path / "x.goal"
    line = f"export bcast binomial --groups 4 --bytes 100 --goal {path}"
    with pytest.raises(SystemExit) as end:
        main(line.split())
    tree = isthmus.schedule("bcast", "binomial", p=4, m=100, root=0)
    assert not end.value.code and path.read_text() == goal(tree)


def test_the_command_writes_what_simgrid_reads(tmp_path):
    folder = tmp_path / "x"
    with pytest.raises(SystemExit) as end:
        main(f"export bcast binomial --groups 4 --simgrid {folder}".split())
    assert not end.value.code
    assert (folder / "hosts.txt").read_text() == "rank0\nrank1\nrank2\nrank3\n"
    assert 'radical="0-3"' in (folder / "platform.xml").read_text()
    assert "3 finalize" in (folder / "trace.txt").read_text()


def test_the_command_asks_for_which_simulator(capsys):
    with pytest.raises(SystemExit) as end:
        main(["export", "bcast", "binomial", "--groups", "4"])
    assert end.value.code == 2 and "--goal" in capsys.readouterr().err
