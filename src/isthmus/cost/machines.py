"""Machines from TOML files, whose keys docs/simulate.md describes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any

from ..spelling import unknown
from .machine import AlphaBeta, Level, LibraryCalls, Machine, Memory
from .tables import TomlTable, load as load_toml, text as _text

#: tables of a file that say how a machine was measured (see choose/tuning)
MEASUREMENT_KEYS = ("measured", "hosts")
SHIPPED_FOLDER = Path(__file__).parents[1] / "machines"

_POWERS_OF_TEN = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12}
_TIME_POWERS = {"s": 0, "ms": -3, "us": -6, "µs": -6, "ns": -9, "ps": -12}
TIME_UNITS = {name: Fraction(10) ** ten for name, ten in _TIME_POWERS.items()}
RATE_UNITS = {f"{x}B/s": Fraction(10**ten) for x, ten in _POWERS_OF_TEN.items()}
RATE_UNITS |= {f"{x}bit/s": Fraction(10**ten, 8) for x, ten in _POWERS_OF_TEN.items()}
RATE_UNITS |= {f"{x}iB/s": Fraction(1024**k) for k, x in enumerate("KMGT", 1)}
_QUANTITY = re.compile(r"\s*([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d{1,2})?)\s*(\S*)\s*")


def shipped() -> list[str]:
    """The names of the machines that isthmus ships."""
    return sorted(path.stem for path in SHIPPED_FOLDER.glob("*.toml"))


def load(source: str | Path, unit: int = 1) -> Machine:
    """The machine in a file, or a shipped machine by name; elements of `unit` bytes."""
    table = TomlTable(str(source), _parse(source))
    for key in MEASUREMENT_KEYS:
        table.values.pop(key, None)
    machine = take(table)
    table.check_rest()
    return replace(machine, unit=unit, name=machine.name or str(source))


def take(table: TomlTable) -> Machine:
    """The machine in a table, whose other keys are left there."""
    name, note = (table.take(key, _text, "") for key in ("name", "note"))
    nested = "level" in table.values
    machine = _nested(table) if nested else AlphaBeta(*_alpha_beta(table))
    gamma = float(table.take("reduction", seconds_per_byte, Fraction(0)))
    library = _library(table.table("library")) if "library" in table.values else None
    return replace(machine, gamma=gamma, library=library, name=name, note=note)


def _parse(source: str | Path) -> dict[str, Any]:
    """The keys and values of a file, or of a shipped machine."""
    is_shipped = str(source) in shipped()
    path = SHIPPED_FOLDER / f"{source}.toml" if is_shipped else Path(source)
    try:
        return load_toml(path)
    except FileNotFoundError:
        hint = unknown("machine", str(source), shipped()).partition("; ")[2]
        raise ValueError(
            f"{source}: no such file, nor a shipped machine; {hint}"
        ) from None


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is not true or false")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{value!r} is not a whole number of at least 1")
    return value


def _factor(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value < inf:
        raise ValueError(f"{value!r} is not a number above zero")
    return float(value)


def _changing(value: Any) -> float:
    if _factor(value) < 1:
        raise ValueError(f"{value!r} is less than 1")
    return float(value)


def _placement(value: Any) -> tuple[int, ...]:
    is_list = isinstance(value, list)
    if not is_list or not all(type(unit) is int and unit >= 0 for unit in value):
        raise ValueError("must be a list: for each rank the number of its unit")
    return tuple(value)


def _quantity(value: Any, units: Mapping[str, Fraction], example: str) -> Fraction:
    """The quantity in a text of a number and a unit; refused if negative."""
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{value!r} is not a number with a unit, such as {example!r}")
    if match[2] not in units:
        raise ValueError(f"unknown unit in {value!r}; known: {', '.join(units)}")
    quantity = Fraction(match[1]) * units[match[2]]
    if quantity < 0:
        raise ValueError(f"{value!r} is negative")
    return quantity


def seconds(value: Any) -> Fraction:
    """The seconds of a text such as "1.3 us"."""
    return _quantity(value, TIME_UNITS, "1.3 us")


def seconds_per_byte(value: Any) -> Fraction:
    """The seconds per byte of a rate in bytes per second."""
    rate = _quantity(value, RATE_UNITS, "9.6 GB/s")
    if rate == 0:
        raise ValueError(f"{value!r} is not above zero")
    return 1 / rate


def _alpha_beta(table: TomlTable) -> tuple[float, float]:
    alpha, beta = (
        table.take("latency", seconds),
        table.take("bandwidth", seconds_per_byte),
    )
    return float(alpha), float(beta)


def _level(table: TomlTable, last: bool) -> Level:
    table.take("name", _text, "")
    size = table.take("units", _count, 0 if last else None) or None
    alpha, beta = _alpha_beta(table)
    shared = table.take("shared_port", _truth, True)
    lanes = table.take("lanes", _count, 1)
    gap = float(table.take("gap", seconds)) if "gap" in table.values else None
    together = float(table.take("together", seconds_per_byte, Fraction(0)))
    changing = table.take("changing", _changing, 1.0)
    table.check_rest()
    return Level(size, alpha, beta, shared, lanes, gap, together, changing)


def _library(table: TomlTable) -> LibraryCalls:
    slowdown = table.take("slowdown", _factor, 1.0)
    piece_bytes = table.take("piece", _count, 0)
    table.check_rest()
    return LibraryCalls(slowdown, piece_bytes)


def _memory(table: TomlTable) -> Memory:
    alone = table.take("copy", seconds_per_byte)
    together = table.take("together", seconds_per_byte, Fraction(0))
    meeting = table.take("meeting", seconds, Fraction(0))
    table.check_rest()
    if together > alone:
        raise table.error("together", "is less than one process copies alone")
    return Memory(float(alone), float(together), float(meeting))


def _nested(table: TomlTable) -> Machine:
    tables = list(table.tables("level"))
    levels = tuple(_level(level, level is tables[-1]) for level in tables)
    in_order: tuple[int, ...] = ()
    placement = table.take("placement", _placement, in_order) or None
    memory = _memory(table.table("memory")) if "memory" in table.values else Memory()
    return Machine(levels, placement=placement, memory=memory)


def written(machine: Machine) -> list[str]:
    """The lines of a file that describe a machine, as `take` reads them.

    Numbers have four digits, as measurements are no more exact.
    """
    lines: list[str] = []
    for level in machine.levels:
        sizes = [("units", level.size)] if level is not machine.levels[-1] else []
        gap = [] if level.gap is None else [("gap", time_text(level.gap))]
        together = [("together", rate_text(level.together))] if level.together else []
        changing = [("changing", level.changing)] if level.changing != 1 else []
        latency = "latency", time_text(level.alpha)
        bandwidth = "bandwidth", rate_text(level.beta)
        lines += ["", "[[level]]"]
        entries = [*sizes, latency, bandwidth, *gap, *together, *changing]
        lines += [f"{key} = {value}" for key, value in entries]
    if machine.library is not None:
        lines += ["", "[library]", f"slowdown = {machine.library.slowdown:.4g}"]
        if machine.library.piece_bytes:
            lines.append(f"piece = {machine.library.piece_bytes}")
    return lines


def time_text(seconds: float) -> str:
    """A value of a file that `seconds` reads."""
    return f'"{1e6 * seconds:.4g} us"'


def rate_text(seconds_per_byte: float) -> str:
    """A value of a file that `seconds_per_byte` reads."""
    return f'"{1e-6 / seconds_per_byte:.4g} MB/s"'
