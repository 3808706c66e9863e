"""Sizes and times as people read and write them."""

from __future__ import annotations

import re
from collections.abc import Mapping

BINARY = {"TiB": 1 << 40, "GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "B": 1}
#: those of papers
DECIMAL = {"MB": 10**6, "KB": 10**3, "B": 1}
#: 4KiB, and 4k for short, are 4096 bytes; 4kB and 4KB are 4000
FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
POWERS = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?b)?\s*", re.IGNORECASE)


def show_bytes(n: float, units: Mapping[str, int] = BINARY) -> str:
    """A size in three digits."""
    name, unit = next((u for u in units.items() if n >= u[1]), ("B", 1))
    return f"{n / unit:.3g} {name}" if n < 1000 * unit else f"{n / unit:.0f} {name}"


def read_bytes(text: str) -> int:
    """The bytes of 8, 4KiB, 1.5 MiB, 100KB, 1TiB."""
    found = SIZE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a size; write 8, 4KiB, 1MiB or 100KB")
    letter, unit = found[2].lower(), (found[3] or "").lower()
    factors = POWERS if letter and unit == "b" else FACTORS
    return int(float(found[1]) * factors[letter])


TIMES = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}


def time_unit(seconds: float) -> float:
    """The seconds of the unit in which people read such a time."""
    return next((size for size in TIMES.values() if seconds >= size), 1e-6)


def show_time(seconds: float) -> str:
    """A time in three digits."""
    size = time_unit(seconds)
    name = next(name for name, other in TIMES.items() if other == size)
    return f"{seconds / size:.3g} {name}"
