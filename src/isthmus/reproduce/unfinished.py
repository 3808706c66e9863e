"""Results of a report that is not finished, kept in its folder: the same command goes
on where it was interrupted.

The simulations of a paper take minutes to hours. Each result is a line of JSON, written
when it is there. Of a process that is killed, the last line may be cut off: it is left
out. They are results of this very source; with another one, all begins anew. The file
goes when the report is written.
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
    """A number that changes when anything of isthmus does."""
    root = Path(__file__).parents[1]
    files = sorted((*root.rglob("*.py"), *root.rglob("*.toml")))
    return zlib.crc32(b"".join(path.read_bytes() for path in files))


def _encode(result: Any) -> Any:
    """A result as JSON: dataclasses of this package, alone or in a list."""
    if isinstance(result, list):
        return [_encode(one) for one in result]
    if not is_dataclass(result):
        return result
    kind = type(result)
    module = kind.__module__.removeprefix(f"{PACKAGE}.")
    values = {field.name: getattr(result, field.name) for field in fields(result)}
    return {"is": f"{module}.{kind.__name__}", **values}


def _decode(found: Any) -> Any:
    """The result that was written as this."""
    if isinstance(found, list):
        return [_decode(one) for one in found]
    if not isinstance(found, dict):
        return found
    module, _, name = found.pop("is").partition(".")
    return getattr(import_module(f".{module}", PACKAGE), name)(**found)


def _line(task: str, result: Any) -> str:
    """A line of the file; numpy's numbers are written as Python's."""
    return json.dumps([task, _encode(result)], default=lambda x: x.item())


class Unfinished:
    """The results of a report so far."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / RESULTS_FILE
        self.results = dict(self._read())
        self._open = False

    def _read(self) -> list[tuple[str, Any]]:
        """The task and the result of each line; none of another source."""
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

    def keep(self, task: str, result: Any) -> None:
        """Keep a result; the folder is made for the first one."""
        if not self._open:  # without a line that was cut off, or those of other sources
            self.path.parent.mkdir(exist_ok=True)
            lines = [self._head(), *(_line(*entry) for entry in self.results.items())]
            self.path.write_text("".join(f"{x}\n" for x in lines), encoding="utf-8")
            self._open = True
        self.results[task] = result
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line(task, result) + "\n")

    def remove(self) -> None:
        """Forget all: the report is written."""
        self.path.unlink(missing_ok=True)


def task_name(task: Sequence[Any]) -> str:
    """A function and its argument, as text."""
    function, argument = task
    return f"{function.__module__}.{function.__qualname__} {argument!r}"
