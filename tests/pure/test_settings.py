"""Environment variables: names and meaning in a single place, and documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import isthmus
from isthmus import settings
from isthmus.collectives.records import operations

SOURCE = Path(isthmus.__file__).parent
GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"
#: of isthmus's own processes, nothing that a user sets
OWN = {"ISTHMUS_LAB_JOB"}


def _names():
    between = {settings.BETWEEN_PREFIX + op.upper() for op in operations(2)}
    inside = {settings.INSIDE_PREFIX + op.upper() for op in operations(1, on_mpi=True)}
    return (
        between
        | inside
        | {
            settings.TUNING,
            settings.CHECK,
            settings.DEVICE,
            settings.PER_NODE,
            settings.TRIAL,
            settings.IMPORT,
            settings.TIMEOUT,
        }
    )


def test_the_guide_lists_every_variable():
    assert set(re.findall(r"ISTHMUS_[A-Z_]+", GUIDE.read_text())) == _names()


def test_no_other_file_names_a_variable_to_read():
    names_of_file = {}
    for path in SOURCE.rglob("*.py"):
        names = re.findall(r"""["'](ISTHMUS_[A-Z_]+[A-Z])["']""", path.read_text())
        if path.name != "settings.py" and set(names) - OWN:
            names_of_file[path.name] = names
    assert not names_of_file


def test_what_is_not_set_is_auto_and_allgatherv_follows_allgather():
    nothing = settings.read({})
    for prefix in (settings.BETWEEN_PREFIX, settings.INSIDE_PREFIX):
        assert nothing.algorithm(prefix, "Allgather") == "auto"
    said = settings.read({"ISTHMUS_ALLGATHER": "direct", "ISTHMUS_INTRA_BCAST": "x"})
    assert said.algorithm(settings.BETWEEN_PREFIX, "Allgather") == "direct"
    assert said.algorithm(settings.BETWEEN_PREFIX, "Allgatherv") == "direct"
    assert said.algorithm(settings.BETWEEN_PREFIX, "Bcast") == "auto"
    assert said.algorithm(settings.INSIDE_PREFIX, "Bcast") == "x"
    variables = {"ISTHMUS_ALLGATHER": "direct", "ISTHMUS_ALLGATHERV": "balanced"}
    name = settings.read(variables).algorithm(settings.BETWEEN_PREFIX, "Allgatherv")
    assert name == "balanced"


def test_only_known_words_say_what_is_done_with_device_memory():
    assert settings.device({}) is None
    assert settings.device({"ISTHMUS_DEVICE": "direct"}) == "direct"
    with pytest.raises(ValueError, match="ISTHMUS_DEVICE=maybe"):
        settings.device({"ISTHMUS_DEVICE": "maybe"})
