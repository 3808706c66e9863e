"""What messages cost on the user's machine: a small file that `isthmus tune` writes.

It holds `Machine`s, field by field; docs/tuning.md shows one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from math import isfinite
from pathlib import Path
from typing import Any

from ..cost.tables import TomlTable, load, text
from ..settings import TUNING
from .estimate import Machine

#: the environment variable with the path of the file, or NOTHING
VARIABLE = TUNING
#: what the variable says where no file is wanted
NOTHING = ("", "none")
#: what a communicator itself says, so that no file does
OWN = ("sharing", "changing")
#: fields of a Machine, and what they are
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
    """Where and when something was measured."""

    library: str
    host: str
    date: str
    isthmus: str
    processes: int
    nodes: int = 1

    @property
    def each(self) -> int:
        """Processes of a node."""
        return max(-(-self.processes // self.nodes), 1)

    def __str__(self) -> str:
        nodes = f"{self.nodes} nodes" if self.nodes > 1 else "one node"
        return f"{self.library}, {self.processes} processes on {nodes}, {self.host}"


@dataclass(frozen=True)
class Tuning:
    """What messages cost inside a node and between nodes, as far as it is known; and of
    unequal hosts, by their names, what a message and a byte of each cost."""

    origin: Origin
    inside: Machine | None = None
    between: Machine | None = None
    hosts: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def parts(self) -> dict[str, Machine]:
        """What is known, by name."""
        both = {"inside": self.inside, "between": self.between}
        return {name: machine for name, machine in both.items() if machine is not None}

    def machine(self, nodes: int) -> Machine | None:
        """What holds for processes on so many nodes."""
        return self.between if nodes > 1 else self.inside

    @property
    def widest(self) -> Machine:
        """What holds for all processes that measured."""
        return self.between or self.inside or _nobody(self.origin.host)


def _nobody(where: str) -> Any:
    raise ValueError(f"{where}: neither [inside] nor [between]")


def _number(x: Any) -> float:
    if isinstance(x, bool) or not isinstance(x, int | float) or not isfinite(x):
        raise ValueError(f"{x!r} is not a number")
    if x < 0:
        raise ValueError(f"{x!r} is negative")
    return float(x)


def _positive(x: Any) -> float:
    if not _number(x):
        raise ValueError("must be above zero")
    return float(x)


def _costs(x: Any) -> tuple[float, float]:
    if not isinstance(x, list) or len(x) != 2:
        raise ValueError("must be [seconds to start a message, seconds a byte]")
    return _number(x[0]), _number(x[1])


def _whole(x: Any) -> int:
    if isinstance(x, bool) or not isinstance(x, int) or x < 0:
        raise ValueError(f"{x!r} is not a whole number of at least 0")
    return x


def _machine(table: TomlTable) -> Machine:
    """A Machine from its fields."""
    found: dict[str, Any] = {}
    for x in fields(Machine):
        must = x.name in ("alpha", "beta")
        if x.name in OWN or not (must or x.name in table.values):
            continue
        above = must or x.name == "library"
        number = _positive if above else _number
        read = _whole if x.type == "int" else number
        found[x.name] = table.take(x.name, read)
    table.check_rest()
    return Machine(**found)


def _origin(table: TomlTable) -> Origin:
    known = {f.name: _whole if f.type == "int" else text for f in fields(Origin)}
    found: dict[str, Any] = {key: table.take(key, read) for key, read in known.items()}
    table.check_rest()
    for key in ("processes", "nodes"):
        if not found[key]:
            raise table.error(key, "must be above zero")
    return Origin(**found)


def is_tuning(path: str | Path) -> bool:
    """Whether a file is of this kind, rather than a description of a machine."""
    try:
        return "measured" in load(Path(path))
    except (FileNotFoundError, ValueError):
        return False


def read(path: str | Path) -> Tuning:
    """The tuning of a file; a ValueError says what is wrong with it."""
    try:
        table = TomlTable(str(path), load(Path(path)))
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file; isthmus tune writes one") from None
    origin = _origin(table.table("measured"))
    names = [name for name in ("inside", "between") if name in table.values]
    found = {name: _machine(table.table(name)) for name in names}
    hosts = table.table("hosts") if "hosts" in table.values else TomlTable("", {})
    each = {name: hosts.take(name, _costs) for name in [*hosts.values]}
    table.check_rest()
    return Tuning(origin, **found, hosts=each) if found else _nobody(str(path))


def written(tuning: Tuning) -> str:
    """The text of the file."""
    lines = ["# What messages cost, for isthmus to choose by; written by isthmus tune."]
    lines += ["", "[measured]"]
    for key, value in asdict(tuning.origin).items():
        quoted = f'"{_escaped(value)}"' if isinstance(value, str) else value
        lines.append(f"{key} = {quoted}")
    for name, machine in tuning.parts.items():
        lines += ["", f"[{name}]"]
        for key, words in FIELDS.items():
            value = _shown(getattr(machine, key))
            lines.append(f"{f'{key} = {value}':<20} # {words}")
    if tuning.hosts:
        lines += ["", "[hosts] # seconds to start a message, and seconds a byte"]
    for name, costs in tuning.hosts.items():
        lines.append(f'"{_escaped(name)}" = [{", ".join(map(_shown, costs))}]')
    return "\n".join(lines) + "\n"


def _shown(x: float) -> str:
    """A number with as many digits as are worth keeping."""
    return repr(x if isinstance(x, int) else float(f"{x:.4g}"))


def _escaped(value: str) -> str:
    """A text as TOML wants it."""
    plain = "".join(c if c.isprintable() else " " for c in value)
    return plain.replace("\\", "\\\\").replace('"', '\\"')


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", words.lower()).strip("-.")


def place(library: str, host: str, environ: Mapping[str, str] | None = None) -> Path:
    """Where the user's file for an MPI library and a host belongs."""
    environ = os.environ if environ is None else environ
    home = environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME", "."), ".config")
    return Path(home, "isthmus", f"{_slug(library)}-{_slug(host)}.toml")


def wanted(
    library: str, host: str, environ: Mapping[str, str] | None = None
) -> Path | None:
    """The file to use: the one that the variable names, else the user's if there is
    one."""
    environ = os.environ if environ is None else environ
    named = environ.get(VARIABLE)
    if named is not None:
        return None if named in NOTHING else Path(named).expanduser()
    usual = place(library, host, environ)
    return usual if usual.is_file() else None
