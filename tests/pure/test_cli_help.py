"""The help of the command line: working examples, plain text, exit codes."""

from __future__ import annotations

import json
import os
import shlex

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from typer.main import get_command

from isthmus.bench import launch
from isthmus.check import sweep
from isthmus.cli import main
from isthmus.cli.app import app
from isthmus.cli.commands import COMMANDS, LAB_COMMANDS
from isthmus.cli.examples import EXAMPLES
from isthmus.verify.errors import Deadlock

#: what starts processes, needs root or scipy, reads a file or takes its time
SLOW = "bound", "demo", "bench", "check", "record", "tune", "reproduce", "lab", "draw"
HEAVY = "--recorded", "512,128", "cori-like", "hdr-infiniband"
LINES = [(name, line) for name, lines in EXAMPLES.items() for line in lines]
RUN = [
    line
    for name, line in LINES
    if name.split()[0] not in SLOW and not any(word in line for word in HEAVY)
]


def commands(group, before=""):
    """Every command by full name."""
    for name in group.commands:
        command = group.commands[name]
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield before + name, command


COMMAND_OF_NAME = dict(commands(get_command(app)))


def words(line):
    """The arguments of an example, without the launcher and imports."""
    parts = shlex.split(line)
    if parts[0] == "mpiexec":
        parts = parts[3:]
    start = parts[:3] if parts[0] == "python" else parts[:1]
    name = {"isthmus.bench": ["bench"], "isthmus.bench.demo": ["demo"]}
    parts = name.get(start[-1], []) + parts[len(start) :]
    return parts[2:] if parts[0] == "--import" else parts


@pytest.fixture
def cli(capsys, monkeypatch, tmp_path):
    """Run the command line in an empty folder, where no measurement can start."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(launch, "launch", None)

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(arguments)
        return end.value.code, *capsys.readouterr()

    return run


def test_every_command_has_examples():
    assert set(COMMAND_OF_NAME) == set(EXAMPLES)


@pytest.mark.parametrize("name", COMMAND_OF_NAME)
def test_help_shows_the_examples_and_every_option(cli, name):
    status, out, err = cli(*name.split(), "--help")
    assert status == 0 and not err and "\x1b" not in out
    text = " ".join(out.split())
    assert all(" ".join(line.split()) in text for line in EXAMPLES[name])
    shown = [x for x in COMMAND_OF_NAME[name].params if not getattr(x, "hidden", False)]
    options = [o for x in shown for o in x.opts if o.startswith("--")]
    assert all(option in out for option in options)
    assert all(x.help for x in shown), [x.name for x in shown if not x.help]
    assert "<" not in out  # a type of Python's, where a word for people is missing
    first = COMMAND_OF_NAME[name].help.partition("\n\n")[0]
    table = {
        **COMMANDS,
        **{f"lab {command}": entry for command, entry in LAB_COMMANDS.items()},
    }
    assert table[name].summary == first
    assert first.endswith(".") and "\n" not in first and len(first) <= 72


@pytest.mark.parametrize("name, line", LINES, ids=[line for _, line in LINES])
def test_an_example_is_understood(name, line):
    parts = words(line)
    depth = len(name.split())
    assert parts[:depth] == name.split()
    with COMMAND_OF_NAME[name].make_context(name, parts[depth:]):
        pass


@pytest.mark.parametrize("line", RUN)
def test_an_example_runs(cli, line):
    status, out, _ = cli(*words(line))
    assert status == 0 and out and "\x1b" not in out
    if "--json" in line:
        assert json.loads(out)


@pytest.mark.parametrize("right", [True, False])
def test_check_prints_json(cli, monkeypatch, right):
    def verify(programs, contract, nodes):
        if not right:
            raise Deadlock("rank 2 waits")

    monkeypatch.setattr(sweep, "verify", verify)
    monkeypatch.setattr(sweep, "CASES_PER_CHUNK", 10**9)  # in this process
    monkeypatch.setattr(sweep, "collectives", lambda: ["barrier"])
    status, out, _ = cli("check", "--max", "2", "--placements", "1", "--json")
    answer = json.loads(out)
    assert status == (0 if right else 1)
    assert all(row["right"] == right for row in answer["algorithms"])
    assert bool(answer["failures"]) != right
    assert all("rank 2 waits" in x["failure"] for x in answer["failures"])


@pytest.mark.parametrize(
    "line, part",
    [
        ("bench --seconds -1", "--seconds"),
        ("draw alltoallv direct --ab 1,2;3", "rows must be of one length"),
        ("record nosuch --groups 2,2", "no algorithm 'nosuch'"),
        ("explore redistribution ring", "layouts"),
        ("explore allgather", "which algorithm"),
        ("explore bcast binomial --source blocks:2", "of a redistribution"),
        ("list --nonsense", "--nonsense"),
    ],
)
def test_an_error_is_one_line(cli, line, part):
    status, out, err = cli(*line.split())
    assert (status, out) == (2, "") and err.count("\n") == 1
    assert err.startswith("isthmus: ") and part in err


def test_a_group_of_commands_alone_shows_its_help(cli):
    status, out, err = cli("lab")
    assert status == 0 and "status" in out and not err


def test_the_demo_needs_no_pictures(cli, monkeypatch):
    from isthmus.cli import demo

    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    monkeypatch.setattr(demo.worker, "run", lambda *x: None)
    for cores in (2, 16):
        monkeypatch.setattr(os, "cpu_count", lambda n=cores: n)
        status, out, _ = cli("demo")
        assert status == 0 and 'pip install "isthmus[plot]"' in out
        assert ("8 processes take turns on 2 cores" in out) == (cores == 2)


def test_progress_is_told_where_there_is_no_terminal(cli, monkeypatch):
    from isthmus.cli import terminal

    ticks = iter(range(0, 10**6, 3))
    monkeypatch.setattr(terminal, "perf_counter", lambda: next(ticks))
    status, out, err = cli("predict", "allgather", "--groups", "4,2", "--json")
    assert status == 0 and json.loads(out) and " algorithms\n" in err
