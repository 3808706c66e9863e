"""Unreadable and unwritable files: a line of error, before any work."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("matplotlib")

from isthmus.bench import launch
from isthmus.cli import lab_report, main, reproduce
from isthmus.schedules.schedule import Schedule

#: commands, with {} where a file is written
FILES = [
    "bench --csv {}",
    "bench --json {}",
    "bench --plot {}.png",
    "draw allgather direct -o {}.svg",
    "draw allgather direct --gantt -o {}.svg",
    "draw bcast circulant --circle 3 -o {}.png",
    "trace allgather direct -o {}",
    "record ring -o {}.png",
    "record ring -o {}.json",
    "tune -o {}",
    "tune -o x.toml --plot {}.pdf",
]
#: and where a folder is
FOLDERS = [
    "demo -o {}",
    "reproduce kang2019 -o {}",
    "reproduce moody2011 -o {}",
    "reproduce traff2008 -o {}",
    "lab report -o {}",
]
#: and where a file is read
READERS = [
    "predict allgather --groups 4,4 --machine {}",
    "draw allgather direct --gantt --machine {}",
    "trace allgather direct --machine {}",
    "record ring --machine {}",
]


def _begun(*args, **kwargs):
    raise AssertionError("the work has begun")


@pytest.fixture
def cli(capsys, monkeypatch, tmp_path):
    """A function that runs a command, which must fail before any work: the error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ISTHMUS_TUNING", "none")
    for owner, name in [
        (launch, "launch"),
        (Schedule, "all_ranks"),
        (Schedule, "simulate"),
        (lab_report, "place"),
    ]:
        monkeypatch.setattr(owner, name, _begun)
    for paper in reproduce.REPORTS_BY_PAPER:
        monkeypatch.setitem(reproduce.REPORTS_BY_PAPER, paper, _begun)
    monkeypatch.setattr(reproduce, "_measured", _begun)

    def run(line: str) -> str:
        with pytest.raises(SystemExit) as end:
            main(line.split())
        out, err = capsys.readouterr()
        assert (end.value.code, out) == (2, ""), err
        assert err.startswith("isthmus: ") and err.count("\n") == 1, err
        return err

    return run


@pytest.mark.parametrize("command", FILES)
def test_a_folder_is_given_for_a_file(cli, tmp_path, command):
    line = command.format("there")
    (tmp_path / next(x for x in line.split() if "there" in x)).mkdir()
    assert "Is a directory" in cli(line)


@pytest.mark.parametrize("command", [*FILES, *FOLDERS])
def test_a_file_stands_where_a_folder_is_needed(cli, tmp_path, command):
    (tmp_path / "plain").write_text("mine")
    assert "plain" in cli(command.format("plain/below"))
    assert (tmp_path / "plain").read_text() == "mine"


@pytest.mark.parametrize("command", FOLDERS)
def test_a_file_is_given_for_a_folder(cli, tmp_path, command):
    (tmp_path / "plain").write_text("mine")
    assert "plain" in cli(command.format("plain"))


@pytest.mark.skipif(sys.platform != "linux", reason="a folder nobody can write to")
@pytest.mark.parametrize("command", [*FILES, *FOLDERS])
def test_nothing_can_be_written_there(cli, command):
    assert "/proc" in cli(command.format("/proc/nowhere"))


@pytest.mark.parametrize("command", READERS)
def test_a_file_that_cannot_be_read(cli, tmp_path, command):
    assert "missing.toml: no such file" in cli(command.format("missing.toml"))
    (tmp_path / "folder").mkdir()
    assert "folder: Is a directory" in cli(command.format("folder"))
    (tmp_path / "other").write_bytes(b"\xff\xfe")
    assert "not a TOML file" in cli(command.format("other"))


@pytest.mark.parametrize("command", ["bench --plot x.odd", "record ring -o x.odd"])
def test_a_picture_of_an_unknown_kind(cli, command):
    assert "x.odd: not a kind of picture" in cli(command)


def test_what_is_there_stays_until_it_is_written(cli, tmp_path):
    old_file = tmp_path / "kept.csv"
    old_file.write_text("mine")
    (tmp_path / "x").mkdir()
    cli("bench --csv kept.csv --json x")
    assert old_file.read_text() == "mine"
    assert sorted(x.name for x in tmp_path.iterdir()) == ["kept.csv", "x"]


def test_an_error_of_the_system_in_the_middle_is_one_line_too(cli, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device", "somewhere")

    monkeypatch.setattr(Schedule, "simulate", full)
    line = "trace allgather direct -o x.json"
    assert cli(line) == "isthmus: somewhere: No space left on device\n"
