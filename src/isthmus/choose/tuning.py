"""Tuning files: the costs of messages on the user's machine, from `isthmus tune`.

A file has the fields of a `MessageCosts` for messages inside a node, and of another for
messages between nodes; docs/tuning.md shows a file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn

from ..cost.tables import TomlTable, load, text
from ..settings import TUNING
from .estimate import MessageCosts

#: the environment variable with the path of the file, or one of NO_FILE_VALUES
VARIABLE = TUNING
#: the values of the variable for no file
NO_FILE_VALUES = ("", "none")
#: fields of MessageCosts that follow from the communicator, and are in no file
OTHER_FIELDS = ("sharing", "changing")
#: fields of MessageCosts in a file, with the comment beside each
FIELDS = {
    "alpha": "seconds to start a message",
    "beta": "seconds a byte, of the longest message of a round",
    "gamma": "seconds a byte, of all messages of a round together",
    "message": "seconds for each further message of a round",
    "library": "the MPI library's call takes so many times what our messages would",
    "piece": "bytes: into such pieces the MPI library cuts blocks; 0 if it does not",
    "small": "bytes in all: below, the MPI library's own call is taken",
    "ring": "bytes a rank: from there, a ring beats few rounds",
}


@dataclass(frozen=True)
class Origin:
    """The place and the time of a measurement."""

    library: str
    host: str
    date: str
    isthmus: str
    processes: int
    nodes: int = 1

    @property
    def each(self) -> int:
        """The number of processes on a node."""
        return max(-(-self.processes // self.nodes), 1)

    def __str__(self) -> str:
        nodes = f"{self.nodes} nodes" if self.nodes > 1 else "one node"
        return f"{self.library}, {self.processes} processes on {nodes}, {self.host}"


@dataclass(frozen=True)
class Tuning:
    """The measured costs of messages inside a node and between nodes, None if unknown;
    and of unequal hosts, by name, the costs of a message and of a byte."""

    origin: Origin
    inside: MessageCosts | None = None
    between: MessageCosts | None = None
    hosts: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def parts(self) -> dict[str, MessageCosts]:
        """The known costs, by name."""
        both = {"inside": self.inside, "between": self.between}
        return {name: machine for name, machine in both.items() if machine is not None}

    def machine(self, nodes: int) -> MessageCosts | None:
        """The costs between processes on a number of nodes."""
        return self.between if nodes > 1 else self.inside

    @property
    def widest(self) -> MessageCosts:
        """The costs between all processes of the measurement, which fill nodes in
        order."""
        costs = self.between or self.inside or _refuse_empty(self.origin.host)
        processes_per_node = self.origin.each if self.between else self.origin.processes
        return costs.on([r // processes_per_node for r in range(self.origin.processes)])


def _refuse_empty(where: str) -> NoReturn:
    raise ValueError(f"{where}: neither [inside] nor [between]")


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not isfinite(value):
        raise ValueError(f"{value!r} is not a number")
    if value < 0:
        raise ValueError(f"{value!r} is negative")
    return float(value)


def _positive(value: Any) -> float:
    if not _number(value):
        raise ValueError("must be above zero")
    return float(value)


def _host_costs(value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("must be [seconds to start a message, seconds a byte]")
    return _number(value[0]), _number(value[1])


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is not a whole number of at least 0")
    return value


def _machine(table: TomlTable) -> MessageCosts:
    """The costs in a table; alpha and beta are required, other fields optional."""
    values: dict[str, Any] = {}
    for f in fields(MessageCosts):
        is_required = f.name in ("alpha", "beta")
        if f.name in OTHER_FIELDS or not (is_required or f.name in table.values):
            continue
        is_positive = is_required or f.name == "library"
        number = _positive if is_positive else _number
        read = _integer if f.type == "int" else number
        values[f.name] = table.take(f.name, read)
    table.check_rest()
    return MessageCosts(**values)


def _origin(table: TomlTable) -> Origin:
    readers = {f.name: _integer if f.type == "int" else text for f in fields(Origin)}
    values: dict[str, Any] = {
        key: table.take(key, read) for key, read in readers.items()
    }
    table.check_rest()
    for key in ("processes", "nodes"):
        if not values[key]:
            raise table.error(key, "must be above zero")
    return Origin(**values)


def is_tuning(path: str | Path) -> bool:
    """Whether a file is a tuning file, and not the description of a machine."""
    try:
        return "measured" in load(Path(path))
    except (FileNotFoundError, ValueError):
        return False


def read(path: str | Path) -> Tuning:
    """The tuning of a file; a ValueError names the defect of a wrong file."""
    try:
        table = TomlTable(str(path), load(Path(path)))
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file; isthmus tune writes one") from None
    origin = _origin(table.table("measured"))
    names = [name for name in ("inside", "between") if name in table.values]
    machines = {name: _machine(table.table(name)) for name in names}
    hosts = table.table("hosts") if "hosts" in table.values else TomlTable("", {})
    host_costs = {name: hosts.take(name, _host_costs) for name in [*hosts.values]}
    table.check_rest()
    if not machines:
        _refuse_empty(str(path))
    return Tuning(origin, **machines, hosts=host_costs)


def written(tuning: Tuning) -> str:
    """The text of a tuning file."""
    lines = ["# What messages cost, for isthmus to choose by; written by isthmus tune."]
    lines += ["", "[measured]"]
    for key, value in asdict(tuning.origin).items():
        quoted = f'"{_escaped(value)}"' if isinstance(value, str) else value
        lines.append(f"{key} = {quoted}")
    for name, machine in tuning.parts.items():
        lines += ["", f"[{name}]"]
        for key, comment in FIELDS.items():
            value = _shown(getattr(machine, key))
            lines.append(f"{f'{key} = {value}':<20} # {comment}")
    if tuning.hosts:
        lines += ["", "[hosts] # seconds to start a message, and seconds a byte"]
    for name, costs in tuning.hosts.items():
        lines.append(f'"{_escaped(name)}" = [{", ".join(map(_shown, costs))}]')
    return "\n".join(lines) + "\n"


def _shown(number: float) -> str:
    """A number with four digits; measurements are no more exact."""
    return repr(number if isinstance(number, int) else float(f"{number:.4g}"))


def _escaped(value: str) -> str:
    """A text with the escapes of TOML."""
    plain = "".join(c if c.isprintable() else " " for c in value)
    return plain.replace("\\", "\\\\").replace('"', '\\"')


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", words.lower()).strip("-.")


def place(library: str, host: str, environ: Mapping[str, str] | None = None) -> Path:
    """The path of the user's tuning file for an MPI library and a host."""
    environ = os.environ if environ is None else environ
    home = environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME", "."), ".config")
    return Path(home, "isthmus", f"{_slug(library)}-{_slug(host)}.toml")


def wanted(
    library: str, host: str, environ: Mapping[str, str] | None = None
) -> Path | None:
    """The tuning file to use: the file that the variable names, else the user's; None
    if there is none."""
    environ = os.environ if environ is None else environ
    value = environ.get(VARIABLE)
    if value is not None:
        return None if value in NO_FILE_VALUES else Path(value).expanduser()
    users_file = place(library, host, environ)
    return users_file if users_file.is_file() else None
