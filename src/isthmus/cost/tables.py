"""Tables of a TOML file, read key by key; errors name the file and the key."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

_toml: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")


def load(path: Path) -> dict[str, Any]:
    """The keys and values of a file; a missing file raises FileNotFoundError."""
    try:
        values: dict[str, Any] = _toml.loads(path.read_text("utf-8"))
        return values
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except ValueError as error:  # not UTF-8, or not TOML
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{path}: not a TOML file: {reason}") from None


class TomlTable:
    """A table of a file; readers take the keys out, and `check_rest` refuses the rest.

    A misspelled key is then an error, and not a default value without a warning.
    """

    def __init__(self, where: str, values: Mapping[str, Any]) -> None:
        self.where, self.values = where, dict(values)

    def error(self, key: str, defect: str) -> ValueError:
        """The error of a line that names the file, the key and the defect."""
        return ValueError(f"{self.where}: {key}: {defect}")

    def take(self, key: str, read: Callable[[Any], T], default: T | None = None) -> T:
        """The value of a key; an absent key is refused if there is no default."""
        if key not in self.values:
            if default is None:
                raise self.error(key, "missing")
            return default
        try:
            return read(self.values.pop(key))
        except ValueError as error:
            raise self.error(key, str(error)) from None

    def table(self, key: str) -> TomlTable:
        """The table below a key."""
        return TomlTable(f"{self.where}: {key}", self.take(key, _table))

    def tables(self, key: str) -> Iterator[TomlTable]:
        """The tables in an array of tables."""
        for k, values in enumerate(self.take(key, _tables), 1):
            yield TomlTable(f"{self.where}: {key} {k}", values)

    def check_rest(self) -> None:
        """Refuse the keys left in the table."""
        for key in self.values:
            raise self.error(key, "unknown key")


def text(value: Any) -> str:
    """A text value; refuse values of other types."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a text in quotes")
    return value


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("must be a [table]")
    return value


def _tables(value: Any) -> list[dict[str, Any]]:
    tables = value if isinstance(value, list) else []
    if not tables or not all(isinstance(table, dict) for table in tables):
        raise ValueError("must be one [[table]] or more")
    return tables
