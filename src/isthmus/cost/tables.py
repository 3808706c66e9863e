"""Tables of a TOML file, read key by key; what is wrong names the file and the key."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

_toml: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")


def load(path: Path) -> dict[str, Any]:
    """What stands in a file; FileNotFoundError is the caller's."""
    try:
        found: dict[str, Any] = _toml.loads(path.read_text("utf-8"))
        return found
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except ValueError as error:  # not UTF-8, or not TOML
        why = str(error).partition("\n")[0]
        raise ValueError(f"{path}: not a TOML file: {why}") from None


class Table:
    """A table of a file, whose keys are taken out one by one."""

    def __init__(self, where: str, values: Mapping[str, Any]) -> None:
        self.where, self.values = where, dict(values)

    def error(self, key: str, wrong: str) -> ValueError:
        """One line: which file, which key, what is wrong."""
        return ValueError(f"{self.where}: {key}: {wrong}")

    def take(self, key: str, read: Callable[[Any], T], default: T | None = None) -> T:
        """The value of a key, which may be absent only if it has a default."""
        if key not in self.values:
            if default is None:
                raise self.error(key, "missing")
            return default
        try:
            return read(self.values.pop(key))
        except ValueError as error:
            raise self.error(key, str(error)) from None

    def table(self, key: str) -> Table:
        """The table of that name."""
        return Table(f"{self.where}: {key}", self.take(key, _table))

    def tables(self, key: str) -> Iterator[Table]:
        """The tables of an array of tables."""
        found = self.take(key, _tables)
        for k, values in enumerate(found, 1):
            yield Table(f"{self.where}: {key} {k}", values)

    def check_rest(self) -> None:
        """Refuse keys that nobody took."""
        for key in self.values:
            raise self.error(key, "unknown key")


def _table(x: Any) -> dict[str, Any]:
    if not isinstance(x, dict):
        raise ValueError("must be a [table]")
    return x


def _tables(x: Any) -> list[dict[str, Any]]:
    if not isinstance(x, list) or not x or not all(isinstance(y, dict) for y in x):
        raise ValueError("must be one [[table]] or more")
    return x


def text(x: Any) -> str:
    """A text."""
    if not isinstance(x, str):
        raise ValueError(f"{x!r} is not a text in quotes")
    return x
