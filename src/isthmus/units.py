"""Sizes and times as people read and write them."""

from __future__ import annotations

import re
from collections.abc import Mapping

BINARY_UNITS = {"TiB": 1 << 40, "GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "B": 1}
#: the units of papers
DECIMAL_UNITS = {"MB": 10**6, "KB": 10**3, "B": 1}
#: 4KiB, and 4k for short, are 4096 bytes; 4kB and 4KB are 4000
BINARY_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
DECIMAL_FACTORS = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
SIZE_PATTERN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?b)?\s*", re.IGNORECASE)


def show_bytes(n: float, units: Mapping[str, int] = BINARY_UNITS) -> str:
    """A size with its unit, in three digits."""
    name, unit = next((pair for pair in units.items() if n >= pair[1]), ("B", 1))
    return f"{n / unit:.3g} {name}" if n < 1000 * unit else f"{n / unit:.0f} {name}"


def read_bytes(text: str) -> int:
    """The bytes of a size such as 8, 4KiB, 1.5 MiB, 100KB, 1TiB."""
    match = SIZE_PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a size; write 8, 4KiB, 1MiB or 100KB")
    letter, unit = match[2].lower(), (match[3] or "").lower()
    factors = DECIMAL_FACTORS if letter and unit == "b" else BINARY_FACTORS
    return int(float(match[1]) * factors[letter])


SECONDS_OF_UNIT = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}


def time_unit(seconds: float) -> float:
    """The seconds of the unit in which people read a time: s, ms or µs."""
    return next((size for size in SECONDS_OF_UNIT.values() if seconds >= size), 1e-6)


def show_time(seconds: float) -> str:
    """A time with its unit, in three digits."""
    unit = time_unit(seconds)
    name = next(name for name, size in SECONDS_OF_UNIT.items() if size == unit)
    return f"{seconds / unit:.3g} {name}"
