"""The subcommands: names, summaries, and the module imported for each.

All of them together import 190 modules of isthmus, numpy and matplotlib: half a second
of processor time, also for `isthmus --version`. So a group knows its subcommands by a
table, and imports only the subcommand that is run. The help of a group is written from
the table too, and a test compares the table with the docstrings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from .examples import epilog


@dataclass(frozen=True)
class Entry:
    """The place of a subcommand, and the first line of its help."""

    #: of the package isthmus.cli
    module: str
    #: a function, or a group's typer.Typer
    attribute: str
    summary: str


COMMANDS = {
    "demo": Entry("demo", "demo", "Let two groups of processes swap a coupled field."),
    "bench": Entry(
        "bench", "bench", "Compare isthmus with the MPI library's own collectives."
    ),
    "check": Entry(
        "check",
        "check",
        "Verify every algorithm on all small group sizes, without MPI.",
    ),
    "bound": Entry(
        "bound",
        "bound",
        "Find what no algorithm can beat in a small case, and how far each is.",
    ),
    "list": Entry(
        "listing",
        "list_",
        "List the algorithms of every collective, with idea and paper.",
    ),
    "draw": Entry(
        "draw", "draw", "Draw what every rank holds after every step of a schedule."
    ),
    "explore": Entry(
        "explore", "explore", "Write a page to step through a schedule in a browser."
    ),
    "predict": Entry(
        "predict",
        "predict",
        "Predict the time of every algorithm on a machine, best first.",
    ),
    "trace": Entry(
        "trace", "trace", "Write a simulated run as a trace for Perfetto or Chrome."
    ),
    "export": Entry(
        "export",
        "export",
        "Write a schedule for another simulator: LogGOPSim or SimGrid.",
    ),
    "record": Entry(
        "record", "record", "Record a real run message by message, and draw it."
    ),
    "tune": Entry(
        "tune", "tune", "Measure what messages cost here, for isthmus to choose by."
    ),
    "reproduce": Entry(
        "reproduce", "reproduce", "Reproduce a paper's figures and tables."
    ),
    "lab": Entry(
        "commands", "lab", "A shaped network of many hosts inside this machine."
    ),
}
LAB_COMMANDS = {
    "up": Entry("lab", "up", "Put up a lab: hosts with shaped links."),
    "run": Entry(
        "lab",
        "run",
        "Run an MPI program on the hosts; its exit status is that of mpiexec.",
    ),
    "status": Entry("lab", "status", "List the running labs."),
    "set": Entry("lab", "set_", "Give the link of one host another rate."),
    "cut": Entry("lab", "cut", "Cut a host off from all others."),
    "join": Entry("lab", "join", "Join a host again that was cut off."),
    "down": Entry(
        "lab", "down", "Take a lab down and end what runs on it; remove dead labs."
    ),
    "shell": Entry("lab", "shell", "Start a shell in which labs need no root."),
    "report": Entry(
        "lab_report",
        "report",
        "Run the named sets of the papers on a lab and write a report.",
    ),
}


class Commands(Mapping[str, Any]):
    """The subcommands of a group, each imported at its first look-up."""

    def __init__(self, table: Mapping[str, Entry], group: str = "") -> None:
        self.table, self.group = table, group
        self._imported: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        entry = self.table[name]
        if name not in self._imported:
            module = import_module(f".{entry.module}", __package__)
            command = getattr(module, entry.attribute)
            self._imported[name] = _click_command(f"{self.group}{name}", command)
        return self._imported[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)


def _click_command(full_name: str, command: typer.Typer | Callable[..., None]) -> Any:
    """The command that typer builds from a function or from a group."""
    if isinstance(command, typer.Typer):
        return get_command(command)
    single_command = typer.Typer(add_completion=False, rich_markup_mode=None)
    name = full_name.rpartition(" ")[2]
    single_command.command(name, cls=Command, epilog=epilog(full_name))(command)
    return get_command(single_command)


#: the types that newer versions of typer write after the names of arguments
_TYPE = re.compile(r" <(str|int|path|list\[\w+\])>")


class Command(TyperCommand):
    """A command whose help shows words for people, and no types of Python."""

    def get_help(self, ctx: Any) -> str:
        return _TYPE.sub(lambda match: " " * len(match[0]), super().get_help(ctx))


class CommandGroup(TyperGroup):
    """A group that imports only the subcommand that is run."""

    table: Mapping[str, Entry] = COMMANDS
    #: the group's own name and a space, before the names of its subcommands
    prefix = ""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = Commands(self.table, self.prefix)  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.table)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the summary of each subcommand, from the table."""
        with formatter.section("Commands"):
            rows = [(name, entry.summary) for name, entry in self.table.items()]
            formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the subcommand; refuse an unknown name with the closest known name."""
        if args[0] not in self.table and not args[0].startswith("-"):
            close = get_close_matches(args[0], self.table, 1)
            hint = (
                f"did you mean {close[0]}?"
                if close
                else f"known: {', '.join(self.table)}"
            )
            raise ValueError(f"no command {self.prefix + args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)


class LabGroup(CommandGroup):
    """The subcommands of `isthmus lab`."""

    table = LAB_COMMANDS
    prefix = "lab "


lab = typer.Typer(
    name="lab",
    cls=LabGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@lab.callback()
def _lab() -> None:
    """A shaped network of many hosts inside this machine."""
