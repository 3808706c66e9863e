"""README, followed line by line in a clean environment, from the wheel on.

The steps are in `packaging/follow.py`. Without a network the test fails, because the
wheel cannot be built, nor its dependencies installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import follow

ROOT = Path(__file__).parents[2]
#: what is added to commands that measure, so that they measure less: the last of two
#: equal options holds. `make release-check` runs the lines as they stand in README.
LESS = {
    "isthmus demo": "--ranks 3",
    "isthmus record": "--groups 2,1 --runs 1",
    "isthmus bench": "--groups 2,1 --seconds 0.01 --launches 1",
}


class Measuring(follow.Shell):
    """A shell in which commands that measure do so with few processes, and once."""

    def words(self, line: str) -> list[str]:
        less = LESS.get(" ".join(line.split()[:2]), "")
        return super().words(f"{line} {less}")


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """A shell after the line of README that installs isthmus, here from the wheel."""
    folder = tmp_path_factory.mktemp("installed")
    wheel = ["wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run([sys.executable, *follow.PIP, *wheel], check=True)
    (built,) = folder.glob("isthmus-*.whl")
    return follow.install(built, folder, "mpich")


def test_readme_has_commands_to_run():
    assert len(follow.commands()) > 9 and len(follow.commands(follow.LONGER)) > 5
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    clone = [x.split()[1] for x in follow.commands("from a clone")]
    assert len(clone) == 3 and not {*clone} - {*targets}


def test_every_quick_command_of_readme_ends_well(shell):
    lines = follow.commands()[1:]
    assert {*LESS} <= {" ".join(line.split()[:2]) for line in lines}
    quickly = Measuring(shell.folder, shell.variables, shell.library)
    assert list(follow.quick(quickly)) == lines


def test_the_program_of_readme_prints_what_is_below_it(shell):
    assert len(list(follow.program(shell))) == 1


def test_every_longer_command_of_readme_starts(shell):
    assert len(list(follow.longer(shell))) > 2


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="needs root")
def test_the_lab_of_readme(shell):
    lines = follow.lab(shell)
    try:
        next(lines)
    except follow.Failed as error:
        pytest.skip(f"no lab on this machine: {error}")
    assert len(list(lines)) == 2
