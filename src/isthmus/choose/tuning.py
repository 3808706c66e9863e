"""Tuning files: the machine as `isthmus tune` measured it, and how it was measured.

A file describes a machine as shipped ones are described (see cost/machines), with a
table of the measurement and one of hosts that differ; docs/tuning.md shows a file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ..cost.machine import Level, LibraryCalls, Machine
from ..cost.placement import on_nodes
from ..cost.tables import TomlTable, load, text
from ..settings import TUNING

#: the costs of messages in the memory of a node, until they are measured
BUILT_IN = Machine((Level(None, 8e-6, 2e-10, gap=1e-6),), library=LibraryCalls())
#: the costs of messages between nodes, until they are measured; bytes whose partner
#: changes take as much longer on labs with TCP
NETWORK = Machine(
    (Level(None, 1e-5, 1e-9, gap=1e-6, changing=1.25),), library=LibraryCalls()
)
#: the environment variable with the path of the file, or one of NO_FILE_VALUES
VARIABLE = TUNING
#: the values of the variable for no file
NO_FILE_VALUES = ("", "none")


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
    """A measured machine; and of unequal hosts, by name, the costs of a message and of
    a byte.

    The machine has a level for messages inside a node, if several processes of a node
    measured, and one for messages between nodes, if several nodes did.
    """

    origin: Origin
    machine: Machine
    hosts: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def on(self, nodes: Sequence[int]) -> Machine | None:
        """The machine with ranks on nodes; None where their messages are unknown."""
        machine = self.machine
        if len(set(nodes)) > 1:
            if self.origin.nodes == 1:
                return None
            *inside, between = machine.levels
            roomy = [replace(level, size=len(nodes)) for level in inside]
            return on_nodes(replace(machine, levels=(*roomy, between)), nodes)
        if self.origin.nodes == 1:
            return machine
        if len(machine.levels) == 1:
            return None
        node = replace(machine.levels[0], size=None)
        library = machine.library and replace(machine.library, slowdown=1.0)
        return replace(machine, levels=(node,), library=library)


def untuned(nodes: Sequence[int]) -> Machine:
    """The machine of ranks on nodes until messages are measured: a rough guess, since
    only ratios of times decide."""
    return BUILT_IN if len(set(nodes)) == 1 else on_nodes(NETWORK, nodes)


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{value!r} is not a whole number above zero")
    return value


def _host_costs(value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError('must be ["seconds to start a message", "bytes a second"]')
    from ..cost.machines import seconds, seconds_per_byte

    return float(seconds(value[0])), float(seconds_per_byte(value[1]))


def _origin(table: TomlTable) -> Origin:
    readers = {f.name: _integer if f.type == "int" else text for f in fields(Origin)}
    values: dict[str, Any] = {
        key: table.take(key, read) for key, read in readers.items()
    }
    table.check_rest()
    return Origin(**values)


def read(path: str | Path) -> Tuning:
    """The tuning of a file; a ValueError names the defect of a wrong file."""
    from ..cost import machines  # without a file, a communicator needs no reader

    try:
        table = TomlTable(str(path), load(Path(path)))
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file; isthmus tune writes one") from None
    origin = _origin(table.table("measured"))
    hosts = table.table("hosts") if "hosts" in table.values else TomlTable("", {})
    host_costs = {name: hosts.take(name, _host_costs) for name in [*hosts.values]}
    machine = machines.take(table)
    table.check_rest()
    return Tuning(origin, machine, host_costs)


def written(tuning: Tuning) -> str:
    """The text of a tuning file."""
    from ..cost import machines

    lines = ["# What messages cost, for isthmus to choose by; written by isthmus tune."]
    lines += ["", "[measured]"]
    for key, value in asdict(tuning.origin).items():
        quoted = f'"{_escaped(value)}"' if isinstance(value, str) else value
        lines.append(f"{key} = {quoted}")
    lines += machines.written(tuning.machine)
    if tuning.hosts:
        lines += ["", "[hosts]"]
    for name, (alpha, beta) in tuning.hosts.items():
        costs = machines.time_text(alpha), machines.rate_text(beta)
        lines.append(f'"{_escaped(name)}" = [{", ".join(costs)}]')
    return "\n".join(lines) + "\n"


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
