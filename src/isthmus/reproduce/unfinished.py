"""Results of an unfinished report, stored in its folder: the command, started again,
goes on from them.

The simulations of a paper take minutes to hours. Each result is a line of JSON, written
at once. If the process is killed, the last line may be cut off, and is left out.
Results are of one state of the source; after a change all begins anew, since a figure
must not mix results of two states. The file is removed when the report is written.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

#: the file in the folder of a report
RESULTS_FILE = "unfinished.jsonl"
PACKAGE = __package__


@cache
def source_checksum() -> int:
    """A number that changes with any file of isthmus."""
    root = Path(__file__).parents[1]
    files = sorted((*root.rglob("*.py"), *root.rglob("*.toml")))
    return zlib.crc32(b"".join(path.read_bytes() for path in files))


def _encode(result: Any) -> Any:
    """A result as JSON: dataclasses of this package, alone or in a list."""
    if isinstance(result, list):
        return [_encode(item) for item in result]
    if not is_dataclass(result):
        return result
    kind = type(result)
    module = kind.__module__.removeprefix(f"{PACKAGE}.")
    values = {field.name: getattr(result, field.name) for field in fields(result)}
    return {"is": f"{module}.{kind.__name__}", **values}


def _decode(encoded: Any) -> Any:
    """The result of which `_encode` made the JSON."""
    if isinstance(encoded, list):
        return [_decode(item) for item in encoded]
    if not isinstance(encoded, dict):
        return encoded
    module, _, name = encoded.pop("is").partition(".")
    return getattr(import_module(f".{module}", PACKAGE), name)(**encoded)


def _line(task: str, result: Any) -> str:
    """A line of the file; numpy's numbers are written as Python's."""
    return json.dumps([task, _encode(result)], default=lambda x: x.item())


class Unfinished:
    """The results of a report so far, in memory and in a file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / RESULTS_FILE
        self.results = dict(self._read())
        self._open = False

    def _read(self) -> list[tuple[str, Any]]:
        """The task and the result of each line; none from another source."""
        try:
            head, *lines = self.path.read_text("utf-8").splitlines() or [""]
        except FileNotFoundError:
            return []
        if head != self._head():
            return []
        entries = []
        for line in lines:
            try:
                task, result = json.loads(line)
            except ValueError:  # the process was killed while it wrote the line
                break
            entries.append((task, _decode(result)))
        return entries

    def _head(self) -> str:
        return json.dumps({"isthmus": source_checksum()})

    def add(self, task: str, result: Any) -> None:
        """Add a result, and write it; the first result creates the folder."""
        if not self._open:  # without a line that was cut off, or those of other sources
            self.path.parent.mkdir(exist_ok=True)
            lines = [self._head(), *(_line(*entry) for entry in self.results.items())]
            self.path.write_text("".join(f"{x}\n" for x in lines), encoding="utf-8")
            self._open = True
        self.results[task] = result
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line(task, result) + "\n")

    def remove(self) -> None:
        """Remove the file, as the report is written."""
        self.path.unlink(missing_ok=True)


def task_name(task: Sequence[Any]) -> str:
    """The name of a task: its function and argument as text."""
    function, argument = task
    return f"{function.__module__}.{function.__qualname__} {argument!r}"
