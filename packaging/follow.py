"""README, followed line by line by somebody who has the wheel and nothing else.

Its commands are run as they stand there, in its order, by an installed isthmus that
sees nothing of the repository. Those that it says take longer are started, and ended
when they have gone on for a while. `make test` does that with MPICH, `make
release-check` with the wheel that is released and with both libraries.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import quoting

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^(?:<!-- ([\w ]+) -->\n)?```text\n(.*?)^```$", re.MULTILINE | re.S)
#: what a line of a shell begins with; others are what a program printed
STARTS = ("pip ", "isthmus ", "mpiexec ", "make ")
LAB = "isthmus lab "
LIBRARIES = ("mpich", "openmpi")
#: README's block of commands that take longer
LONGER = "longer"
#: commands that take longer go on for so long, side by side, before they are ended
SECONDS_OF_LONG_COMMANDS = 4
SECONDS_OF_A_COMMAND = 600
SECONDS_OF_AN_INSTALLATION = 1200
#: what a shell returns for a command that Ctrl-C ended
INTERRUPTED = 130
#: as in a container
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")


class Failed(Exception):
    """A line of README that does not do what README says."""


def commands(mark: str = "") -> list[str]:
    """The lines of README's blocks under a mark, without their comments."""
    bodies = [body for found, body in BLOCK.findall(README) if found == mark]
    lines = [line for body in bodies for line in body.splitlines()]
    plain = (re.sub(r"\s+#.*", "", line) for line in lines)
    return [line for line in plain if line.startswith(STARTS)]


@dataclass(frozen=True)
class Shell:
    """A folder to work in and the variables of a shell, after README's first line."""

    folder: Path
    variables: dict[str, str]
    library: str

    def words(self, line: str) -> list[str]:
        """A line as a program and its arguments."""
        if self.library == "openmpi":  # README says so, for machines of few cores
            line = re.sub(r"^mpiexec ", "mpiexec --oversubscribe ", line)
        return shlex.split(line)

    def run(self, line: str, path: str = "") -> str:
        """What a command prints; it must end well."""
        done = subprocess.run(
            self.words(line),
            cwd=self.folder,
            env={**self.variables, "PATH": self.variables["PATH"] + path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS_OF_A_COMMAND,
        )
        if done.returncode:
            raise Failed(f"{line}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout


def install(wheel: Path, folder: Path, library: str) -> Shell:
    """Install the wheel with the extras that README names."""
    program, verb, what, *rest = shlex.split(commands()[0])
    extras = re.fullmatch(r"isthmus\[(.*)\]", what)
    if (program, verb, rest) != ("pip", "install", []) or extras is None:
        raise Failed(f"README begins with {commands()[0]}")
    names = extras[1].replace("mpich", library)
    if f"isthmus[{names}]" not in README:
        raise Failed(f"README does not say isthmus[{names}]")
    venv.create(folder / "venv")
    add(folder, f"{wheel}[{names}]")
    for quotation in quoting.quotations(README):  # "save it as …"
        if quotation.part is None and quotation.path.endswith(".py"):
            (folder / Path(quotation.path).name).write_text(quotation.text)
    path = os.pathsep.join((str(folder / "venv" / "bin"), os.defpath))
    # a user's own settings must not be changed, nor decide what is tested
    variables = {"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8", "COLUMNS": "100"}
    return Shell(folder, AS_ROOT | variables, library)


def add(folder: Path, what: str) -> None:
    """Install one requirement into the environment of a folder."""
    # a pip of its own would take a quarter of the time of the installation
    into = ["--python", str(folder / "venv"), "install", "--no-compile", what]
    subprocess.run(
        [sys.executable, *PIP, *into], check=True, timeout=SECONDS_OF_AN_INSTALLATION
    )


def quick(shell: Shell) -> Iterator[str]:
    """Run the commands that take seconds; each, when it ended well."""
    for line in commands()[1:]:
        if not shell.run(line):
            raise Failed(f"{line}: prints nothing")
        yield line
    kinds = {x.suffix for x in shell.folder.iterdir()}
    if not kinds >= {".png", ".html", ".json"}:
        raise Failed(f"README's commands wrote only {', '.join(sorted(kinds))}")


def program(shell: Shell) -> Iterator[str]:
    """Run README's program; it must print what is below it."""
    for output in quoting.outputs(README):
        printed = shell.run(output.command)
        if not output.allows(printed):
            raise Failed(f"{output.command}: prints\n{printed}")
        yield output.command


def longer(shell: Shell) -> Iterator[str]:
    """Start what takes longer, all at once, and end it as Ctrl-C does if it goes on."""
    lines = [line for line in commands(LONGER) if not line.startswith(LAB)]
    started = [(line, _background(shell, line)) for line in lines]
    end = time.monotonic() + SECONDS_OF_LONG_COMMANDS
    for _, command in started:
        with suppress(subprocess.TimeoutExpired):
            command.wait(max(end - time.monotonic(), 0))
    # those that go on; one that Python has not started yet ends by the signal itself
    running = [command for _, command in started if command.poll() is None]
    for command in running:
        command.send_signal(signal.SIGINT)
    for line, command in started:
        printed, _ = command.communicate(timeout=SECONDS_OF_A_COMMAND)
        ended = (0, INTERRUPTED, -signal.SIGINT) if command in running else (0,)
        if command.returncode not in ended:
            raise Failed(f"{line}: {command.returncode}\n{printed}")
        yield line


def _background(shell: Shell, line: str) -> subprocess.Popen[str]:
    """A command in the background, which Ctrl-C can end."""
    return subprocess.Popen(
        shell.words(line),
        cwd=shell.folder,
        env=shell.variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # a shell's background jobs ignore it, and so would what they start
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def lab(shell: Shell) -> Iterator[str]:
    """Put README's lab up, use it, and take it down."""
    lines = [x for x in commands(LONGER) if x.startswith(LAB)]
    if [x.split()[2] for x in lines] != ["up", "run", "down"]:
        raise Failed(f"README's lab: {lines}")
    for line in lines:
        shell.run(line, ":/usr/sbin:/sbin")
        yield line
