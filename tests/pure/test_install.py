"""README, followed line by line in a clean environment, from the wheel on.

Its commands are run as they stand there, in its order, by an installed isthmus that
sees nothing of this folder. Those that it says take longer are started, and ended when
they have gone on for a while. Without a network the wheel cannot be built, nor what it
needs be installed: the test fails then.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import quoting
from launcher.mpirun import ENVIRONMENT

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^(?:<!-- ([\w ]+) -->\n)?```text\n(.*?)^```$", re.MULTILINE | re.S)
#: what a line of a shell begins with; others are what a program printed
STARTS = ("pip ", "isthmus ", "mpiexec ", "make ")
#: a command that takes longer goes on for so long before it is ended
SECONDS_OF_A_LONG_COMMAND = 3
SECONDS_OF_A_COMMAND = 600
#: what a shell returns for a command that Ctrl-C ended
INTERRUPTED = 130
LAB = "isthmus lab "


def commands(mark: str) -> list[str]:
    """The lines of the blocks under a mark, without their comments."""
    bodies = [body for found, body in BLOCK.findall(README) if found == mark]
    lines = [line for body in bodies for line in body.splitlines()]
    plain = (re.sub(r"\s+#.*", "", line) for line in lines)
    return [line for line in plain if line.startswith(STARTS)]


INSTALL, *QUICK = commands("")
LONGER = commands("longer")


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A folder to work in and the variables of a shell, after the line of README that
    installs isthmus: here it is the wheel."""
    folder = tmp_path_factory.mktemp("installed")
    pip = ["-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheel = [*pip, "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run([sys.executable, *wheel], check=True)
    (built,) = folder.glob("isthmus-*.whl")
    venv.create(folder / "venv", with_pip=True)
    program, install, what = shlex.split(INSTALL)
    assert (program, install) == ("pip", "install")
    assert what.startswith("isthmus[")
    extras = what.removeprefix("isthmus")
    python = folder / "venv" / "bin" / "python"
    line = [*pip, "install", "--no-compile", f"{built}{extras}"]
    subprocess.run([python, *line], check=True)
    for quotation in quoting.quotations(README):  # "save it as …"
        if quotation.part is None and quotation.path.endswith(".py"):
            (folder / Path(quotation.path).name).write_text(quotation.text)
    path = os.pathsep.join((str(python.parent), os.defpath))
    # a user's own settings must not be changed, nor decide what is tested
    variables = {**ENVIRONMENT, "PATH": path, "HOME": str(folder)}
    return folder, {**variables, "LANG": "C.UTF-8", "COLUMNS": "100"}


def test_readme_has_commands_to_run():
    assert len(QUICK) > 8 and len(LONGER) > 5
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    clone = [x.split()[1] for x in commands("from a clone")]
    assert len(clone) == 3 and not {*clone} - {*targets}


def test_every_quick_command_of_readme_ends_well(environment):
    folder, variables = environment
    for line in QUICK:
        done = subprocess.run(
            shlex.split(line),
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS_OF_A_COMMAND,
        )
        assert done.returncode == 0 and done.stdout, (line, done.stdout, done.stderr)
    drawn = {x.suffix for x in folder.iterdir()}
    assert drawn >= {".png", ".html", ".json"}


def test_the_program_of_readme_prints_what_is_below_it(environment):
    folder, variables = environment
    for output in quoting.outputs(README):
        done = subprocess.run(
            shlex.split(output.command),
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=SECONDS_OF_A_COMMAND,
        )
        assert done.returncode == 0, done.stderr
        assert output.allows(done.stdout), done.stdout


def test_every_longer_command_of_readme_starts(environment):
    folder, variables = environment
    for line in LONGER:
        if line.startswith(LAB):
            continue
        started = subprocess.Popen(
            shlex.split(line),
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            printed, _ = started.communicate(timeout=SECONDS_OF_A_LONG_COMMAND)
        except subprocess.TimeoutExpired:
            started.send_signal(signal.SIGINT)
            printed, _ = started.communicate(timeout=SECONDS_OF_A_COMMAND)
            assert started.returncode in (0, INTERRUPTED), (line, printed)
        else:
            assert started.returncode == 0, (line, printed)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="needs root")
def test_the_lab_of_readme(environment):
    folder, variables = environment
    lines = [x for x in LONGER if x.startswith(LAB)]
    assert [x.split()[2] for x in lines] == ["up", "run", "down"]
    first = True
    for line in lines:
        done = subprocess.run(
            shlex.split(line),
            cwd=folder,
            env={**variables, "PATH": f"{variables['PATH']}:/usr/sbin:/sbin"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS_OF_A_COMMAND,
        )
        if first and done.returncode == 2:
            pytest.skip(f"no lab on this machine: {done.stderr}")
        first = False
        assert done.returncode == 0, (line, done.stdout, done.stderr)
