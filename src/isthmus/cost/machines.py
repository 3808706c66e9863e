"""A machine described in a TOML file, as docs/simulate.md shows it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..spelling import unknown
from .machine import AlphaBeta, Level, Machine, Memory
from .tables import Table, load as load_toml, text as _text

SHIPPED = Path(__file__).parents[1] / "machines"

_TENS = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12}
_SECONDS = {"s": 0, "ms": -3, "us": -6, "µs": -6, "ns": -9, "ps": -12}
TIMES = {name: Fraction(10) ** ten for name, ten in _SECONDS.items()}
RATES = {f"{x}B/s": Fraction(10**ten) for x, ten in _TENS.items()}
RATES |= {f"{x}bit/s": Fraction(10**ten, 8) for x, ten in _TENS.items()}
RATES |= {f"{x}iB/s": Fraction(1024**k) for k, x in enumerate("KMGT", 1)}
_QUANTITY = re.compile(r"\s*([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d{1,2})?)\s*(\S*)\s*")


def shipped() -> list[str]:
    """The names of the machines that come with the library."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def load(source: str | Path, unit: int = 1) -> Machine:
    """The machine of a file, or a shipped one, by its name; an element has `unit`
    bytes."""
    table = Table(str(source), _parse(source))
    _refuse_models(table)
    name, note = (table.take(key, _text, "") for key in ("name", "note"))
    nested = "level" in table.values
    machine = _nested(table) if nested else AlphaBeta(*_alpha_beta(table))
    gamma = float(table.take("reduction", _per_byte, Fraction(0)))
    table.check_rest()
    return replace(machine, gamma=gamma, unit=unit, name=name or str(source), note=note)


#: the same; of version 0.1
read = load
#: what the key "model" may say, which files needed once
MODELS = ("alphabeta", "hierarchy")


def _refuse_models(table: Table) -> None:
    """Models that are not simulated here."""
    kind = table.take("model", _text, MODELS[0])
    if kind == "loggops":
        raise table.error("model", "isthmus export --goal writes what LogGOPSim takes")
    if kind not in MODELS:
        raise table.error("model", f"{kind!r} is unknown; no file needs it")


def _parse(source: str | Path) -> dict[str, Any]:
    """What stands in the file."""
    known = str(source) in shipped()
    try:
        return load_toml(SHIPPED / f"{source}.toml" if known else Path(source))
    except FileNotFoundError:
        hint = unknown("machine", str(source), shipped()).partition("; ")[2]
        raise ValueError(
            f"{source}: no such file, nor a shipped machine; {hint}"
        ) from None


def _truth(x: Any) -> bool:
    if not isinstance(x, bool):
        raise ValueError(f"{x!r} is not true or false")
    return x


def _count(x: Any) -> int:
    if not isinstance(x, int) or isinstance(x, bool) or x < 1:
        raise ValueError(f"{x!r} is not a whole number of at least 1")
    return x


def _nodes(x: Any) -> tuple[int, ...]:
    if not isinstance(x, list) or not all(type(y) is int and y >= 0 for y in x):
        raise ValueError("must be a list: for each rank the number of its unit")
    return tuple(x)


def _quantity(x: Any, units: Mapping[str, Fraction], example: str) -> Fraction:
    """A number and its unit; below zero is refused."""
    found = _QUANTITY.fullmatch(x) if isinstance(x, str) else None
    if found is None:
        raise ValueError(f"{x!r} is not a number with a unit, such as {example!r}")
    if found[2] not in units:
        raise ValueError(f"unknown unit in {x!r}; known: {', '.join(units)}")
    value = Fraction(found[1]) * units[found[2]]
    if value < 0:
        raise ValueError(f"{x!r} is negative")
    return value


def _time(x: Any) -> Fraction:
    """Seconds."""
    return _quantity(x, TIMES, "1.3 us")


def _per_byte(x: Any) -> Fraction:
    """Seconds per byte, from bytes per second."""
    rate = _quantity(x, RATES, "9.6 GB/s")
    if rate == 0:
        raise ValueError(f"{x!r} is not above zero")
    return 1 / rate


def _alpha_beta(table: Table) -> tuple[float, float]:
    alpha, beta = table.take("latency", _time), table.take("bandwidth", _per_byte)
    return float(alpha), float(beta)


def _level(table: Table, last: bool) -> Level:
    table.take("name", _text, "")
    size = table.take("units", _count, 0 if last else None) or None
    alpha, beta = _alpha_beta(table)
    shared = table.take("shared_port", _truth, True)
    lanes = table.take("lanes", _count, 1)
    gap = float(table.take("gap", _time)) if "gap" in table.values else None
    together = float(table.take("together", _per_byte, Fraction(0)))
    table.check_rest()
    return Level(size, alpha, beta, shared, lanes, gap, together)


def _memory(table: Table) -> Memory:
    alone = table.take("copy", _per_byte)
    together = table.take("together", _per_byte, Fraction(0))
    meeting = table.take("meeting", _time, Fraction(0))
    table.check_rest()
    if together > alone:
        raise table.error("together", "is less than one process copies alone")
    return Memory(float(alone), float(together), float(meeting))


def _nested(table: Table) -> Machine:
    tables = list(table.tables("level"))
    levels = tuple(_level(x, x is tables[-1]) for x in tables)
    nobody: tuple[int, ...] = ()
    placement = table.take("placement", _nodes, nobody) or None
    memory = _memory(table.table("memory")) if "memory" in table.values else Memory()
    return Machine(levels, placement=placement, memory=memory)
